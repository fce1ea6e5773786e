"""Group commit: units of work that arrive during a commit run in the next transaction.

Each runs in the thread of the event loop, in a savepoint unless it is alone, and each caller gets
its result after the fsync. Only COMMIT and waiting for the lock leave that thread. Between the
statements of a long unit others run: they read what is committed.
"""

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import apsw
from msgspec import Struct

from petstore.clock import SECOND
from petstore.coalescing import settle
from petstore.databases.contract import T, Unit, as_unavailable
from petstore.databases.sqlite_connection import OPERATIONAL_ERRORS, SqliteConnections
from petstore.errors import Unavailable
from petstore.time_slices import TimeSlices

_MAX_GROUP = 256
_MAX_TURNS = 4
_WATCH_SECONDS = 0.05
# Longer than most groups take: to rest delays the change, and whoever waits for the lock.
_SLICE_SECONDS = 0.01
# So that no unit waits long for the commit of others, nor is refused and committed all the same.
_GROUP_SECONDS = 0.1
_COMMIT_SECONDS = 0.3
# SQL before a unit, to undo it, and after it.
_IN_SAVEPOINT = "SAVEPOINT unit", "ROLLBACK TO unit", "RELEASE unit"
# A savepoint copies each page before it changes: 7 % of the CPU of a change.
_ALONE = "", "ROLLBACK; BEGIN", ""


class _Waiting(Struct):
    """``deadline`` is by the clock of the loop: the commit's, once the unit has run."""

    unit: Unit[Any]
    done: asyncio.Future[Any]
    deadline: float


_Outcome: TypeAlias = tuple[asyncio.Future[Any], Any]
"""The future of a caller, and the result or error of its unit."""


class GroupCommit:
    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections
        self._waiting: deque[_Waiting] = deque()
        self._group: asyncio.Task[None] | None = None

    async def write(self, unit: Unit[T]) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        deadline = loop.time() + self._connections.timeout / SECOND
        self._waiting.append(_Waiting(unit, done, deadline))
        if self._group is None:
            self._group = asyncio.create_task(self._commit_groups())
        try:
            return await done
        finally:
            del done  # or it would be in the traceback of its error

    async def finish(self) -> None:
        while self._group is not None:
            await self._group

    async def _commit_groups(self) -> None:
        try:
            while self._waiting:
                size = min(len(self._waiting), _MAX_GROUP)
                await self._commit([self._waiting.popleft() for _ in range(size)])
                # Callers with a result may write again at once: larger groups, fewer fsyncs.
                for _ in range(min(size, _MAX_TURNS)):
                    await asyncio.sleep(0)
                    if len(self._waiting) >= size:
                        break
        finally:
            self._group = None

    async def _commit(self, group: list[_Waiting]) -> None:
        loop = asyncio.get_running_loop()
        self._watching = loop.call_later(_WATCH_SECONDS, self._give_up, group)
        try:
            with as_unavailable(OPERATIONAL_ERRORS):
                await self._begin()
                outcomes = await self._run_group(group)
                await self._commit_durably(outcomes)
        except BaseException as error:
            with suppress(apsw.Error):  # if this fails, so does the next BEGIN
                if self._connections.writer.in_transaction:
                    self._connections.write("ROLLBACK")
            for waiting in group:
                settle(waiting.done, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._watching.cancel()

    async def _commit_durably(self, outcomes: list[_Outcome]) -> None:
        """Commit in the thread, and settle all outcomes in the very next turn of the loop.

        If a file lost its name, that waits until what was committed is in the database.
        """
        connections, loop = self._connections, asyncio.get_running_loop()
        committed: asyncio.Future[bool] = loop.create_future()

        def settle_all(ended: object) -> None:
            error = ended if isinstance(ended, BaseException) else None
            is_safe = error is None and not connections.files.lost()
            if is_safe:
                for outcome in outcomes:
                    settle(*outcome)
            settle(committed, error or is_safe)

        connections.calls.put((loop, partial(connections.write, "COMMIT"), settle_all))
        if not await committed:
            if not await connections.is_safe():
                raise Unavailable(connections.lost)
            for outcome in outcomes:
                settle(*outcome)

    def _give_up(self, group: list[_Waiting]) -> None:
        """Fail everything whose deadline has passed; units not yet run will not run."""
        loop = asyncio.get_running_loop()
        self._watching = loop.call_later(_WATCH_SECONDS, self._give_up, group)
        for waiting in (*group, *self._waiting):
            if waiting.deadline <= loop.time():
                error = Unavailable("the database did not confirm the change in time")
                settle(waiting.done, error)

    async def _begin(self) -> None:
        if self._connections.lost or self._connections.files.lost():
            raise await self._connections.refusal()
        connections = self._connections
        try:
            connections.writer.set_busy_timeout(0)
            connections.write("BEGIN IMMEDIATE")
        except apsw.BusyError:
            connections.writer.set_busy_timeout(connections.timeout)
            await connections.in_thread(partial(connections.write, "BEGIN IMMEDIATE"))

    async def _run_group(self, group: list[_Waiting]) -> list[_Outcome]:
        """Run the units of a group until it has taken its time; the others are in the next one."""
        loop, outcomes = asyncio.get_running_loop(), list[_Outcome]()
        # All other changes wait for this group.
        slices = TimeSlices(_SLICE_SECONDS, queues=False)
        ends = loop.time() + _GROUP_SECONDS
        is_alone = len(group) == 1
        for place, waiting in enumerate(group):
            if outcomes and loop.time() >= ends:
                self._waiting.extendleft(reversed(group[place:]))
                del group[place:]
                break
            # A change that got a 503 in the meantime must not be made.
            if not waiting.done.done():
                outcomes.append((waiting.done, await self._run(waiting, slices, is_alone=is_alone)))
                waiting.deadline = max(waiting.deadline, loop.time() + _COMMIT_SECONDS)
        return outcomes

    async def _run(self, waiting: _Waiting, slices: TimeSlices, *, is_alone: bool) -> Any:
        writer, execute, unit = self._connections.writer, self._connections.write, waiting.unit
        begin, undo, end = _ALONE if is_alone else _IN_SAVEPOINT
        execute(begin)
        try:
            statement = next(unit)
            while True:
                if statement.rows is None:
                    rows = execute(statement.sql, statement.parameters).fetchall()
                else:
                    rows = writer.executemany(statement.sql, statement.rows).fetchall()
                if statement.returns_id:
                    # RETURNING would open a table for the one row each time.
                    rows = [(writer.last_insert_rowid(),)]
                await slices.rest()
                if waiting.done.done():  # its caller has got a 503, or has left
                    detail = "the change took too long"
                    raise Unavailable(detail)  # noqa: TRY301 - it undoes this unit
                statement = unit.send(rows)
        except StopIteration as finished:
            result = finished.value
        except OPERATIONAL_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - it concerns the caller of this unit alone
            execute(undo)
            # Without this frame, which has the future of the error.
            result = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
        execute(end)
        return result
