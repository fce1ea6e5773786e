"""Measure what the pages of the console cost, and what open consoles cost a list.

    python bench/console.py                         with 1,000 and with a million pets
    python bench/console.py --pets 10000000      with ten million
    python bench/console.py --save                  writes bench/results/console.md, too

Where there are two cores, the service has one and everything else the other. Only compare numbers
of the same run.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple
from uuid import uuid4

import apsw
import httpx

import machine
from growth import INSERT_PETS, INSERT_WORDS
from petstore.keys.model import SCOPES
from rounds import measure
from servers import Server, allow_many_files, exact_cpu_seconds, free_port, leave_one_core, running
from stock import issue_key
from tables import table
from works import get, page_path

_REPORT = Path(__file__).parent / "results" / "console.md"
_FEW = 1_000
_VISITS = 100
_CONSOLES = 100
_MAX_RATE = 20_000
_SECONDS = 2
_ROUNDS = 7
_CONNECTIONS = 32
_CHANGES_A_SECOND = 10
_ORDERS = 20
# How the script of the console waits, in seconds.
_PAUSE = 2
_SOON = 5
_LONGEST_PAUSE = 20
_SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
_SCOPES = tuple(part for scope in SCOPES for part in ("--scope", scope))
_RANDOM = Random(17)  # noqa: S311 - no secret
_HOW = """\
# The console

Written by `bench/console.py --save`.

- Machine: {machine}; {system}; load average before {load:.1f}."""


class Site(NamedTuple):
    """A running service with so many pets, and the token of a key with every scope."""

    server: Server
    token: str
    pets: int

    @property
    def api(self) -> dict[str, str]:
        """The headers of a request of the interface."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def spent(self) -> float:
        """The seconds of CPU so far."""
        return exact_cpu_seconds(self.server.pid)

    def person(self) -> httpx.Client:
        """Return a browser of somebody who is signed in."""
        browser = httpx.Client(base_url=self.server.url, timeout=60)
        person = {"name": "Ada", "login": uuid4().hex, "role": "administrator"}
        added = browser.post("/v1/people", json=person, headers=self.api).raise_for_status().json()
        url = added["invitation"]["url"]
        browser.post(url, data={"password": "correct horse"}, headers=_SAME_ORIGIN)
        return browser


class Visits(NamedTuple):
    """A page, and the addresses of it that people open, which differ."""

    name: str
    addresses: Sequence[str]


def _visits(pets: int) -> list[Visits]:
    """Return the pages of people at work; a deep page begins in the middle of the pets."""
    ids = [_RANDOM.randrange(1, pets) for _ in range(_VISITS)]
    pages = {
        "pets, first page": ["/pets"],
        "pets, newest first": ["/pets?sort=-id"],
        "pets by status": [f"/pets?status={status}" for status in ("available", "sold")],
        "pets by name": [f"/pets?name=pet+{n}" for n in ids],
        "pets by name and status": [f"/pets?name=pet+{n}&status=sold" for n in ids],
        "pets by category": [f"/pets?categoryId={n % 12 + 1}" for n in ids],
        "a pet": [f"/pets/{n}" for n in ids],
        "board of orders": ["/orders"],
        "an order": [f"/orders/{n % _ORDERS + 1}" for n in ids],
        "inventory": ["/inventory"],
        "categories": ["/categories"],
        "import": ["/import"],
        "usage": ["/usage"],
        "webhooks": ["/webhooks"],
        "keys": ["/keys"],
        "a key": ["/keys/1"],
    }
    return [Visits(name, addresses) for name, addresses in pages.items()]


def _cost(site: Site, browser: httpx.Client, visits: Visits) -> float:
    """Return the milliseconds of CPU of one visit."""
    before = site.spent
    for number in range(_VISITS):
        response = browser.get(f"/console{visits.addresses[number % len(visits.addresses)]}")
        if response.status_code != httpx.codes.OK:
            raise RuntimeError(visits.name, response.status_code)
    return (site.spent - before) / _VISITS * 1e3


def _pages(few: Site, many: Site) -> Iterator[tuple[str, ...]]:
    """Yield a row for each page: its cost with few and with many pets, and the ratio."""
    browsers = {site: site.person() for site in (few, many)}
    for site in browsers:
        _order(site)
    for at_few, at_many in zip(_visits(few.pets), _visits(many.pets), strict=True):
        _cost(few, browsers[few], at_few)
        _cost(many, browsers[many], at_many)
        pairs = [
            (_cost(few, browsers[few], at_few), _cost(many, browsers[many], at_many))
            for _ in range(3)
        ]
        small, large = (median(costs) for costs in zip(*pairs, strict=True))
        ratio = median(b / a for a, b in pairs)
        yield (at_few.name, f"{small:.2f}", f"{large:.2f}", f"{ratio:.2f}")


def _order(site: Site) -> None:
    """Place some orders, so that the board shows work."""
    with httpx.Client(base_url=site.server.url, headers=site.api) as client:
        query = {"status": "available", "limit": str(_ORDERS)}
        for pet in client.get("/v1/pets", params=query).json():
            client.post("/v1/store/orders", json={"petId": pet["id"]}).raise_for_status()


