"""Measure how the cost of a request grows: with pets, pages before it, keys and connections.

One service process on SQLite, with a core to itself where there are two.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, cycle, islice, repeat
from pathlib import Path
from random import Random
from typing import NamedTuple

import apsw
import msgspec

import machine
import wrk
from peers.contract import peer
from petstore.domain.cursors import BY_ID
from petstore.keys.model import digest, new_token
from rounds import Series, measure
from servers import Server, allow_many_files, leave_one_core
from stage import SqliteStage
from stock import STATES, issue_key
from tables import Span, table
from works import create, get, page_path

_FOLDER = Path(__file__).parent / "results"
_LIMIT = 1.3
_HOW = """\
# How cost grows

Written by `bench/growth.py --save`: {growth.rounds} rounds of {growth.seconds} s, sizes in turn
within each. Time is one second divided by the responses of a second, on all connections together;
CPU is the server's per request. The median counts; brackets hold min and max. The last column is
the largest size to the smallest: a time is to stay within {limit} × of it.

- Machine: {growth.machine}; {growth.system}; load average before {growth.load_average:.1f}.
- One process on SQLite, asked on 32 connections where they are not what grows. Memory is the
  largest resident set of each of its processes, added up.
- No list comes from memory: each has an unknown parameter with a value of its own.
- Each get is of another pet. Of the keys, each has asked before."""
_CONNECTIONS = 32
_PAGE = 20
_FEW_PETS = 10_000
_INVENTORY = "/v1/store/inventory"
_SAME = "/v1/pets/1"
_MAX = 20_000  # requests a second
_PASS = 10  # s, in which so many keys ask for the first time
_LONGER = 5  # times, so that each of many connections asks more than once
_INSERT_PETS = """
INSERT INTO pets (name, category_id, status)
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {0})
SELECT 'Pet ' || n, n % 12 + 1,
  CASE n % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' ELSE 'sold' END
FROM numbers
"""
_INSERT_CALLER = "INSERT INTO callers (kind) VALUES ('key') RETURNING id"
_INSERT_KEY = """INSERT INTO api_keys (id, name, plan, scopes, environment, created_at)
VALUES (?, 'bench', 'enterprise', 'pets:read', 'production', 0)"""
_SEED = 5
_INSERT_TOKEN = "INSERT INTO api_key_tokens (digest, key_id) VALUES (?, ?)"  # noqa: S105


class Cell(Series, frozen=True, kw_only=True):
    """All rounds of one work at one size of what grows, and the memory then, in MB."""

    grows: str
    size: int
    megabytes: float


class Growth(msgspec.Struct, frozen=True):
    """A whole run."""

    machine: str
    system: str
    load_average: float
    rounds: int
    seconds: int
    cells: list[Cell]


def save(growth: Growth) -> None:
    """Write the report and the results into their folder."""
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / "growth.md").write_text(report(growth))
    (_FOLDER / "growth.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(growth), indent=1) + b"\n"
    )


def report(growth: Growth) -> str:
    """Return the whole report."""
    parts = [_HOW.format(growth=growth, limit=_LIMIT)]
    for grows in dict.fromkeys(cell.grows for cell in growth.cells):
        parts += (f"## {grows}", _table([one for one in growth.cells if one.grows == grows]))
    return "\n\n".join(parts) + "\n"


def _table(cells: list[Cell]) -> str:
    """Return the table of all sizes of one thing."""
    sizes = sorted({cell.size for cell in cells})
    rows = []
    for work in dict.fromkeys(cell.work for cell in cells):
        row = sorted((one for one in cells if one.work == work), key=lambda cell: cell.size)
        for name, metric in (("time, µs", "microseconds"), ("CPU, µs", "cpu")):
            texts = [_text(cell, metric) for cell in row]
            rows.append((f"{work}: {name}", *texts, _verdict(row[0], row[-1], metric)))
    megabytes = [max(cell.megabytes for cell in cells if cell.size == size) for size in sizes]
    each = (megabytes[-1] - megabytes[0]) / (sizes[-1] - sizes[0]) * 1024**2
    rows.append(("memory, MB", *(f"{one:.0f}" for one in megabytes), f"{each:,.0f} bytes each"))
    return table(("", *(f"{size:,}" for size in sizes), "largest to smallest"), rows)


def _text(cell: Cell, metric: str) -> str:
    return f"{cell.errors} responses failed" if cell.errors else _span(cell.span(metric))


def _verdict(smallest: Cell, largest: Cell, metric: str) -> str:
    """Return how much more the largest size takes, and whether that is within the limit."""
    if smallest.errors or largest.errors:
        return ""
    ratio = largest.span(metric).median / smallest.span(metric).median
    return f"{ratio:.2f} ×, {'within' if ratio <= _LIMIT else 'beyond'}"


def _span(values: Span) -> str:
    return f"{values.median:,.0f} ({values.min:,.0f}-{values.max:,.0f})"


class Sizes(NamedTuple):
    """What grows, from the smallest on."""

    pets: tuple[int, ...] = (10_000, 1_000_000, 10_000_000)
    pages: tuple[int, ...] = (1, 100_000)
    keys: tuple[int, ...] = (1_000, 1_000_000)
    connections: tuple[int, ...] = (1, 32, 1_000, 10_000)


_QUICK = Sizes((1_000, 100_000), (1, 1_000), (100, 10_000), (1, 1_000))


class Trial(NamedTuple):
    """One work at one size of what grows; its requests have no end."""

    grows: str
    work: str
    size: int
    server: Server
    requests: Iterator[bytes]
    connections: int = _CONNECTIONS

    def cell(self) -> Cell:
        """Return its place in the results, and the memory that the server has needed so far."""
        return Cell(
            grows=self.grows,
            work=self.work,
            size=self.size,
            megabytes=round(self.server.peak_megabytes, 1),
            rounds=[],
        )


class Bench:
    """Where it is measured: a folder, a core of the server's own or none; and for how long."""

    def __init__(self, folder: Path, core: str | None, rounds: int, seconds: int) -> None:
        self._folder = folder
        self._core = core
        self._rounds = rounds
        self.seconds = seconds

    @contextmanager
    def service(self, name: str, pets: int, keys: int = 0) -> Iterator[tuple[Server, list[str]]]:
        """Run the service with so many pets; give the tokens of a key and ``keys`` more."""
        stage = SqliteStage(self._folder / name)
        tokens = [issue_key(stage.url)]
        with stage.copy("served") as environment:
            environment.run_sql(_INSERT_PETS.format(pets))
            tokens += _issue_keys(environment.database, keys)
            with peer("petstore").started(environment, self._core) as server:
                yield server, tokens

    def run(self, trials: list[Trial], seconds: int | None = None) -> list[Cell]:
        """Measure each trial once a round, the sizes of a work in turn."""
        seconds = seconds or self.seconds
        cells: dict[Trial, Cell] = {}
        for number in range(self._rounds):
            for trial in sorted(trials, key=lambda trial: trial.work):
                what = f"{trial.work}, {trial.size:,} {trial.grows}"
                print(f"round {number + 1}: {what}", file=sys.stderr)
                requests = list(islice(trial.requests, _MAX * seconds))
                one = measure(trial.server, requests, trial.connections, seconds)
                if number == 0:
                    cells[trial] = trial.cell()
                cells[trial].rounds.append(one)
        return list(cells.values())


