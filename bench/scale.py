"""Reckon from measured figures what some rates of requests, and numbers of animals, need.

``distributed.py --save`` measures them. Prints the tables of docs/scale.md, which a test compares.
"""

from collections.abc import Callable
from math import ceil, exp
from pathlib import Path
from typing import NamedTuple

import msgspec

from tables import Span, table

FILE = Path(__file__).parent / "measured.json"

MIX = {"list": 0.90, "get": 0.08, "create": 0.01, "place order": 0.01}
CHANGES = ("create", "place order")
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
    rounds: int
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
    """What ``per_minute`` requests a minute need. Of cores it counts those that are busy."""

    measured: Measured
    per_minute: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.per_minute / 60

    @property
    def keys(self) -> float:
        """Keys that are active."""
        return self.per_minute / PER_KEY

    def _sum(self, figure: Callable[[WorkFigures], float], *names: str) -> float:
        """Return how much of a figure the requests of these names make in a second."""
        return sum(self.rate * MIX[name] * figure(self.measured.works[name]) for name in names)

    @property
    def list_cores(self) -> float:
        """Of PostgreSQL, for lists."""
        return self._sum(lambda work: work.database.median, "list") / 1e6

    @property
    def _other_cores(self) -> float:
        return self._sum(lambda work: work.database.median, "get", *CHANGES) / 1e6

    @property
    def replicas(self) -> int:
        """Servers that lists go to, once the primary cannot do them all."""
        if self.list_cores + self._other_cores <= CORES * BUSY:
            return 0
        return ceil(self.list_cores / (CORES * BUSY))

    def _dearer(self, part: Callable[[WorkFigures], Span], name: str) -> float:
        """Return what a list of another kind costs a part more, in µs."""
        works = self.measured.works
        return max(0, part(works[name]).median - part(works["list"]).median)

    def _for_replicas(self, part: Callable[[WorkFigures], Span]) -> float:
        """Return the cores of a part that asking replicas costs more."""
        lists = self.rate * MIX["list"] if self.replicas else 0
        return lists * self._dearer(part, "list, from a replica") / 1e6

    @property
    def service_cores(self) -> float:
        """Of the service."""
        cores = self._sum(lambda work: work.service.median, *MIX) / 1e6
        return cores + self._for_replicas(lambda work: work.service)

    @property
    def processes(self) -> int:
        """Processes that serve."""
        return max(LEAST_PROCESSES, ceil(self.service_cores / BUSY))

    @property
    def redis_cores(self) -> float:
        """Of Redis. Of several masters none gets enough checks at once to share a trip."""
        cores = self._sum(lambda work: work.redis.median, *MIX) / 1e6
        cores += self._for_replicas(lambda work: work.redis)
        if cores > BUSY:
            cores += self.rate * self._dearer(lambda work: work.redis, "list, one connection") / 1e6
        return cores

    @property
    def masters(self) -> int:
        """Of Redis: one, or those of a cluster."""
        if self.redis_cores <= BUSY:
            return 1
        return max(LEAST_MASTERS, ceil(self.redis_cores / BUSY))

    @property
    def commits(self) -> float:
        """Changes a second."""
        return sum(self.rate * MIX[name] for name in CHANGES)

    @property
    def primary_cores(self) -> float:
        """Of the primary: what replicas do not do, and small reads, each as dear as a get.

        Each process asks for what has changed; with replicas each change asks for its position.
        """
        small_reads = self.processes * POLLS + (self.commits if self.replicas else 0)
        small = small_reads * self.measured.works["get"].database.median / 1e6
        return self._other_cores + small + (0 if self.replicas else self.list_cores)

    @property
    def changes_together(self) -> float:
        """Changes that have to share an fsync."""
        return max(1, self.commits * self.measured.fsync.median / 1e6)

    @property
    def log(self) -> float:
        """Bytes a second of PostgreSQL's log of changes."""
        return self._sum(lambda work: work.log, *CHANGES)

    @property
    def answers(self) -> float:
        """Bytes a second of answers."""
        return self._sum(lambda work: work.answer, *MIX)

    @property
    def new_animals(self) -> float:
        """Animals added a day."""
        return self.rate * 86_400 * MIX["create"]

    @property
    def new_bytes(self) -> float:
        """Bytes of animals and orders added a day."""
        new_orders = self.rate * 86_400 * MIX["place order"]
        return self.new_animals * self.measured.pet_bytes + new_orders * self.measured.order_bytes

    def saved(self, seconds: float) -> float:
        """Keys saved a second if each process saves each it has seen in so many ``seconds``."""
        seen = self.rate / self.processes * seconds
        different = self.keys * (1 - exp(-seen / self.keys))
        return self.processes * different / seconds

    @property
    def saved_by_owners(self) -> float:
        """Keys saved a second if each is saved by one process, once a minute."""
        return self.keys / 60

    def primaries(self, saved: float) -> int:
        """Primaries for all the work of one, if so many counts are saved a second."""
        cores = self.primary_cores + saved * self.measured.saving.database / 1e6
        return ceil(cores / (CORES * BUSY))


def shapes_of(measured: Measured) -> list[Shape]:
    """Return what each rate needs."""
    return [Shape(measured, per_minute) for per_minute in RATES.values()]


def shards(measured: Measured, animals: float) -> int:
    """Return how many servers hold so many animals, and an order for each."""
    return ceil(animals * (measured.pet_bytes + measured.order_bytes) / SHARD_BYTES)


def partitions(animals: float) -> int:
    """Return into how many tables so many animals are divided."""
    return ceil(animals / PARTITION_ROWS)


