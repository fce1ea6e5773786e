"""Rounds of load on a server, and the results of a comparison in ``results/results.json``."""

import msgspec

import wrk
from servers import Server
from tables import Span, span


class Round(msgspec.Struct, frozen=True):
    """The result of a round: requests a second, latencies in ms, CPU of the server in µs."""

    rate: float
    p50: float
    p99: float
    p999: float
    cpu: float
    errors: int

    @property
    def microseconds(self) -> float:
        """The time of a request, if they ran one after another."""
        return 1e6 / self.rate


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one work."""

    work: str
    rounds: list[Round]

    @property
    def errors(self) -> int:
        """How many responses failed; if any did, the round does not count."""
        return sum(one.errors for one in self.rounds)

    def span(self, metric: str) -> Span:
        """Return the span of one field of ``Round``."""
        return span(getattr(one, metric) for one in self.rounds)


class ComparedSeries(Series, frozen=True, kw_only=True):
    """All rounds of one work at so many connections."""

    connections: int


class PeerResults(msgspec.Struct, frozen=True):
    """A peer, how it differs from the interface, and its results if it does not.

    Starts are in seconds, to the first response; memory, after the last round, in MB.
    """

    name: str
    title: str
    versions: str
    differences: list[str] = []
    starts: list[float] = []
    megabytes: float = 0
    series: list[ComparedSeries] = []

    def at(self, work: str, connections: int) -> ComparedSeries | None:
        """Return the results of a work, or None without a round free of errors."""
        for one in self.series:
            if (one.work, one.connections) == (work, connections) and not one.errors:
                return one
        return None


class Results(msgspec.Struct, frozen=True):
    """A whole run: the machine, and the peers on SQLite, and on PostgreSQL and Redis.

    ``load_average`` is from before the run; ``fsync`` is in µs; with ``own_core`` the server under
    load had a core to itself.
    """

    machine: str
    system: str
    load_average: float
    fsync: Span
    rounds: int
    seconds: int
    own_core: bool
    alone: list[PeerResults]
    shared: list[PeerResults]


def measure(server: Server, requests: list[bytes], connections: int, seconds: int) -> Round:
    """Put load on a server."""
    before = server.cpu_seconds
    load = wrk.put_load(server.url, requests, connections, seconds)
    spent = server.cpu_seconds - before
    return Round(
        rate=round(load.rate, 1),
        p50=load.p50 / 1e3,
        p99=load.p99 / 1e3,
        p999=load.p999 / 1e3,
        cpu=round(spent / max(1, load.responses) * 1e6, 1),
        errors=load.errors,
    )
