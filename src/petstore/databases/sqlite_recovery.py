"""The connections of a store to its SQLite file, and new ones once a file was deleted.

The write-ahead log and its index lie beside the file, where anybody may delete them while they are
in use. Then what was committed to the log is saved, and the files are opened again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NoReturn, TypeAlias

import apsw

from petstore.clock import SECOND, Milliseconds
from petstore.coalescing import settle
from petstore.databases.contract import T, as_unavailable
from petstore.databases.sqlite_connection import OPERATIONAL_ERRORS, connect, files_of
from petstore.errors import PetstoreError, Unavailable

DATA_VERSION = "PRAGMA data_version"
_MAX_LOG_BYTES = 16 * 1024 * 1024
_RETRY_SECONDS = 0.05
_READER_TIMEOUT: Milliseconds = 50
_LOG = logging.getLogger(__name__)

_Call: TypeAlias = tuple[asyncio.AbstractEventLoop, Callable[[], object], Callable[[Any], object]]
"""A function, and the one that gets what it returned or raised, in that event loop."""


class SqliteConnections:
    """A reader and a writer on the file ``path``, once they are open.

    The thread of the event loop uses both. What waits for the disk or for a lock is put into
    ``calls``, for a thread that has the writer while the loop waits for it. ``read`` and ``write``
    execute a statement and return a cursor. With ``syncs``, a COMMIT returns once it is on disk.
    """

    def __init__(self, path: Path, timeout: Milliseconds, *, syncs: bool) -> None:
        self.timeout = timeout
        self.opened_times = 0
        self._path = path
        self._syncs = syncs
        self._is_replacing = False

    async def open(self) -> None:
        """Connect in the process that uses the file: SQLite must not be forked."""
        with as_unavailable(OPERATIONAL_ERRORS):
            self._connect(self.timeout)
        # A ThreadPoolExecutor takes as long for a call as SQLite for the statements of a change.
        self.calls = SimpleQueue[_Call | None]()
        self._thread = Thread(
            target=_make_each, args=(self.calls,), name="sqlite-commit", daemon=True
        )
        self._thread.start()

    async def close(self) -> None:
        """Save what is only in a deleted log, and close the file."""
        if self.files.are_open:
            try:
                if not await self.save_log(is_last=True):
                    _LOG.error("%s", self.files.way_on())
            except (PetstoreError, *OPERATIONAL_ERRORS) as error:
                _LOG.warning("%s: its log was not saved: %s", self._path, error)
        self.calls.put(None)
        self._thread.join()
        self._opened.close()

    def _connect(self, timeout: Milliseconds) -> None:
        with ExitStack() as opened:
            files = opened.enter_context(files_of(self._path))
            with files.opening(timeout):
                writer = self._open_connection(opened, self.timeout)
                # A backup that was restored since the migration is in rollback mode.
                writer.pragma("journal_mode", "wal")
                writer.pragma("synchronous", "full" if self._syncs else "normal")
                writer.pragma("foreign_keys", "on")
                writer.pragma("secure_delete", "on")  # personal data that is deleted is overwritten
                # SQLite copies each page that a savepoint changes. In a temporary file, the copies
                # of an import would be as much to write as the import itself.
                writer.pragma("temp_store", "memory")
                # The log grows during a long read; SQLite truncates it once it starts over.
                writer.pragma("journal_size_limit", _MAX_LOG_BYTES)
                # Readers only wait for a recovery; and the event loop waits with them.
                reader = self._open_connection(opened, _READER_TIMEOUT)
                reader.pragma("query_only", "on")
                # One cursor each: a new one for every statement costs as much as a small statement.
                write, read = writer.cursor().execute, reader.cursor().execute
                for execute in (write, read):
                    execute(DATA_VERSION).fetchall()  # SQLite opens the log only to read it
            self._opened = opened.pop_all()
        self.files, self.writer, self.write = files, writer, write
        self.opened_times += 1
        self.read: Callable[..., apsw.Cursor] = read  # the loop may read from now on

    def _open_connection(self, opened: ExitStack, timeout: Milliseconds) -> apsw.Connection:
        connection = connect(self._path, timeout)
        opened.callback(connection.close)
        # Otherwise SQLite compiles a statement with LIMIT ?1 again for each value of ?1.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a ``function`` that waits for the disk or for a lock.

        Raises:
            Unavailable: the files were closed for good.
        """
        if not self._thread.is_alive():
            msg = "the database is closed"
            raise Unavailable(msg)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self.calls.put((loop, partial(function, *arguments), partial(settle, done)))
        return await done

    async def reopen(self) -> None:
        """Open files again that ``replace_files`` has closed.

        Raises:
            Unavailable: others still use the old files.
        """
        # Whoever waits for a change learns the reason before their own time is over.
        await self.in_thread(self._connect, self.timeout // 2)
        self._is_replacing = False
        _LOG.info("%s: new files are open beside it; changes continue", self._path)

    async def replace_files(self) -> None:
        """Close files of which one was deleted, and open new ones once nobody uses the old ones.

        Raises:
            Unavailable: others still use the old files; or the database or its log was replaced.
        """
        self.files.check_database()
        self.warn_once()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout / 2 / SECOND
        while not await self.save_log():
            if loop.time() >= deadline:
                raise Unavailable(self.files.kept())
            await asyncio.sleep(_RETRY_SECONDS)
        self.read = _refuse_read
        self._opened.close()
        await self.reopen()

    def warn_once(self) -> None:
        """Log which file was deleted, unless that was logged since the files were opened."""
        if not self._is_replacing:
            self._is_replacing = True
            _LOG.warning(
                "%s; changes wait until new files can be opened, once nobody uses the old ones",
                self.files.kept(),
            )

    async def save_log(self, *, is_last: bool = False) -> bool:
        """Bring to the database what is only in a log without a name: SQLite still has it open.

        While another program reads, SQLite may not bring everything there. Then a copy of the log
        is made. Return whether the database has everything.
        """
        self.files.check_log()
        if self.files.log_is_in_place():
            return True
        save = partial(self.files.save_log, self.timeout // 2, self._checkpoint, is_last=is_last)
        return await self.in_thread(save)

    def _checkpoint(self) -> bool:
        """Bring to the database what readers allow; return whether that was everything."""
        with suppress(apsw.BusyError):
            frames, done = self.writer.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
            return frames == done
        return False


def _make_each(calls: SimpleQueue[_Call | None]) -> None:
    for call in iter(calls.get, None):
        _make(*call)
        del call  # or what it refers to stays in memory until the next one


def _make(
    loop: asyncio.AbstractEventLoop,
    function: Callable[[], object],
    take_outcome: Callable[[Any], object],
) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile
        try:
            outcome = function()
        except BaseException as error:  # noqa: BLE001 - its caller gets it
            loop.call_soon_threadsafe(take_outcome, error)
        else:
            loop.call_soon_threadsafe(take_outcome, outcome)


def _refuse_read(*_: object) -> NoReturn:
    msg = "the database is not available: its files are being opened again"
    raise Unavailable(msg)
