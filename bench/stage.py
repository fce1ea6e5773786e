"""Where the peers work: a store filled once by this service's commands, and a copy for each."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw

# The servers of the tests serve here too.
sys.path.append(str(Path(__file__).parent.parent / "tests"))

from support import postgres
from support.postgres import PostgresServer
from support.redis_server import redis_server


class Environment(NamedTuple):
    """A copy of the store: its address for a peer, its URL for our commands, Redis, and SQL access.

    The output of the peer goes to ``log``.
    """

    database: str
    url: str
    redis: str
    run_sql: Callable[[str], Any]
    log: Path


class Stage(Protocol):
    """A store to fill at ``url``, and then to copy; ``folder`` has room for files."""

    url: str
    folder: Path

    @contextmanager
    def copy(self, name: str) -> Iterator[Environment]:
        """Copy the store under a name; no process may be using it."""
        ...


class SqliteStage:
    """A SQLite file in ``folder``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._file = folder / "store.db"
        self.url = f"sqlite:///{self._file}"

    @contextmanager
    def copy(self, name: str) -> Iterator[Environment]:
        file = self._file.with_name(f"{name}.db")
        shutil.copyfile(self._file, file)
        with file.open("rb") as copied:
            os.fsync(copied.fileno())  # else the first commit of a peer waits for all of it
        connection = apsw.Connection(str(file))
        connection.set_busy_timeout(10_000)
        try:
            yield Environment(
                database=str(file),
                url=f"sqlite:///{file}",
                redis="",
                run_sql=connection.execute,
                log=file.with_suffix(".log"),
            )
        finally:
            connection.close()


class SharedStage:
    """A database of a PostgreSQL server, and a Redis server for each copy."""

    def __init__(self, postgres: PostgresServer, folder: Path) -> None:
        self._postgres = postgres
        self.folder = folder
        self.url = postgres.new_database()

    @contextmanager
    def copy(self, name: str) -> Iterator[Environment]:
        """Copy the database."""
        template = self.url.rpartition("/")[2]
        url = self._postgres.new_database(f"TEMPLATE {template}")
        with redis_server() as redis:
            yield Environment(
                database=url,
                url=url,
                redis=redis.url,
                run_sql=partial(self._postgres.sql, database=url.rpartition("/")[2]),
                log=self.folder / f"{name}-shared.log",
            )


def postgres_server() -> AbstractContextManager[PostgresServer]:
    """Run a PostgreSQL server until the block ends."""
    return postgres.postgres_server(shared_buffers="256MB")
