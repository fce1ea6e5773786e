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
SWITCHES = Metric(
    "petstore_limiter_fallback_switches", "Times a process went on without Redis, by its share."
)
BANS = Metric("petstore_bans", "Bans of keys that began.")
LAPSED = Metric("petstore_reservations_lapsed", "Orders cancelled as their time was over.")
REPLAYS = Metric("petstore_replays", "Answers given again to a repeated Idempotency-Key.")
COUNTERS = (REQUESTS, DECISIONS, SWITCHES, BANS, LAPSED, REPLAYS)

WORKERS = Metric("petstore_workers", "Processes that serve.")
FALLBACK = Metric("petstore_limiter_fallback", "Processes that do without Redis now.")
POOL_IN_USE = Metric("petstore_pool_in_use", "Connections to PostgreSQL at work.", ("database",))
POOL_SIZE = Metric("petstore_pool_size", "Connections to PostgreSQL there may be.", ("database",))
GAUGES = (WORKERS, FALLBACK, POOL_IN_USE, POOL_SIZE)

SECONDS = Histogram(
    Metric("petstore_request_seconds", "From the whole head to the answer.", ("operation",)),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
GROUPS = Histogram(
    Metric("petstore_commit_group_units", "Units of work in each commit to SQLite."),
    (1, 2, 4, 8, 16, 32, 64, 128, 256),
)
HISTOGRAMS = (SECONDS, GROUPS)


class Spread(Struct, array_like=True):
    """How many observations fell into each bucket, and their sum. The last bucket has no end."""

    buckets: list[int]
    sum: float = 0


def empty_spread(histogram: Histogram) -> Spread:
    """Return the spread of nothing."""
    return Spread([0] * (len(histogram.bounds) + 1))


def spread_of(histogram: Histogram, observations: Mapping[int, int]) -> Spread:
    """Return the spread of values that were each observed so many times."""
    spread = empty_spread(histogram)
    for value, times in observations.items():
        spread.buckets[bisect_left(histogram.bounds, value)] += times
        spread.sum += value * times
    return spread


class Figures(Struct):
    """Values by metric and labels; counters and histograms since the start of a process."""

    counters: dict[str, dict[Labels, int]] = field(default_factory=dict)
    gauges: dict[str, dict[Labels, int]] = field(default_factory=dict)
    histograms: dict[str, dict[Labels, Spread]] = field(default_factory=dict)

    def add(self, others: "Figures") -> None:
        """Add the figures of other processes to these."""
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
