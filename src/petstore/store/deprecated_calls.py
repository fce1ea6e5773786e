"""Calls of deprecated operations: counted in memory, saved in batches, read for 30 days."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from petstore.clock import DAY, Clock, Milliseconds, utc_second
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Store,
    Unit,
    Value,
    placeholder_list,
    placeholders,
)
from petstore.domain.api_keys import Environment
from petstore.domain.deprecations import (
    KEPT_DAYS,
    Calls,
    DeprecatedOperation,
    DeprecatedUse,
    KeyDeprecatedUse,
    user_agent_text,
)
from petstore.store.counted_batches import SAVED_BATCH, CountedBatches
from petstore.store.pages import Page
from petstore.store.retention import prune_by_age

_Name: TypeAlias = tuple[int, str, int]
"""The id of a key, the id of an operation and the number of a day."""

_VALUES = ("calls", *Calls.__struct_fields__[1:])
_COLUMNS = ("key_id", "operation", "day", *_VALUES)
_LATEST = ", ".join(
    f"{name} = CASE WHEN excluded.last_called_at >= deprecated_calls.last_called_at"
    f" THEN excluded.{name} ELSE deprecated_calls.{name} END"
    for name in _VALUES[1:]
)
# The cursor of a list has the key and the number of the operation in one integer.
_MAX_OPERATIONS = 1000
_LAST = """(
    SELECT {} FROM deprecated_calls d WHERE d.key_id = c.key_id AND d.operation = c.operation
    ORDER BY d.day DESC LIMIT 1
)"""
# The last call is one of the latest day. The sign keeps both databases from using the index by day.
_SELECT = f"""SELECT c.key_id, c.operation, (SELECT name FROM api_keys WHERE id = c.key_id),
        CAST(sum(c.calls) AS BIGINT),
        {", ".join(_LAST.format(name) for name in _VALUES[1:])}{{more}}
    FROM deprecated_calls c WHERE +c.day >= ?1 AND {{condition}}
    GROUP BY c.key_id, c.operation ORDER BY c.key_id, c.operation {{limit}}
