"""Measure the service on PostgreSQL and Redis: the CPU that each spends on a request, and bytes.

One service process, one PostgreSQL and one Redis share the machine with the load, so compare the
microseconds of CPU, not the rates. Numbers are medians of the rounds. PostgreSQL's files are in
memory where there is room; the time that a commit waits for a disk is measured by itself. With
``--save`` the numbers go to ``measured.json``, and the tables of ``scale.py`` to results/scale.md.
"""

import argparse
import asyncio
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import msgspec

from load import put_load
from machine import fsync_times, machine, system
from measured import FILE, Measured, Saving, WorkCosts
from pages import quoted
from petstore.databases.postgres import PostgresStore
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import State
from scale import PAGE, tables
from servers import Server, cpu_seconds, free_port, only_child, running, tree_cpu_seconds
from stage import postgres_server
from stock import PETS, fill, issue_many
from support.postgres import PostgresServer
from support.redis_server import RedisServer, redis_server
from tables import Span, span
from works import KEYS, Sources, get, requests_of, sources, updates

CONNECTIONS = 32
_SAVES = 30


class Site(NamedTuple):
    """The servers under load, and what requests to them are made of."""

    service: Server
    postgres: PostgresServer
    redis: RedisServer
    given: Sources

    @property
    def postmaster(self) -> int:
        """The process that every process of PostgreSQL is a child of."""
        return int((self.postgres.data / "postmaster.pid").read_text().split()[0])

    def number(self, sql: str) -> int:
        """Return the one number that a SELECT gives."""
        return int(self.postgres.sql(sql))


class Work(NamedTuple):
    """One kind of request."""

    name: str
    requests: Iterator[bytes]
    status: int
    connections: int = CONNECTIONS


class Round(NamedTuple):
    """The result of one round of one work: rate, CPU in µs, and bytes, of a request."""

    rate: float
    p99: float
    service: float
    database: float
    redis: float
    response: float
    log: float


def main() -> None:
    """Measure, print the tables, and save them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--save", action="store_true", help=f"as {FILE.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, _site(Path(name)) as site:
        measured = _measure_all(site, options.rounds, options.seconds)
    print(*tables(measured).values(), sep="\n\n")
    if options.save:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
        PAGE.write_text(quoted(PAGE.read_text(), tables(measured)))


@contextmanager
def _site(folder: Path) -> Iterator[Site]:
    with postgres_server() as postgres, redis_server() as redis:
        url = postgres.url()
        fill(folder, url, PETS)
        with _service(folder, "--database", url, "--redis", redis.url) as service:
            given = sources(service.url, issue_many(url, KEYS, folder))
            yield Site(service, postgres, redis, given)


@contextmanager
def _service(folder: Path, *arguments: str) -> Iterator[Server]:
    port = free_port()
    module = ("-m", "petstore", "serve", "--workers", "1", "--port", str(port))
    command = (sys.executable, *module, *arguments)
    with running(command, port, folder / f"log-{port}", "/readyz") as server:
        yield server


def _measure_all(site: Site, rounds: int, seconds: float) -> Measured:
    pet_bytes = site.number(f"SELECT pg_total_relation_size('pets') / {PETS}")
    works = _works(site)
    results: dict[str, list[Round]] = {work.name: [] for work in works}
    for _ in range(rounds):
        for work in works:
            results[work.name].append(_measure(site, work, seconds))
    return Measured(
        machine=machine(),
        system=system(),
        python=platform.python_version(),
        rounds=rounds,
        works={name: _summary(result) for name, result in results.items()},
        pet_bytes=pet_bytes,
        order_bytes=site.number("SELECT pg_total_relation_size('orders') / count(*) FROM orders"),
        saving=_measure_saving(site),
        fsync=_measure_fsync(),
    )


def _works(site: Site) -> list[Work]:
    given = site.given
    inventory = cycle([get("/v1/store/inventory", token) for token in given.tokens])
    return [
        Work("list", requests_of("list", given), 200),
        Work("list, one connection", requests_of("list", given), 200, 1),
        Work("get", requests_of("get", given), 200),
        Work("inventory", inventory, 200),
        Work("create", requests_of("create", given), 201),
        Work("update", updates(given.tokens[0]), 200),
        Work("place order", requests_of("place order", given), 201),
    ]


def _measure(site: Site, work: Work, seconds: float) -> Round:
    meters: tuple[Callable[[], float], ...] = (
        lambda: cpu_seconds(only_child(site.service.pid)) * 1e6,
        lambda: tree_cpu_seconds(site.postmaster) * 1e6,
        lambda: cpu_seconds(site.redis.process.pid) * 1e6,
    )
    log = _log_position(site)
    before = [meter() for meter in meters]
    load = put_load(site.service.port, work.requests, work.status, work.connections, seconds)
    service, database, redis = (
        (meter() - start) / load.responses for meter, start in zip(meters, before, strict=True)
    )
    written = (_log_position(site) - log) / load.responses
    p99 = load.percentile(0.99) * 1e3
    return Round(load.rate, p99, service, database, redis, load.received / load.responses, written)


def _summary(rounds: list[Round]) -> WorkCosts:
    def whole(values: Iterator[float]) -> Span:
        return Span(*map(round, span(values)))

    return WorkCosts(
        rate=whole(one.rate for one in rounds),
        service=whole(one.service for one in rounds),
        database=whole(one.database for one in rounds),
        redis=whole(one.redis for one in rounds),
        p99=round(statistics.median(one.p99 for one in rounds), 1),
        response=round(rounds[0].response),
        log=round(statistics.median(one.log for one in rounds)),
    )


def _measure_saving(site: Site) -> Saving:
    """Return what it costs to save how much a key has used."""
    ids = site.postgres.sql(
        "WITH made AS (INSERT INTO callers (kind)"
        " SELECT 'key' FROM generate_series(1, 1000) RETURNING id)"
        " INSERT INTO api_keys (id, name, plan, scopes, environment, created_at)"
        " SELECT id, 'bench', 'pro', '', 'production', 0 FROM made RETURNING id"
    ).split()
    states = [(int(key_id), State(day=1, day_used=1)) for key_id in ids]
    log, database, own = _log_position(site), tree_cpu_seconds(site.postmaster), time.process_time()
    asyncio.run(_save(site.postgres.url(), states))
    own, database = time.process_time() - own, tree_cpu_seconds(site.postmaster) - database
    saved = len(ids) * _SAVES
    return Saving(
        service=round(own / saved * 1e6),
        database=round(database / saved * 1e6),
        log=round((_log_position(site) - log) / saved),
    )


async def _save(url: str, states: list[tuple[int, State]]) -> None:
    store = PostgresStore(url)
    await store.open()
    for _ in range(_SAVES):
        await StoredRateLimits(store).save(states)
    await store.close()


def _log_position(site: Site) -> int:
    return site.number("SELECT pg_current_wal_insert_lsn() - '0/0'")


def _measure_fsync() -> Span:
    """Return the time in µs until 8 kB are on the disk of this folder: median, 10 % and 90 %."""
    tenths = statistics.quantiles(fsync_times(Path(__file__).parent), n=10)
    return Span(*(round(tenths[n]) for n in (4, 0, 8)))


if __name__ == "__main__":
    main()
