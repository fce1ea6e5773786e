"""Reckon from measured figures what some rates of requests, and numbers of animals, need.

``distributed.py --save`` measures them. Prints the tables of docs/scale.md, which a test compares.
"""

from collections.abc import Callable
from math import ceil, exp
from pathlib import Path
from typing import NamedTuple

import msgspec

FILE = Path(__file__).parent / "measured.json"

MIX = {"list": 0.90, "get": 0.08, "create": 0.01, "place order": 0.01}
RATES = {"10 thousand": 10_000, "1 million": 1_000_000, "100 million": 100_000_000}
STOCKS = {"1 million": 10**6, "100 million": 10**8, "10 billion": 10**10}

# What is assumed.
BUSY = 0.5  # of each core at most, so that half of them may fail
CORES = 16  # of a database server
PER_KEY = 100  # requests a minute of an active key
SHARD_BYTES = 10**12  # which is copied or restored in an hour at 300 MB/s
PARTITION_ROWS = 10**8
POOL = 10  # connections of a process, --database-connections
POLLS = 5  # reads a second of each process: changed keys, reservations that lapse
SLOTS = 16_384
LEAST_PROCESSES = 2  # to restart one while the other serves
LEAST_MASTERS = 3  # of a cluster


class Span(NamedTuple):
    """The median of several rounds, the least and the most."""

    median: float
    least: float
    most: float


class WorkFigures(msgspec.Struct, frozen=True):
    """Of one kind of request: rate; CPU of each part in µs; p99 in ms; bytes of answer and log."""

    rate: Span
    service: Span
    database: Span
    redis: Span
    p99: float
    answer: int
    log: int


class Saving(msgspec.Struct, frozen=True):
    """Saving the counts of a key: CPU of service and PostgreSQL in µs, and bytes of log."""

    service: int
    database: int
    log: int


class Measured(msgspec.Struct, frozen=True):
    """What ``distributed.py`` measured. CPU and times are in µs, sizes in bytes."""

    machine: str
    python: str
    works: dict[str, WorkFigures]
    pet_bytes: int
    orders: int
    order_bytes: int
    limit_bytes: int
    saving: Saving
    pages: dict[str, int]
    fsync: Span
    process_megabytes: int


class Shape(NamedTuple):
    """What one rate of requests needs. Cores are those that are busy, without any reserve."""

    rate: float
    keys: float
    service_cores: float
    processes: int
    redis_cores: float
    masters: int
    list_cores: float
    replicas: int
    primary_cores: float
    commits: float
    log: float
    answers: float
    new_bytes: float

    def saved_rows(self, seconds: float) -> float:
        """Keys saved a second if each process saves each it has seen in so many ``seconds``."""
        seen = self.rate / self.processes * seconds
        different = self.keys * (1 - exp(-seen / self.keys))
        return self.processes * different / seconds

    def saved_rows_by_owners(self) -> float:
        """Keys saved a second if each is saved by one process, once a minute."""
        return self.keys / 60