class Console:
    """The page of the pets, open in a browser that follows the events as the script does."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def stay_open(self) -> None:
        """Follow the events, and load the page again when a pet has changed."""
        await self._client.get("/console/pets")
        refresh, after, pause = {"Console-Refresh": "1"}, "", _PAUSE
        while True:
            asked = time.perf_counter()
            query = {"after": after, "kinds": "pet category"}
            response = await self._client.get("/console/changes", params=query, headers=refresh)
            news = response.json()
            after = news["cursor"]
            if news["resources"] == []:
                continue
            await self._client.get("/console/pets", headers=refresh)
            is_soon = time.perf_counter() - asked < _SOON
            pause = min(2 * pause, _LONGEST_PAUSE) if is_soon else _PAUSE
            await asyncio.sleep(pause * _RANDOM.uniform(0.5, 1.5))


async def _write(site: Site, a_second: float) -> None:
    """Change a pet so many times a second."""
    async with httpx.AsyncClient(base_url=site.server.url, headers=site.api) as client:
        for number in count():
            new = {"name": f"New {number}", "categoryId": 1}
            await client.post("/v1/pets", json=new)
            await asyncio.sleep(1 / a_second)


async def _rate(site: Site) -> float:
    """Return how many lists a second the service responds to, each another one."""
    paths = (page_path("available", category=n % 12 + 1) for n in count())
    lists = (get(f"{path}&number={number}", site.token) for number, path in enumerate(paths))
    requests = list(islice(lists, _MAX_RATE * _SECONDS))
    one = await asyncio.to_thread(measure, site.server, requests, _CONNECTIONS, _SECONDS)
    return one.rate


async def _beside(alone: Site, crowded: Site, a_second: float) -> tuple[float, float, float]:
    """Return the lists a second alone and beside open consoles, and the median of the ratios."""
    # They share a session: a minute has fewer sign-ins.
    with closing(crowded.person()) as person:
        clients = [
            httpx.AsyncClient(base_url=crowded.server.url, timeout=60, cookies=person.cookies)
            for _ in range(_CONSOLES)
        ]
    tasks = [asyncio.create_task(Console(client).stay_open()) for client in clients]
    if a_second:
        tasks += [asyncio.create_task(_write(site, a_second)) for site in (alone, crowded)]
    await asyncio.sleep(10)
    for task in tasks:
        if task.done():
            task.result()
    rounds = [(await _rate(alone), await _rate(crowded)) for _ in range(_ROUNDS)]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        await client.aclose()
    without, beside = (median(rates) for rates in zip(*rounds, strict=True))
    return without, beside, median(crowd / none for none, crowd in rounds)


@contextmanager
def _served(folder: Path, pets: int, core: str | None) -> Iterator[Site]:
    folder.mkdir()
    path, port = folder / "store.db", free_port()
    database = f"sqlite:///{path}"
    token = issue_key(database, *_SCOPES)
    with apsw.Connection(str(path)) as connection:
        connection.execute(INSERT_PETS.format(pets))
        connection.execute(INSERT_WORDS)
    connection.close()
    command = (sys.executable, "-m", "petstore", "serve", "--port", str(port))
    options = ("--database", database, "--no-deliveries", "--console-per-minute", "1000000")
    with running((*command, *options), port, folder / "log", "/readyz", core=core) as server:
        yield Site(server, token, pets)


def _report(folder: Path, pets: int, core: str | None) -> Iterator[str]:
    yield _HOW.format(
        machine=machine.machine(), system=machine.system(), load=machine.load_average()
    )
    with _served(folder / "few", _FEW, core) as few:
        with _served(folder / "many", pets, core) as many:
            rows = list(_pages(few, many))
        head = ("Page", f"{_FEW:,} pets", f"{pets:,} pets", "ratio")
        yield "Milliseconds of CPU of a page, medians of 3 rounds and of their ratios:"
        yield table(head, rows)
        with _served(folder / "other", _FEW, core) as other:
            rows = []
            for a_second in (0, _CHANGES_A_SECOND):
                without, beside, ratio = asyncio.run(_beside(few, other, a_second))
                rows.append((str(a_second), f"{without:.0f}", f"{beside:.0f}", f"{ratio:.3f}"))
    yield f"Lists a second beside {_CONSOLES} open consoles, medians of {_ROUNDS} rounds:"
    yield table(("Changes a second", "alone", "beside them", "ratio"), rows)


def main() -> None:
    """Measure, print the tables, and save them if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pets", type=int, default=1_000_000)
    parser.add_argument("--save", action="store_true", help="into results/console.md")
    wanted = parser.parse_args()
    allow_many_files()
    core = leave_one_core()
    with tempfile.TemporaryDirectory() as folder:
        report = "\n\n".join(_report(Path(folder), wanted.pets, core)) + "\n"
    print(report)
    if wanted.save:
        _REPORT.write_text(report, "utf-8")


if __name__ == "__main__":
    main()