"""  # noqa: S608 - only names


class _Tally(Struct):
    """The calls of one name that are not saved yet, and the last of them as it came."""

    calls: int = 0
    called_at: Milliseconds = 0
    user_agent: bytes | None = None
    request_id: str = ""

    def counted(self) -> Calls:
        text = user_agent_text(self.user_agent)
        return Calls(self.calls, self.called_at, text, self.request_id)


class DeprecatedCalls:
    """Counts calls of deprecated operations by key, operation and UTC day."""

    def __init__(
        self, store: Store, clock: Clock, operations: Sequence[DeprecatedOperation]
    ) -> None:
        self._store = store
        self._clock = clock
        self.operations = operations
        self._batches: CountedBatches[_Name, _Tally] = CountedBatches(store, clock, _add)

    def count(
        self,
        key_id: int,
        operation: str,
        now: Milliseconds,
        user_agent: bytes | None,
        request_id: str,
    ) -> None:
        """Count one call. Every request of a deprecated operation does."""
        name, counted = (key_id, operation, now // DAY), self._batches.counted
        tally = counted.get(name)
        if tally is None:
            tally = counted[name] = _Tally()
        tally.calls += 1
        tally.called_at = now
        tally.user_agent = user_agent
        tally.request_id = request_id

    async def save(self) -> None:
        """Save everything that is not saved yet.

        Raises:
            Unavailable: the counts could not be saved; the next call saves them.
        """
        await self._batches.save()

    async def of_key(self, key_id: int) -> list[DeprecatedUse]:
        """Return what a key has called in the last 30 days, unsaved calls of this process too."""
        first = first_day(self._clock())
        unsaved = self._batches.unsaved()
        batch = f", {SAVED_BATCH.format('?3')}"
        sql = _SELECT.format(more=batch, condition="c.key_id = ?2", limit="")
        parameters = (first, key_id, self._batches.process)
        rows = await self._store.read(
            Statement(sql, parameters, name="select_deprecated_uses_and_batch")
        )
        calls = {operation: Calls(*counts) for _, operation, _, *counts, _ in rows}
        for (caller, operation, day), tally in unsaved(rows[0][-1] if rows else 0):
            if caller == key_id and day >= first:
                more = tally.counted()
                before = calls.get(operation)
                calls[operation] = before.and_also(more) if before else more
        return [use_of(each, calls[each.id]) for each in self.operations if each.id in calls]


async def list_uses(
    store: Reader,
    operations: Sequence[DeprecatedOperation],
    environment: Environment | None,
    after: int | None,
    limit: int,
    clock: Clock,
) -> Page[KeyDeprecatedUse]:
    """Return the first ``limit`` saved uses after a position, of ``environment`` if given.

    They are ordered by key and then by the id of the operation. Each key has one use of each of
    ``operations`` that it called in the last 30 days.
    """
    by_id = {each.id: number for number, each in enumerate(operations)}
    key_id, number = divmod(after or 0, _MAX_OPERATIONS)
    last = operations[number].id if after is not None and number < len(operations) else ""
    names = placeholder_list(5, by_id)
    condition = f"(c.key_id, c.operation) > (?2, ?3) AND c.operation IN ({names})"
    parameters: list[Value] = [first_day(clock()), key_id, last, limit + 1, *by_id]
    if environment is not None:
        parameters.append(environment)
        of_key = "(SELECT environment FROM api_keys WHERE id = c.key_id)"
        condition += f" AND {of_key} = ?{len(parameters)}"
    sql = _SELECT.format(more="", condition=condition, limit="LIMIT ?4")
    rows = await store.read(Statement(sql, parameters, name="select_deprecated_uses"))
    next_after = None
    if len(rows) > limit:
        key_id, name = rows[limit - 1][:2]
        next_after = key_id * _MAX_OPERATIONS + by_id[name]
    return Page([_key_use_of(row, operations[by_id[row[1]]]) for row in rows[:limit]], next_after)


def select_uses(first: int, key_id: int) -> Statement:
    """Return the SELECT of what a key has called from day ``first`` on, a row an operation."""
    sql = _SELECT.format(more="", condition="c.key_id = ?2", limit="")
    return Statement(sql, (first, key_id), name="select_deprecated_uses_of_key")


def first_day(now: Milliseconds) -> int:
    """Return the number of the first of the last 30 days."""
    return now // DAY - KEPT_DAYS + 1


def use_of(operation: DeprecatedOperation, calls: Calls) -> DeprecatedUse:
    """Return the calls to an operation as their key sees them."""
    return DeprecatedUse(
        operation=operation.id,
        method=operation.method,
        path=operation.path,
        since=operation.since,
        sunset=operation.sunset,
        use=operation.use,
        documentation=operation.documentation,
        calls=calls.calls,
        lastCalledAt=utc_second(calls.last_called_at),
        lastUserAgent=calls.last_user_agent,
        lastRequestId=calls.last_request_id,
    )


def prune_deprecated_calls(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the calls of days that ended before a moment; return how many."""
    return prune_by_age("deprecated_calls", "key_id, operation, day", "day", before // DAY)


def _add(tallies: Sequence[tuple[_Name, _Tally]]) -> Statement:
    rows = ((*name, *asdict(tally.counted()).values()) for name, tally in tallies)
    parameters: Iterable[Value] = chain.from_iterable(rows)
    return Statement(
        f"INSERT INTO deprecated_calls ({', '.join(_COLUMNS)})"  # noqa: S608 - only names
        f" VALUES {placeholders(len(_COLUMNS), len(tallies))}"
        f" ON CONFLICT (key_id, operation, day) DO UPDATE"
        f" SET calls = deprecated_calls.calls + excluded.calls, {_LATEST}",
        tuple(parameters),
        name="insert_deprecated_calls",
        affects_pages=False,
    )


def _key_use_of(row: Row, operation: DeprecatedOperation) -> KeyDeprecatedUse:
    key_id, _, name, *counts = row
    use = use_of(operation, Calls(*counts))
    return KeyDeprecatedUse(**asdict(use), keyId=key_id, keyName=name)