def shape(measured: Measured, per_minute: float) -> Shape:
    """Return what ``per_minute`` requests a minute need."""
    works, rate = measured.works, per_minute / 60

    def cores(cost: Callable[[WorkFigures], float], *names: str) -> float:
        return sum(rate * MIX[name] * cost(works[name]) for name in names) / 1e6

    list_cores = cores(lambda work: work.database.median, "list")
    changes = ("create", "place order")
    primary_cores = cores(lambda work: work.database.median, "get", *changes)
    replicas = 0
    if list_cores + primary_cores > CORES * BUSY:
        replicas = ceil(list_cores / (CORES * BUSY))
    else:
        primary_cores += list_cores
    service_cores = cores(lambda work: work.service.median, *MIX)
    redis_cores = cores(lambda work: work.redis.median, *MIX)
    if replicas:
        extra = works["list, from a replica"], works["list"]
        lists = rate * MIX["list"] / 1e6
        service_cores += lists * max(0, extra[0].service.median - extra[1].service.median)
        redis_cores += lists * max(0, extra[0].redis.median - extra[1].redis.median)
    if redis_cores > BUSY:
        # Each master gets too few checks of a trip for them to share anything.
        alone = works["list, one connection"].redis.median - works["list"].redis.median
        redis_cores += rate * max(0, alone) / 1e6
    commits = sum(rate * MIX[name] for name in changes)
    if replicas:
        # After each change its position in the log is read.
        primary_cores += commits * works["get"].database.median / 1e6
    processes = max(LEAST_PROCESSES, ceil(service_cores / BUSY))
    primary_cores += processes * POLLS * works["get"].database.median / 1e6
    return Shape(
        rate=rate,
        keys=per_minute / PER_KEY,
        service_cores=service_cores,
        processes=processes,
        redis_cores=redis_cores,
        masters=1 if redis_cores <= BUSY else max(LEAST_MASTERS, ceil(redis_cores / BUSY)),
        list_cores=list_cores,
        replicas=replicas,
        primary_cores=primary_cores,
        commits=commits,
        log=cores(lambda work: work.log * 1e6, *changes),
        answers=cores(lambda work: work.answer * 1e6, *MIX),
        new_bytes=rate * 86_400 * (MIX["create"] * measured.pet_bytes)
        + rate * 86_400 * (MIX["place order"] * measured.order_bytes),
    )


def table_of_costs(measured: Measured) -> str:
    """Return the CPU that each kind of request costs, and the rate that one core of each gives."""
    rows = []
    for name, work in measured.works.items():
        parts = work.service, work.database, work.redis
        rows.append((name, *map(_span, parts), *map(_per_core, parts)))
    parts_in_order = ("service", "PostgreSQL", "Redis")
    costs = (f"{part}, µs" for part in parts_in_order)
    return _table(("Request", *costs, *(f"a core of {part}" for part in parts_in_order)), rows)


def table_of_answers(measured: Measured) -> str:
    """Return the rates that were seen, and the bytes of each kind of request."""
    return _table(
        ("Request", "a second, all on one machine", "p99, ms", "bytes of the answer", "of the log"),
        [
            (name, _span(work.rate), f"{work.p99:.0f}", f"{work.answer:,}", f"{work.log:,}")
            for name, work in measured.works.items()
        ],
    )


def table_of_sizes(measured: Measured) -> str:
    """Return the other figures that were measured."""
    saving = measured.saving
    return _table(
        ("What", "Measured"),
        [
            ("An animal with its indexes", f"{measured.pet_bytes} bytes, of 100,000"),
            ("An order with its indexes", f"{measured.order_bytes} bytes, of {measured.orders:,}"),
            ("The limits of a key in Redis", f"{measured.limit_bytes} bytes"),
            (
                "Saving the counts of a key in PostgreSQL",
                (
                    f"{saving.service} µs of the service, {saving.database} µs of PostgreSQL, "
                    f"{saving.log} bytes of log"
                ),
            ),
            *(
                (f"A page of 20 by itself, {name}", f"{cost} µs of PostgreSQL")
                for name, cost in measured.pages.items()
            ),
            ("8 kB to the disk (`fdatasync`)", f"{_span(measured.fsync)} µs"),
            ("A process that serves", f"{measured.process_megabytes} MB"),
        ],
    )


def print_measured(measured: Measured) -> None:
    """Print the tables of what was measured."""
    for table in (table_of_costs, table_of_answers, table_of_sizes):
        print(f"{table(measured)}\n")


