"""Measure what events cost, and how soon a client that waits for one has it.

    python bench/events.py                        how soon, and what waiting clients cost a list
    python bench/events.py --save                 writes bench/results/events.md, too

How soon is measured on all cores. For what it costs, a service has a core of its own if there are
two. Only compare numbers of the same run.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, NamedTuple

import machine
from servers import Server, allow_many_files, exact_cpu_seconds, free_port, leave_one_core, running
from stage import postgres_server
from stock import fill, issue_key
from support.redis_server import redis_server
from tables import table

_REPORT = Path(__file__).parent / "results" / "events.md"
_PETS = 3_000
_WRITERS = 32
_WAITING = 1_000
_SAMPLES = 200
_LOAD_SECONDS = 5.0
_REQUESTS = 2_000
_ROUNDS = 7
_NEXT = re.compile(rb"\r\nlink: <([^>]+)>")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)")
_HOW = """\
# Events

Written by `bench/events.py --save`.

- Machine: {machine}; {system}; load average before {load:.1f}."""


class Site(NamedTuple):
    """A running service, and the token of a key without limits."""

    server: Server
    token: str


class Client:
    """One connection to the service, for one request at a time."""

    def __init__(self, site: Site) -> None:
        self._port = site.server.port
        self._head = f"Host: bench\r\nAuthorization: Bearer {site.token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, target: str, body: object = None) -> tuple[bytes, bytes]:
        """Return head and body of the response, which must be a success."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        lines = f"{method} {target} HTTP/1.1\r\n{self._head}Content-Length: {len(content)}\r\n\r\n"
        writer.write(lines.encode() + content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        response = await reader.readexactly(int(length[1]) if length else 0)
        if head[9:10] != b"2":
            raise RuntimeError(head + response)
        return head, response

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()


# How soon


class Lags:
    """The time from the response to a change until a client that waits has its event."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._responded: dict[str, float] = {}
        self._arrived: dict[str, float] = {}
        self._names = count(1)

    async def idle(self) -> list[float]:
        """Return the seconds of single changes, one after another."""
        return await self._measure(self._write_now_and_then())

    async def busy(self) -> list[float]:
        """Return the seconds while many clients write without pause."""
        ends = time.perf_counter() + _LOAD_SECONDS
        writers = (self._write_until(ends) for _ in range(_WRITERS))
        return await self._measure(_all(writers))

    async def _measure(self, writing: Coroutine[Any, Any, None]) -> list[float]:
        self._responded, self._arrived = {}, {}
        waiting = asyncio.create_task(self._wait())
        await asyncio.sleep(0.5)
        await writing
        while self._responded.keys() - self._arrived.keys():  # noqa: ASYNC110 - they come last
            await asyncio.sleep(0.05)
        waiting.cancel()
        return [max(0, self._arrived[name] - at) for name, at in self._responded.items()]

    async def _wait(self) -> None:
        client, target = Client(self._site), "/v1/events?type=pet.created&cursor=latest"
        while True:
            head, body = await client.ask("GET", f"{target}&limit=100&wait=25")
            now = time.perf_counter()
            target = f"/v1/events?type=pet.created&cursor={_cursor(head)}"
            self._arrived |= {event["data"]["name"]: now for event in json.loads(body)}

    async def _write_now_and_then(self) -> None:
        client, random = Client(self._site), Random(15)  # noqa: S311 - no secret
        for _ in range(_SAMPLES):
            await self._create(client)
            await asyncio.sleep(random.uniform(0.02, 0.1))
        client.close()

    async def _write_until(self, ends: float) -> None:
        client = Client(self._site)
        while time.perf_counter() < ends:
            await self._create(client)
        client.close()

    async def _create(self, client: Client) -> None:
        name = f"Pet {next(self._names)}"
        await client.ask("POST", "/v1/pets", {"name": name, "categoryId": 1})
        self._responded[name] = time.perf_counter()


def _cursor(head: bytes) -> str:
    """Return the cursor in the ``Link`` of a page."""
    (target,) = _NEXT.findall(head)
    return str(target, "ascii").rpartition("cursor=")[2]


async def _all(tasks: Iterator[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*tasks)


async def _lag_row(name: str, site: Site) -> tuple[str, ...]:
    lags = Lags(site)
    cells = []
    for seconds in (await lags.idle(), await lags.busy()):
        cells += [f"{median(seconds) * 1e3:.0f}", f"{quantiles(seconds, n=100)[98] * 1e3:.0f}"]
    return (name, *cells)


# What it costs


async def _cpu(site: Site, paths: list[str]) -> float:
    """Request paths on 32 connections; return the µs of CPU of the service for each."""

    async def send(client: Client, some: list[str]) -> None:
        for path in some:
            await client.ask("GET", path)
        client.close()

    before = exact_cpu_seconds(site.server.pid)
    await asyncio.gather(*(send(Client(site), paths[n::_WRITERS]) for n in range(_WRITERS)))
    return (exact_cpu_seconds(site.server.pid) - before) / len(paths) * 1e6


async def _lists(alone: Site, crowded: Site) -> tuple[float, float, float]:
    """Return the µs of CPU of a list without and with waiting clients, and the ratio's median."""
    lists = [
        f"/v1/pets?status=available&limit=20&categoryId={n % 30 + 1}" for n in range(_REQUESTS)
    ]
    waiting = [asyncio.create_task(_wait_on(Client(crowded))) for _ in range(_WAITING)]
    for site in (alone, crowded):
        await _cpu(site, lists)
    rounds = [(await _cpu(alone, lists), await _cpu(crowded, lists)) for _ in range(_ROUNDS)]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    without, beside = (median(costs) for costs in zip(*rounds, strict=True))
    return without, beside, median(crowd / none for none, crowd in rounds)


async def _wait_on(client: Client) -> None:
    try:
        while True:
            await client.ask("GET", "/v1/events?cursor=latest&wait=25")
    finally:
        client.close()


# The services


@contextmanager
def _served(folder: Path, database: str, *options: str, core: str | None = None) -> Iterator[Site]:
    port = free_port()
    log = folder / f"{port}.log"
    serve = (sys.executable, "-m", "petstore", "serve", "--port", str(port), *options)
    with running((*serve, "--database", database), port, log, "/readyz", core=core) as server:
        yield Site(server, issue_key(database))


def _sqlite(folder: Path) -> str:
    folder.mkdir()
    return f"sqlite:///{folder / 'store.db'}"


def _report(folder: Path) -> str:
    load = machine.load_average()
    parts = [_HOW.format(machine=machine.machine(), system=machine.system(), load=load)]
    parts += _how_soon(folder)
    core = leave_one_core()
    databases = [_sqlite(folder / name) for name in ("alone", "crowded")]
    for database in databases:
        fill(folder, database, _PETS)
    with (
        _served(folder, databases[0], core=core) as alone,
        _served(folder, databases[1], core=core) as crowded,
    ):
        without, with_, ratio = asyncio.run(_lists(alone, crowded))
    parts.append(
        f"A list costs {without:.0f} µs of CPU, and {with_:.0f} µs beside {_WAITING:,} clients"
        f" that wait for events: {ratio:.3f} × in the median of {_ROUNDS} rounds."
    )
    return "\n\n".join(parts) + "\n"


def _how_soon(folder: Path) -> Iterator[str]:
    """Yield the table of the time until a client has an event."""
    with postgres_server() as postgres, redis_server() as redis:
        shared = ("--workers", "2", "--redis", redis.url)
        with (
            _served(folder, _sqlite(folder / "lag")) as alone,
            _served(folder, postgres.new_database(), *shared) as two,
        ):
            rows = [
                asyncio.run(_lag_row("SQLite, one process", alone)),
                asyncio.run(_lag_row("PostgreSQL and Redis, two workers", two)),
            ]
    yield "Milliseconds from the response to a change until a waiting client has its event:"
    yield table(("Database", "idle: median", "p99", f"{_WRITERS} writers: median", "p99"), rows)


def main() -> None:
    """Measure, and print the report or save it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help=f"write {_REPORT.name}")
    options = parser.parse_args()
    allow_many_files()
    with tempfile.TemporaryDirectory(prefix="petstore-bench-") as folder:
        report = _report(Path(folder))
    print(report)
    if options.save:
        _REPORT.write_text(report)


if __name__ == "__main__":
    main()
