"""Measure the store's operations against a bare ASGI answer, in one run, in alternation.

The figures are requests a second at 32 connections and microseconds of CPU that the serving process
spends on a request. The machine is shared by the load, so compare the ratios, not the figures.
"""

import argparse
import json
import statistics
import sys
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, repeat
from pathlib import Path
from typing import NamedTuple

from load import put_load
from servers import Server, free_port, running
from stock import ANIMALS, fill, issue_key
from works import get, orders, request, updates

CONNECTIONS = 32


class Work(NamedTuple):
    """One thing that is measured."""

    name: str
    server: Server
    requests: Iterator[bytes]
    status: int


class Figures(NamedTuple):
    """What one round of one work came to."""

    rate: float
    cpu_microseconds: float
    p99_milliseconds: float


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        _service(folder := Path(name)) as (service, token),
        _bare(folder) as bare,
    ):
        works = _works(service, bare, token)
        rounds: dict[str, list[Figures]] = {work.name: [] for work in works}
        for _ in range(options.rounds):
            for work in works:
                rounds[work.name].append(_measure(work, options.seconds))
        _report(rounds)
        print(f"ready after {service.seconds_to_ready:.2f} s")
        print(f"memory: {service.megabytes:.0f} MB, {ANIMALS:,} animals")


def _works(service: Server, bare: Server, token: str) -> list[Work]:
    body = json.dumps({"name": "Bella", "categoryId": 1, "status": "available"})
    return [
        Work("bare ASGI", bare, repeat(get("/v1/pets", token)), 200),
        Work("list", service, repeat(get("/v1/pets?status=available&limit=20", token)), 200),
        Work("list, another page each time", service, _pages(token), 200),
        Work("get", service, repeat(get(f"/v1/pets/{ANIMALS // 2}", token)), 200),
        Work("inventory", service, repeat(get("/v1/store/inventory", token)), 200),
        Work("create", service, repeat(request("POST", "/v1/pets", token, body)), 201),
        Work("update", service, updates(token), 200),
        Work("place order", service, orders(token), 201),
    ]


def _pages(token: str) -> Iterator[bytes]:
    """Yield requests for pages so far apart that none comes from memory."""
    for last_id in cycle(range(1, ANIMALS, 7)):
        cursor = urlsafe_b64encode(last_id.to_bytes(8)).decode().rstrip("=")
        yield get(f"/v1/pets?status=available&limit=20&cursor={cursor}", token)


def _measure(work: Work, seconds: float) -> Figures:
    before = work.server.cpu_seconds
    load = put_load(work.server.port, work.requests, work.status, CONNECTIONS, seconds)
    spent = work.server.cpu_seconds - before
    return Figures(load.rate, spent / load.answers * 1e6, load.percentile(0.99) * 1e3)


def _report(rounds: dict[str, list[Figures]]) -> None:
    bare = rounds["bare ASGI"]
    print("| work | requests/s (min-max) | of bare (min-max) | CPU µs | p99 ms |")
    print("|---|---|---|---|---|")
    for name, figures in rounds.items():
        rates = [figure.rate for figure in figures]
        ratios = [mine.rate / base.rate for mine, base in zip(figures, bare, strict=True)]
        print(
            f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"
            f" | {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            f" | {statistics.median(figure.cpu_microseconds for figure in figures):.0f}"
            f" | {statistics.median(figure.p99_milliseconds for figure in figures):.1f} |"
        )


@contextmanager
def _service(folder: Path) -> Iterator[tuple[Server, str]]:
    database = f"sqlite:///{folder / 'bench.db'}"
    fill(folder, database)
    token = issue_key(database)
    port = free_port()
    place = ("-m", "petstore", "serve", "--database", database, "--port", str(port))
    with running([sys.executable, *place], port, folder / "service.log") as server:
        yield server, token


@contextmanager
def _bare(folder: Path) -> Iterator[Server]:
    port = free_port()
    arguments = ("-m", "granian", "--interface", "asgi", "--http", "1", "--no-ws", "--workers", "1")
    place = ("--port", str(port), "--working-dir", str(Path(__file__).parent), "bare:app")
    command = (sys.executable, *arguments, *place)
    with running(command, port, folder / "bare.log") as server:
        yield server


if __name__ == "__main__":
    main()
