"""The version of what pages show: a number that changes with the commits of all processes."""

from petstore.databases.sqlite_recovery import DATA_VERSION, SqliteConnections


class PageVersions:
    """Counts the commits that can show in a page.

    The data version of a connection counts the commits of all others. So the reader sees every
    commit, and the writer those of other processes. Of its own commits, the writer counts
    ``own_changes``, the statements that affect pages.
    """

    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections
        self.own_changes = 0
        self._seen: tuple[int, int] | None = None
        self._basis: tuple[int, int, int] | None = None
        self._version = 0

    def current(self, *, is_committing: bool) -> int | None:
        """Return the version, or ``None`` if only the writer could tell and ``is_committing``."""
        connections = self._connections
        if (connections.opened_times, connections.read(DATA_VERSION).get) != self._seen:
            if is_committing:  # the thread has the connection
                return None
            self.note()
        return self._version

    def note(self) -> None:
        """Count up the version if there was a commit that can show in a page."""
        opened_times = self._connections.opened_times
        self._seen = (opened_times, self._connections.read(DATA_VERSION).get)
        basis = (opened_times, self._connections.write(DATA_VERSION).get, self.own_changes)
        if basis != self._basis:
            self._basis = basis
            self._version += 1
