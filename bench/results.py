"""What a comparison came to, as it is kept in ``results/results.json``."""

import msgspec

from rounds import Series
from tables import Span


class ComparedSeries(Series, frozen=True, kw_only=True):
    """All rounds of one work at so many connections."""

    connections: int


class Contestant(msgspec.Struct, frozen=True):
    """A service, what it did otherwise than the interface says, and its figures.

    With differences it has no figures. Starts are in seconds, to the first answer; memory in MB.
    """

    name: str
    title: str
    versions: str
    differences: list[str] = []
    starts: list[float] = []
    peak_megabytes: float = 0
    series: list[ComparedSeries] = []

    def at(self, work: str, connections: int) -> ComparedSeries | None:
        """Return the figures of a work, if there are any that count."""
        for one in self.series:
            if (one.work, one.connections) == (work, connections) and not one.errors:
                return one
        return None


class Results(msgspec.Struct, frozen=True):
    """A whole run: the machine, and who was measured on SQLite, and on PostgreSQL and Redis.

    ``load_average`` is that of the machine before; ``fsync`` is in µs; with ``own_core`` the server
    under load had a core to itself.
    """

    machine: str
    system: str
    load_average: float
    fsync: Span
    rounds: int
    seconds: int
    own_core: bool
    alone: list[Contestant]
    shared: list[Contestant]
