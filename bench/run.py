"""Measure the store's operations against a bare ASGI answer, in one run, in alternation.

The figures are requests a second at 32 connections and microseconds of CPU that the serving process
spends on a request. The machine is shared by the load, so compare the ratios, not the figures.
"""

import argparse
import csv
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, repeat
from pathlib import Path
from typing import NamedTuple

from load import put_load

ANIMALS = 200_000
# The first ones are of every status, those after them available, to be ordered.
MIXED = 60_000
CONNECTIONS = 32
_TICK = os.sysconf("SC_CLK_TCK")


class Server(NamedTuple):
    """A serving process, the port it is on, and how long it took to its first answer."""

    pid: int
    port: int
    seconds_to_ready: float


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
        print(f"memory, parent and worker: {_memory(service.pid):.0f} MB, {ANIMALS:,} animals")


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


def updates(token: str) -> Iterator[bytes]:
    """Yield changes of status, each of another animal."""
    for status in cycle(("available", "sold")):
        body = json.dumps({"status": status})
        for pet_id in range(3, MIXED, 3):
            yield request("PATCH", f"/v1/pets/{pet_id}", token, body)


def orders(token: str) -> Iterator[bytes]:
    """Yield orders, each of another animal."""
    for pet_id in range(MIXED + 1, ANIMALS + 1):
        yield request("POST", "/v1/store/orders", token, json.dumps({"petId": pet_id}))


def get(path: str, token: str) -> bytes:
    """Return a GET request."""
    return request("GET", path, token)


def request(method: str, path: str, token: str, body: str = "") -> bytes:
    """Return a request as it is sent."""
    head = f"{method} {path} HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()


def _measure(work: Work, seconds: float) -> Figures:
    before = cpu_seconds(work.server.pid)
    load = put_load(work.server.port, work.requests, work.status, CONNECTIONS, seconds)
    spent = cpu_seconds(work.server.pid) - before
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
    fill(folder / "animals.csv", database)
    token = issue_key(database)
    port = free_port()
    arguments = ("-m", "petstore", "serve", "--database", database, "--port", str(port))
    with running(folder, port, "/readyz", *arguments) as server:
        yield server, token


@contextmanager
def _bare(folder: Path) -> Iterator[Server]:
    port = free_port()
    arguments = ("-m", "granian", "--interface", "asgi", "--http", "1", "--no-ws", "--workers", "1")
    place = ("--port", str(port), "--working-dir", str(Path(__file__).parent), "bare:app")
    with running(folder, port, "/", *arguments, *place) as server:
        yield server


@contextmanager
def running(folder: Path, port: int, path: str, *arguments: str) -> Iterator[Server]:
    """Run Python with ``arguments`` until the block ends; it is ready when ``path`` answers 200."""
    started = time.perf_counter()
    with (folder / f"log-{port}").open("wb") as log:
        process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=log)
    try:
        _wait_for(port, path)
        ready = time.perf_counter() - started
        yield Server(_worker_of(process.pid), port, ready)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)


def fill(file: Path, database: str, animals: int = ANIMALS) -> None:
    """Import so many animals, those of the first ``MIXED`` of every status."""
    states = ("available", "pending", "sold")
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("name", "categoryId", "status"))
        writer.writerows(
            (f"Animal {n}", n % 12 + 1, states[n % 3] if n < MIXED else "available")
            for n in range(animals)
        )
    subprocess.run(
        [sys.executable, "-m", "petstore", "pets", "import", str(file), "--database", database],
        check=True,
    )


def issue_key(database: str) -> str:
    """Issue a key without limits and return its token."""
    command = ("-m", "petstore", "keys", "create", "--name", "bench", "--plan", "enterprise")
    return subprocess.run(
        [sys.executable, *command, "--database", database],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def _wait_for(port: int, path: str) -> None:
    deadline = time.perf_counter() + 20
    while time.perf_counter() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port)) as probe:
                probe.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
                if b" 200 " in probe.recv(65536):
                    return
        except OSError:
            time.sleep(0.005)
    msg = f"nothing answered on port {port}"
    raise TimeoutError(msg)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _worker_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0])


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _memory(worker: int) -> float:
    """Return the proportional set size of a worker and its parent, in megabytes."""
    parent = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
    total = 0
    for pid in (worker, parent):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
        total += int(line.split()[1])
    return total / 1024


if __name__ == "__main__":
    main()
