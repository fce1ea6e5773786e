"""A real streaming replica of a PostgreSQL server of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from support.postgres import PostgresServer, database_name
from support.process import free_port
from support.waiting import within


class PostgresReplica(PostgresServer):
    """A replica of ``primary``, in a subfolder of the primary's folder."""

    def __init__(self, primary: PostgresServer) -> None:
        self.primary = primary
        self.folder = primary.folder / "replica"
        self.data = self.folder / "data"
        self.port = free_port()
        self._account = primary._account  # noqa: SLF001 - it runs as its primary does
        # It looks for a primary that was away after a moment, and not after five seconds.
        self._settings = {**primary._settings, "wal_retrieve_retry_interval": "50ms"}  # noqa: SLF001
        primary.run(
            *("pg_basebackup", "--host=127.0.0.1", f"--port={primary.port}"),
            *("--username=petstore", "--checkpoint=fast", "--no-sync"),
            *("--write-recovery-conf", "-D", str(self.data)),
        )
        self.start()

    def url_of(self, primary_url: str) -> str:
        """Return the address here of a database that the primary has at ``primary_url``."""
        return self.url(database_name(primary_url))

    def catch_up(self) -> None:
        """Wait until it has replayed all that the primary has written by now."""
        written = self.primary.sql("SELECT pg_current_wal_insert_lsn()")
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
        assert within(30, lambda: self.sql(replayed) == "t")

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Let it replay nothing until the block ends: what it has grows old."""
        self.catch_up()
        self.sql("SELECT pg_wal_replay_pause()")
        assert within(30, lambda: self.sql("SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            self.sql("SELECT pg_wal_replay_resume()")
            self.catch_up()


@contextmanager
def replicated() -> Iterator[PostgresReplica]:
    """Run a server and a replica of it until the block ends."""
    primary = PostgresServer()
    try:
        replica = PostgresReplica(primary)
        try:
            yield replica
        finally:
            replica.remove()
    finally:
        primary.remove()