def main() -> None:
    """Measure, print the tables, and save them if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round of 1 s, of small sizes")
    parser.add_argument("--save", action="store_true", help="into results/")
    options = parser.parse_args()
    rounds, seconds, sizes = options.rounds, options.seconds, Sizes()
    if options.quick:
        rounds, seconds, sizes = 1, 1, _QUICK
    allow_many_files()
    core, load = leave_one_core(), machine.load_average()
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=Path(__file__).parent) as folder:
        bench = Bench(Path(folder), core, rounds, seconds)
        growth = Growth(
            machine=machine.machine(),
            system=machine.system(),
            load_average=load,
            rounds=rounds,
            seconds=seconds,
            cells=[
                *_grow_pets(bench, sizes),
                *_grow_keys(bench, sizes.keys),
                *_grow_connections(bench, sizes.connections),
            ],
        )
    print(report(growth))
    if options.save:
        save(growth)


def _grow_pets(bench: Bench, sizes: Sizes) -> list[Cell]:
    """Measure stores of different sizes, and pages of the largest."""
    with ExitStack() as stack:
        trials = []
        for size in sizes.pets:
            server, (token,) = stack.enter_context(bench.service(f"{size}-pets", size))
            trials += [
                Trial("pets", "list", size, server, _lists(token, range(size))),
                Trial("pets", "get", size, server, _gets([token], size)),
                Trial("pets", "inventory", size, server, repeat(get(_INVENTORY, token))),
                Trial("pets", "create", size, server, repeat(create(token, "Bella"))),
            ]
        pages = []
        for page in sizes.pages:
            first = len(STATES) * _PAGE * (page - 1)
            lists = _lists(token, range(first, first + 1))
            pages.append(Trial("pages", "list", page, server, lists))
        return bench.run(trials) + bench.run(pages)


def _grow_keys(bench: Bench, sizes: tuple[int, ...]) -> list[Cell]:
    """Measure with so many keys, all of them used before."""
    with ExitStack() as stack:
        trials = []
        for size in sizes:
            environment = bench.service(f"{size}-keys", _FEW_PETS, size)
            server, tokens = stack.enter_context(environment)
            requests = [get(_SAME, token) for token in tokens]
            asked = 0
            while asked < size:
                some = requests[asked : asked + _MAX * _PASS]
                asked += wrk.put_load(server.url, some, _CONNECTIONS, _PASS).responses
            trials.append(Trial("keys", "get", size, server, _gets(tokens, _FEW_PETS)))
        return bench.run(trials)


def _grow_connections(bench: Bench, sizes: tuple[int, ...]) -> list[Cell]:
    """Measure on so many connections, all of them busy."""
    with bench.service("connections", _FEW_PETS) as (server, tokens):
        requests = _gets(tokens, _FEW_PETS)
        trials = [Trial("connections", "get", size, server, requests, size) for size in sizes]
        return bench.run(trials, bench.seconds * _LONGER)


def _lists(token: str, after: Sequence[int]) -> Iterator[bytes]:
    """Yield requests for a page behind some pet, no two the same."""
    random = Random(_SEED)  # noqa: S311 - requests, not secrets
    for number in count():
        cursor = BY_ID.encode(random.choice(after))
        yield get(f"{page_path('available', cursor=cursor)}&number={number}", token)


def _gets(tokens: Sequence[str], pets: int) -> Iterator[bytes]:
    """Yield requests for any pet, with one token after the other."""
    random = Random(_SEED)  # noqa: S311 - requests, not secrets
    for token in cycle(tokens):
        yield get(f"/v1/pets/{random.randint(1, pets)}", token)


def _issue_keys(database: str, keys: int) -> list[str]:
    """Issue keys without limits in a store that is not in use, and return their tokens."""
    tokens = [new_token("production") for _ in range(keys)]
    connection = apsw.Connection(database)
    with connection:
        for token in tokens:
            ((key_id,),) = connection.execute(_INSERT_CALLER)
            connection.execute(_INSERT_KEY, (key_id,))
            connection.execute(_INSERT_TOKEN, (digest(token.encode()), key_id))
    connection.close()
    return tokens


if __name__ == "__main__":
    main()
