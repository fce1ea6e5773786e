"""The service in the forms that it is run in, its store, and how each of its parts is killed."""

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from typing import Any

import apsw
import asyncpg  # type: ignore[import-untyped]
import httpx

from petstore.webhooks.signing import LENGTH, text_of_master
from proof.ledger import Rows, StoredCategory, StoredOrder, StoredPet
from support.postgres import PostgresServer
from support.process import ServerProcess, is_ready
from support.redis_server import RedisServer
from support.waiting import within

_READY_SECONDS = 60
_WEEK = timedelta(days=7)
_NETWORK = ("--webhook-network", "127.0.0.0/8")
_ROWS = (
    "SELECT id, name, category_id, status FROM pets",
    "SELECT id, ship_date, pet_id, status, amount FROM orders",
    "SELECT id, name FROM categories",
)


class Deployment:
    """A service on a store of its own in ``folder``; of what it needs, some may be shared.

    ``options`` are those of ``petstore serve``, ``env`` is added to its environment. It listens on
    ``listener`` if that is given, as under systemd. If it has ``webhooks``, they may deliver to
    this machine; another process delivers.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        workers: int = 1,
        redis: RedisServer | None = None,
        postgres: PostgresServer | None = None,
        database: str = "",
        env: dict[str, str] | None = None,
        listener: socket.socket | None = None,
        webhooks: bool = False,
    ) -> None:
        self.folder = folder
        self.workers = workers
        self.redis = redis
        self.postgres = postgres
        self.database = database or (postgres.new_store() if postgres else "")
        self._process: dict[str, Any] = {"env": env, "listener": listener}
        self._options = [*options, "--workers", str(workers)]
        if redis is not None and "--redis" not in options:
            self._options += ["--redis", redis.url]
        if webhooks:
            secret_file = folder / "master.secret"
            secret_file.touch(0o600)
            secret_file.write_bytes(text_of_master(token_bytes(LENGTH)))
            self.webhook_options = (*_NETWORK, "--secret-file", str(secret_file))
            self._options += self.webhook_options
        self._server: ServerProcess | None = None
        self._token = ""

    @property
    def server(self) -> ServerProcess:
        """The processes of the service."""
        assert self._server is not None
        return self._server

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self.folder / "petstore.db"

    def port(self) -> int:
        """Return where it listens now: a restart may change it."""
        return self.server.port

    @property
    def token(self) -> str:
        """The token of a key without limits."""
        if not self._token:
            self._token = self.server.issue()
        return self._token

    def register_category(self, name: str = "Pets") -> None:
        """Register a category, unless it is there: files in the console need one."""
        headers = {"Authorization": f"Bearer {self.token}"}
        response = httpx.post(
            f"{self.server.url}/v1/categories", headers=headers, json={"name": name}
        )
        assert response.status_code in (201, 409), response.text

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self._server = ServerProcess(
            self.folder, *self._options, database=self.database, **self._process
        )
        self.server.wait_until_ready(_READY_SECONDS)

    def stop(self) -> int:
        """Stop it in good order and return its exit status."""
        return self.server.stop(20)

    def kill(self) -> None:
        """End every process of it at once."""
        if self._server is not None:
            self._server.kill()

    # What is killed, and what brings it back

    def kill_service(self) -> None:
        """Kill every process of the service at once, and start it again."""
        self.kill()
        self.start()

    def kill_worker(self) -> None:
        """Kill one process that serves; the supervisor replaces it."""
        killed = self.server.workers()[0]
        os.kill(killed, signal.SIGKILL)
        replaced = within(_READY_SECONDS, lambda: self._has_workers_without(killed))
        assert replaced, "a killed worker was not replaced"

    def _has_workers_without(self, killed: int) -> bool:
        workers = self.server.workers()
        return killed not in workers and len(workers) == self.workers and is_ready(self.server.url)

    def kill_supervisor(self) -> None:
        """Kill the process that starts the others; they end by themselves, and it starts again."""
        workers = self.server.workers()
        self.server.process.kill()
        self.server.stop()  # waits for its end
        ended = within(
            _READY_SECONDS, lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers)
        )
        assert ended, "a worker outlived its supervisor"
        self.start()

    def kill_postgres(self) -> None:
        """Kill every process of PostgreSQL, and start it again."""
        assert self.postgres is not None
        self.postgres.kill()
        (self.postgres.data / "postmaster.pid").unlink()  # pg_ctl would wonder about it
        self.postgres.start()

    def kill_redis(self) -> None:
        """Kill Redis, which forgets everything, and start it again."""
        assert self.redis is not None
        self.redis.kill()
        self.redis.start()

    def targets(self) -> dict[str, Callable[[], None]]:
        """Return what can be killed, by name."""
        targets = {
            "the service": self.kill_service,
            "a worker": self.kill_worker,
            "the supervisor": self.kill_supervisor,
        }
        if self.postgres is not None:
            targets["PostgreSQL"] = self.kill_postgres
        if self.redis is not None:
            targets["Redis"] = self.kill_redis
        return targets

    # What it holds

    def rows(self) -> Rows:
        """Return all rows of one moment, read from the database by another program."""
        if self.postgres is not None:
            pets, orders, categories = asyncio.run(self._rows_of_postgres())
        else:
            pets, orders, categories = self._rows_of_sqlite()
        return Rows(
            [StoredPet(*row) for row in pets],
            [
                StoredOrder(number, datetime.fromisoformat(tag).isoformat(), *others)
                for number, tag, *others in orders
            ],
            [StoredCategory(*row) for row in categories],
        )

    async def _rows_of_postgres(self) -> list[Any]:
        assert self.postgres is not None
        connection = await asyncpg.connect(self.postgres.url(self.database.rpartition("/")[2]))
        try:
            async with connection.transaction(isolation="repeatable_read"):
                return [await connection.fetch(query) for query in _ROWS]
        finally:
            await connection.close()

    def _rows_of_sqlite(self) -> list[Any]:
        connection = self._sqlite()
        try:
            connection.execute("BEGIN")  # all of one moment
            return [connection.execute(query).fetchall() for query in _ROWS]
        finally:
            connection.close()

    def is_sound(self) -> bool:
        """Return whether SQLite finds no damage in the file."""
        connection = self._sqlite()
        try:
            return bool(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)])
        finally:
            connection.close()

    def _sqlite(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.file), apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(10_000)
        return connection

    def inventory(self) -> dict[str, int]:
        """Return how many pets of each status there are, by the service.

        Raises:
            httpx.HTTPError: it gave no such response.
        """
        counts: dict[str, int] = self._get("inventory")
        return counts

    def numbers(self) -> dict[str, dict[str, int]]:
        """Return the inventory and the sums of the sales of two weeks, by the service.

        Raises:
            httpx.HTTPError: it gave no such response.
        """
        told = {"inventory": self.inventory()}
        today = datetime.now(UTC).date()
        days = {"from": f"{today - _WEEK}", "to": f"{today + _WEEK}"}
        for by in ("day", "category"):
            rows = self._get("sales", by=by, **days)["rows"]
            sums = {name: sum(row[name] for row in rows) for name in ("orders", "amount")}
            told[f"sales by {by}"] = sums
        return told

    def _get(self, what: str, **query: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.server.url}/v1/store/{what}"
        response = httpx.get(url, params=query, headers=headers, timeout=10)
        return response.raise_for_status().json()


@contextmanager
def deployed(folder: Path, *options: str, **parts: Any) -> Iterator[Deployment]:
    """Run a deployment on a fresh store until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    deployment = Deployment(folder, *options, **parts)
    try:
        deployment.start()
        yield deployment
    finally:
        deployment.kill()
        shutil.rmtree(folder, ignore_errors=True)
