"""The results of a comparison, as saved in ``results/results.json``."""

import msgspec

from rounds import Series
from tables import Span


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
