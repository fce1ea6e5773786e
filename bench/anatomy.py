"""Where the time of a list and a get goes: layers as servers, parts of the application alone.

A list is the first page, from memory. A get is a random pet, from SQLite. Each request has
ids of its own.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import msgspec
import uvloop

import machine
from peers.contract import peer
from petstore.app import create_app
from petstore.backends import create_limiter, database_of
from petstore.clock import system_clock
from petstore.http.messages import Request
from petstore.interface.messages import rate_limit_headers
from petstore.keys.store import ApiKeyCache
from petstore.logs import RequestLine, RequestLog
from petstore.pets.store import get_pet
from petstore.settings import Settings
from report import FOLDER
from rounds import measure
from servers import Server, free_port, leave_one_core, running
from stage import SqliteStage
from stock import PETS, fill, issue_unlimited
from tables import span, table
from works import first_page, get, with_ids

_CONNECTIONS = 32
_CALLS = 20_000
_HERE = Path(__file__).parent
_QUERY = b"status=available&limit=20"


class Part(msgspec.Struct, frozen=True):
    """The cost of a layer or a part of a request, in µs."""

    name: str
    microseconds: float


def main() -> None:
    """Measure, print the tables, save them if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="of each layer in a round")
    parser.add_argument("--save", action="store_true", help=f"into {FOLDER.name}/")
    options = parser.parse_args()
    core = leave_one_core()
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=_HERE) as name:
        stage = SqliteStage(Path(name))
        fill(stage.folder, stage.url)
        token = issue_unlimited(stage.url)
        with stage.copy("served") as environment, ExitStack() as opened:
            servers = {
                "echo": opened.enter_context(_script("echo.py", stage.folder, core)),
                "bare": opened.enter_context(_script("bare.py", stage.folder, core)),
                "petstore": opened.enter_context(peer("petstore").started(environment, core)),
            }
            layers = _layers(servers, token, options.rounds, options.seconds)
        with Path("/dev/null").open("wb") as nowhere:
            log = RequestLog(nowhere, system_clock, for_person=False)
            parts = uvloop.run(_parts(stage.url, token, log, options.rounds))
    text = report(layers, parts)
    print(text)
    if options.save:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / "anatomy.md").write_text(text)


@contextmanager
def _script(name: str, folder: Path, core: str | None) -> Iterator[Server]:
    port = free_port()
    command = (sys.executable, _HERE / name, str(port))
    with running(command, port, folder / f"{name}.log", core=core) as server:
        yield server


def _layers(servers: dict[str, Server], token: str, rounds: int, seconds: int) -> list[Part]:
    """Return the CPU of a request to each server, in alternation."""
    page = [with_ids(one) for one in first_page(token).requests]
    random = Random(5)  # noqa: S311 - requests, not secrets
    gets = [with_ids(get(f"/v1/pets/{random.randint(1, PETS)}", token)) for _ in range(10_000)]
    layers = {name: (server, page) for name, server in servers.items()}
    layers["get"] = (servers["petstore"], gets)
    spent: dict[str, list[float]] = {name: [] for name in layers}
    for _ in range(rounds):
        for name, (server, requests) in layers.items():
            spent[name].append(measure(server, requests, _CONNECTIONS, seconds).cpu)
    return [Part(name, span(values).median) for name, values in spent.items()]


async def _parts(url: str, token: str, log: RequestLog, rounds: int) -> list[Part]:
    """Return what the parts of the application cost, called alone again and again."""
    settings = Settings(database=url)
    store = database_of(settings)
    limiter = create_limiter(settings, store, system_clock)
    ring = ApiKeyCache(store, system_clock, settings.environment)
    fields = {b"host": b"petstore", b"authorization": b"Bearer " + token.encode()}
    request = Request("GET", "/v1/pets", _QUERY, "127.0.0.1", fields)
    one_pet = Request("GET", "/v1/pets/7", b"", "127.0.0.1", fields)

    async def nothing() -> bytes:
        return b""

    async def headers() -> None:
        rate_limit_headers(decision)

    async def line() -> None:
        log.add(
            RequestLine(
                request="0123456789abcdef01234567",
                client="127.0.0.1",
                key=1,
                method="GET",
                route="/v1/pets",
                operation="listPets",
                status=200,
                code=None,
                limit=None,
                bytes=2000,
                milliseconds=0.1,
            )
        )

    app = create_app(settings, store, limiter, log)
    async with app.lifespan():
        key = await ring.find(token.encode())
        assert key is not None  # noqa: S101 - it was just issued
        decision = await limiter.take(key)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "the whole application, for a list": lambda: app(request, nothing),
            "the whole application, for a get": lambda: app(one_pet, nothing),
            "one pet out of SQLite": lambda: get_pet(store, 7),
            "the key of the token": lambda: ring.find(token.encode()),
            "its limits": lambda: limiter.take(key),
            "their headers": headers,
            "the line of the log": line,
            "the database's version": store.version,
            "a coroutine that does nothing": nothing,
        }
        return [Part(name, await _min(call, rounds)) for name, call in calls.items()]


async def _min(call: Callable[[], Awaitable[object]], rounds: int) -> float:
    """Return the µs of CPU of one call, with what the thread of the log does for it after.

    The loop turns after each 32 calls, as it does with so many callers.
    """
    lowest = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        for number in range(_CALLS):
            await call()
            if number % _CONNECTIONS == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.3)
        lowest = min(lowest, (time.process_time() - started) / _CALLS * 1e6)
    return lowest


def report(layers: list[Part], parts: list[Part]) -> str:
    """Return both tables in Markdown."""
    cost = {part.name: part.microseconds for part in layers}
    rows = [
        ("the kernel and the event loop: a body as long, to whatever comes", cost["echo"]),
        ("HTTP: parsing the request, a task, the response", cost["bare"] - cost["echo"]),
        ("the application, for a list", cost["petstore"] - cost["bare"]),
        ("**a list**", cost["petstore"]),
        ("**a get**", cost["get"]),
    ]
    written = f"Written by `bench/anatomy.py` on {machine.machine()}; {machine.system()}."
    paragraphs = (
        "# A list and a get, layer by layer",
        f"{written} CPU of the serving process, the median of rounds in alternation:",
        table(("Layer", "µs"), [(name, f"{value:.1f}") for name, value in rows]),
        "The application in process, without a server; each part alone, the minimum of the rounds:",
        table(("Part", "µs"), [(part.name, f"{part.microseconds:.2f}") for part in parts]),
    )
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    main()
