"""What is measured, and the figures of one process or of several together."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

METHODS = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"))
"""Methods with a name of their own. A caller can send any; figures and spans must stay few."""

Labels: TypeAlias = tuple[str | int, ...]


class Metric(NamedTuple):
    """A metric: its name, its help and the names of its labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


class Histogram(NamedTuple):
    """A metric that is spread over buckets; ``bounds`` are their upper ends."""

    metric: Metric
    bounds: tuple[float, ...]


REQUESTS = Metric("petstore_requests", "Requests answered.", ("operation", "method", "status"))
DECISIONS = Metric("petstore_limiter_decisions", "Requests judged by the limits.", ("verdict",))
FALLBACKS = Metric(
    "petstore_limiter_fallbacks", "Times a process went on without Redis, by its share."
)
BANS = Metric("petstore_bans", "Bans of keys that began.")
LAPSED = Metric("petstore_reservations_lapsed", "Orders cancelled as their time was over.")
REPLAYS = Metric("petstore_replays", "Answers given again to a repeated Idempotency-Key.")
DATABASE_ERRORS = Metric(
    "petstore_database_errors",
    "Reads, transactions and checks that the database did not do.",
    ("database",),
)
CRASHES = Metric("petstore_worker_crashes", "Workers that ended without a clean stop.")
CPU_SECONDS = Metric("process_cpu_seconds", "User and system CPU time, in seconds.", ("worker",))
COUNTERS = (
    REQUESTS,
    DECISIONS,
    FALLBACKS,
    BANS,
    LAPSED,
    REPLAYS,
    DATABASE_ERRORS,
    CRASHES,
    CPU_SECONDS,
)

WORKERS = Metric("petstore_workers", "Processes that serve.")
WORKERS_CONFIGURED = Metric("petstore_workers_configured", "Processes that should serve.")
CONNECTIONS = Metric("petstore_connections", "Open connections of clients.")
CONNECTIONS_MAX = Metric("petstore_connections_max", "Connections of clients there may be.")
APART = Metric("petstore_limiter_fallback_workers", "Processes that do without Redis now.")
POOL_IN_USE = Metric(
    "petstore_pool_connections_in_use", "Connections to PostgreSQL at work.", ("database",)
)
POOL_SIZE = Metric(
    "petstore_pool_connections_max", "Connections to PostgreSQL there may be.", ("database",)
)
DATABASE_BYTES = Metric("petstore_database_bytes", "Size of the SQLite file and its log.")
DISK_FREE = Metric("petstore_disk_free_bytes", "Room on the disk of the SQLite file.")
DISK_SIZE = Metric("petstore_disk_size_bytes", "Size of the disk of the SQLite file.")
LAST_BACKUP = Metric(
    "petstore_last_backup_timestamp_seconds",
    "When the last good backup of the SQLite file began; 0 for never.",
)
START_TIME = Metric(
    "process_start_time_seconds", "When the process started, since the epoch.", ("worker",)
)
MEMORY = Metric("process_resident_memory_bytes", "Resident memory size.", ("worker",))
OPEN_FILES = Metric("process_open_fds", "Open file descriptors.", ("worker",))
MAX_FILES = Metric("process_max_fds", "Open file descriptors there may be.", ("worker",))
GAUGES = (
    WORKERS,
    WORKERS_CONFIGURED,
    CONNECTIONS,
    CONNECTIONS_MAX,
    APART,
    POOL_IN_USE,
    POOL_SIZE,
    DATABASE_BYTES,
    DISK_FREE,
    DISK_SIZE,
    LAST_BACKUP,
    START_TIME,
    MEMORY,
    OPEN_FILES,
    MAX_FILES,
)

BUILD = Metric("petstore_build_info", "What is running; always 1.", ("version",))

SECONDS = Histogram(
    Metric(
        "petstore_request_duration_seconds", "From the whole head to the answer.", ("operation",)
    ),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
COMMITS = Histogram(
    Metric("petstore_commit_changes", "Changes in each commit to SQLite."),
    (1, 2, 4, 8, 16, 32, 64, 128, 256),
)
QUERIES = Histogram(
    Metric(
        "petstore_query_duration_seconds",
        "From the statement to its rows; of a read, waiting for a connection included.",
        ("database", "query"),
    ),
    (0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5),
)
TRANSACTIONS = Histogram(
    Metric(
        "petstore_transaction_duration_seconds",
        "From the change to its commit on disk, waiting for others included.",
        ("database",),
    ),
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
LAG = Histogram(
    Metric("petstore_event_loop_lag_seconds", "How late the event loop ran a timer."),
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
HISTOGRAMS = (SECONDS, COMMITS, QUERIES, TRANSACTIONS, LAG)


class Spread(Struct, array_like=True):
    """How many observations fell into each bucket, and their sum. The last bucket has no end."""

    buckets: list[int]
    sum: float = 0


def empty_spread(histogram: Histogram) -> Spread:
    """Return the spread of nothing."""
    return Spread([0] * (len(histogram.bounds) + 1))


def observe(spread: Spread, histogram: Histogram, value: float) -> None:
    """Add one observation."""
    spread.buckets[bisect_left(histogram.bounds, value)] += 1
    spread.sum += value


def spread_of(histogram: Histogram, observations: Mapping[int, int]) -> Spread:
    """Return the spread of values that were each observed so many times."""
    spread = empty_spread(histogram)
    for value, times in observations.items():
        spread.buckets[bisect_left(histogram.bounds, value)] += times
        spread.sum += value * times
    return spread


class Figures(Struct):
    """Values by metric and labels; counters and histograms since the start of a process."""

    counters: dict[str, dict[Labels, float]] = field(default_factory=dict)
    gauges: dict[str, dict[Labels, float]] = field(default_factory=dict)
    histograms: dict[str, dict[Labels, Spread]] = field(default_factory=dict)

    def add(self, others: "Figures") -> None:
        """Add other figures to these."""
        for mine, theirs in ((self.counters, others.counters), (self.gauges, others.gauges)):
            for name, values in theirs.items():
                sums = mine.setdefault(name, {})
                for labels, value in values.items():
                    sums[labels] = sums.get(labels, 0) + value
        for name, spreads in others.histograms.items():
            sums_of = self.histograms.setdefault(name, {})
            for labels, spread in spreads.items():
                before = sums_of.get(labels)
                sums_of[labels] = spread if before is None else _sum(before, spread)


def _sum(one: Spread, other: Spread) -> Spread:
    buckets = [mine + theirs for mine, theirs in zip(one.buckets, other.buckets, strict=True)]
    return Spread(buckets, one.sum + other.sum)