def table_in_short(measured: Measured) -> str:
    """Return the shapes, the first bottleneck of each and the step past it."""
    small, middle, large = shapes_of(measured)

    def row(name: str, one: Shape, primaries: int, *words: str) -> tuple[str, ...]:
        masters = f"{one.masters:,} ({SLOTS / one.masters:,.0f})"
        return (name, f"{one.processes:,}", masters, f"{one.replicas:,}", f"{primaries:,}", *words)

    animals = STOCKS["10 billion"]
    return table(
        (
            *("For", "processes", "Redis masters (slots of each)", "replicas", "primaries"),
            *("partitions", "first bottleneck", "the step past it"),
        ),
        [
            row(
                *("10 thousand requests a minute", small, 1, "1"),
                *("the one primary, when it fails", "a standby"),
            ),
            row(
                *("1 million requests a minute", middle, 1, "1"),
                *("Redis, which is one core", "a cluster of three masters"),
            ),
            row(
                *("100 million requests a minute", large, large.primaries(large.saved(0.5))),
                f"{large.new_animals / PARTITION_ROWS:.0f} more a day",
                *("saving counts, then Redis", "each key at one process; to be built"),
            ),
            row(
                *("10 billion animals, 1 million requests a minute", middle),
                shards(measured, animals),
                f"{partitions(animals):,}",
                *("the time of a restore", "shards, by blocks of ids; to be built"),
            ),
        ],
    )


def table_of_costs(measured: Measured) -> str:
    """Return the CPU that each kind of request costs, and the rate that one core of each gives."""
    rows = []
    for name, work in measured.works.items():
        parts = work.service, work.database, work.redis
        rows.append((name, *map(_span, parts), *map(_per_core, parts)))
    parts_in_order = ("service", "PostgreSQL", "Redis")
    costs = (f"{part}, µs" for part in parts_in_order)
    return table(("Request", *costs, *(f"a core of {part}" for part in parts_in_order)), rows)


def table_of_answers(measured: Measured) -> str:
    """Return the rates that were seen, and the bytes of each kind of request."""
    return table(
        ("Request", "a second, all on one machine", "p99, ms", "bytes of the answer", "of the log"),
        [
            (name, _span(work.rate), f"{work.p99:.0f}", f"{work.answer:,}", f"{work.log:,}")
            for name, work in measured.works.items()
        ],
    )


def table_of_sizes(measured: Measured) -> str:
    """Return the other figures that were measured."""
    saving = measured.saving
    return table(
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
    for table_of in (table_of_costs, table_of_answers, table_of_sizes):
        print(f"{table_of(measured)}\n")


def table_of_shapes(measured: Measured) -> str:
    """Return what each rate needs."""
    shapes = shapes_of(measured)
    saving = measured.saving

    def row(name: str, text: Callable[[Shape], str]) -> tuple[str, ...]:
        return (name, *map(text, shapes))

    def saves(name: str, saved: Callable[[Shape], float]) -> list[tuple[str, ...]]:
        return [
            row(f"**Counts saved** a second, {name}", lambda one: f"{saved(one):,.0f}"),
            row("- cores of the service", lambda o: _number(saved(o) * saving.service / 1e6)),
            row("- cores of the primary", lambda o: _number(saved(o) * saving.database / 1e6)),
            row("- log, MB a second", lambda one: _number(saved(one) * saving.log / 1e6)),
            row("- primaries for all its work", lambda one: f"{one.primaries(saved(one)):,}"),
        ]

    return table(
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
            row("- changes that share an fsync", lambda one: _number(one.changes_together)),
            row("- log of changes, MB a second", lambda one: _number(one.log / 1e6)),
            row("- connections without a pooler", lambda one: f"{one.processes * POOL:,}"),
            row("- new rows, GB a day", lambda one: _number(one.new_bytes / 1e9)),
            row(
                "- days until 100 million new animals",
                lambda one: _number(PARTITION_ROWS / one.new_animals),
            ),
            *saves("each 0.5 s", lambda one: one.saved(0.5)),
            *saves("each 60 s", lambda one: one.saved(60)),
            *saves("each 60 s by one process a key", lambda one: one.saved_by_owners),
            row("**Network**: answers, Gbit/s", lambda one: _number(one.answers * 8 / 1e9)),
        ],
    )


def table_of_stocks(measured: Measured) -> str:
    """Return what each number of animals needs, with an order for each."""
    row_bytes = measured.pet_bytes + measured.order_bytes

    def row(name: str, value: Callable[[int], float]) -> tuple[str, ...]:
        return (name, *(_number(value(animals)) for animals in STOCKS.values()))

    return table(
        ("Animals, and an order for each", *STOCKS),
        [
            row("Animals, GB", lambda animals: animals * measured.pet_bytes / 1e9),
            row("Orders, GB", lambda animals: animals * measured.order_bytes / 1e9),
            row("Shards of 1 TB", lambda animals: shards(measured, animals)),
            row("Partitions of 100 million animals", partitions),
            row("A tenth of it in memory, GB", lambda animals: animals * row_bytes / 1e10),
        ],
    )


def _span(span: Span) -> str:
    return f"{span.median:,.0f} ({span.min:,.0f}-{span.max:,.0f})"


def _per_core(cost: Span) -> str:
    """Return the requests a second, to two digits, that one core gives."""
    return f"{float(f'{1e6 / cost.median:.2g}'):,.0f}"


def _number(value: float) -> str:
    """Return a number with two digits that count."""
    if 0 < value < 0.01:
        return "< 0.01"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def read_measured() -> Measured:
    """Return what was measured and saved."""
    return msgspec.json.decode(FILE.read_bytes(), type=Measured)


def main() -> None:
    """Print every table."""
    measured = read_measured()
    print(f"{table_in_short(measured)}\n")
    print_measured(measured)
    print(f"{table_of_shapes(measured)}\n\n{table_of_stocks(measured)}")


if __name__ == "__main__":
    main()