def table_of_shapes(measured: Measured) -> str:
    """Return what each rate needs."""
    shapes = [shape(measured, per_minute) for per_minute in RATES.values()]
    saving = measured.saving

    def row(name: str, text: Callable[[Shape], str]) -> tuple[str, ...]:
        return (name, *map(text, shapes))

    def primaries_with(saved: Callable[[Shape], float]) -> Callable[[Shape], str]:
        def primaries(one: Shape) -> str:
            cores = one.primary_cores + saved(one) * saving.database / 1e6
            return f"{ceil(cores / (CORES * BUSY)):,}"

        return primaries

    def saves(name: str, saved: Callable[[Shape], float]) -> list[tuple[str, ...]]:
        return [
            row(f"**Counts saved** a second, {name}", lambda one: f"{saved(one):,.0f}"),
            row("- cores of the service", lambda o: _number(saved(o) * saving.service / 1e6)),
            row("- cores of the primary", lambda o: _number(saved(o) * saving.database / 1e6)),
            row("- log, MB a second", lambda one: _number(saved(one) * saving.log / 1e6)),
            row("- primaries for all its work", primaries_with(saved)),
        ]

    return _table(
        ("Requests a minute", *RATES),
        [
            row("Requests a second", lambda one: f"{one.rate:,.0f}"),
            row("Active keys", lambda one: f"{one.keys:,.0f}"),
            row("**Service**: cores busy", lambda one: _number(one.service_cores)),
            row("- processes", lambda one: f"{one.processes:,}"),
            row("- memory, GB", lambda o: _number(o.processes * measured.process_megabytes / 1e3)),
            row("**Redis**: cores busy", lambda one: _number(one.redis_cores)),
            row("- masters", lambda one: f"{one.masters:,}"),
            row("- slots of each", lambda one: f"{SLOTS / one.masters:,.0f}"),
            row("- memory, MB", lambda one: _number(one.keys * measured.limit_bytes / 1e6)),
            row("**PostgreSQL**: cores busy with lists", lambda one: _number(one.list_cores)),
            row("- replicas for lists", lambda one: f"{one.replicas:,}"),
            row("- cores busy, primary", lambda one: _number(one.primary_cores)),
            row("- commits a second", lambda one: f"{one.commits:,.0f}"),
            row(
                "- changes that share an fsync",
                lambda o: _number(max(1, o.commits * measured.fsync.median / 1e6)),
            ),
            row("- log of changes, MB a second", lambda one: _number(one.log / 1e6)),
            row("- connections without a pooler", lambda one: f"{one.processes * POOL:,}"),
            row("- new rows, GB a day", lambda one: _number(one.new_bytes / 1e9)),
            *saves("each 0.5 s", lambda one: one.saved_rows(0.5)),
            *saves("each 60 s", lambda one: one.saved_rows(60)),
            *saves("each 60 s by one process a key", Shape.saved_rows_by_owners),
            row("**Network**: answers, Gbit/s", lambda one: _number(one.answers * 8 / 1e9)),
        ],
    )


def table_of_stocks(measured: Measured) -> str:
    """Return what each number of animals needs, with an order for each."""
    row_bytes = measured.pet_bytes + measured.order_bytes

    def row(name: str, value: Callable[[int], float]) -> tuple[str, ...]:
        return (name, *(_number(value(animals)) for animals in STOCKS.values()))

    return _table(
        ("Animals, and an order for each", *STOCKS),
        [
            row("Animals, GB", lambda animals: animals * measured.pet_bytes / 1e9),
            row("Orders, GB", lambda animals: animals * measured.order_bytes / 1e9),
            row("Shards of 1 TB", lambda animals: ceil(animals * row_bytes / SHARD_BYTES)),
            row("Partitions of 100 million animals", lambda n: ceil(n / PARTITION_ROWS)),
            row("A tenth of it in memory, GB", lambda animals: animals * row_bytes / 1e10),
        ],
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _span(span: Span) -> str:
    return f"{span.median:,.0f} ({span.least:,.0f}-{span.most:,.0f})"


def _per_core(cost: Span) -> str:
    """Return the requests a second, to two digits, that one core gives."""
    return f"{float(f'{1e6 / cost.median:.2g}'):,.0f}"


def _number(value: float) -> str:
    """Return a number with two digits that count."""
    if 0 < value < 0.01:
        return "< 0.01"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def main() -> None:
    """Print every table."""
    measured = msgspec.json.decode(FILE.read_bytes(), type=Measured)
    print_measured(measured)
    print(f"{table_of_shapes(measured)}\n\n{table_of_stocks(measured)}")


if __name__ == "__main__":
    main()
