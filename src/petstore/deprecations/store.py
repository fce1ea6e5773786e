"""The calls of deprecated operations by key and day, and the latest of them."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from petstore.chores import PeriodicTask
from petstore.clock import DAY, Clock, Milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Store, Value, placeholder_list
from petstore.databases.pages import Page
from petstore.deprecations.model import (
    Calls,
    DeprecatedOperation,
    DeprecatedUse,
    KeyDeprecatedUse,
    user_agent_text,
)
from petstore.keys.model import Environment
from petstore.usage.counts import Counts, Tally, first_day

_LAST_CALL = Calls.__struct_fields__[1:]
# The cursor of a list has the key and the number of the operation in one integer.
_MAX_OPERATIONS = 1000
_LAST = """(
    SELECT {} FROM deprecated_calls d WHERE d.key_id = c.key_id AND d.operation = c.operation
    ORDER BY d.day DESC LIMIT 1
)"""
# The last call is one of the latest day. The sign keeps both databases from using the index by day.
_SELECT = f"""SELECT c.key_id, c.operation, (SELECT name FROM api_keys WHERE id = c.key_id),
        CAST(sum(c.calls) AS BIGINT),
        {", ".join(_LAST.format(name) for name in _LAST_CALL)}
    FROM deprecated_calls c WHERE +c.day >= ?1 AND {{condition}}
    GROUP BY c.key_id, c.operation ORDER BY c.key_id, c.operation {{limit}}
"""  # noqa: S608 - only names


class DeprecatedCalls(Counts):
    """Counts calls of deprecated operations by key, operation and UTC day."""

    def __init__(
        self, store: Store, clock: Clock, operations: Sequence[DeprecatedOperation]
    ) -> None:
        super().__init__(store, "deprecated_calls", "calls", _LAST_CALL)
        self._clock = clock
        self.operations = operations

    def chore(self, seconds: float) -> PeriodicTask:
        """Return what saves the calls every ``seconds``, and at a stop."""
        failure = "calls of deprecated operations not saved"
        return PeriodicTask(self.flush, seconds, failure, at_stop=True)

    def count(
        self,
        key_id: int,
        operation: str,
        now: Milliseconds,
        user_agent: bytes | None,
        request_id: str,
    ) -> None:
        """Count one call. Every request of a deprecated operation does."""
        self.add((key_id, operation, now // DAY), (now, user_agent, request_id))

    async def of_key(self, key_id: int) -> list[DeprecatedUse]:
        """Return what a key has called in the last 30 days.

        Raises:
            Unavailable: the database is unreachable.
        """
        first = first_day(self._clock())
        rows, unflushed = await self.read(key_id, select_uses(first, key_id))
        calls = {operation: Calls(*counts) for _, operation, _, *counts in rows}
        for (_, operation, day), tally in unflushed:
            if day >= first:
                more, before = Calls(*self._values(tally)), calls.get(operation)
                calls[operation] = before.and_also(more) if before else more
        return [use_of(each, calls[each.id]) for each in self.operations if each.id in calls]

    def _values(self, tally: Tally) -> tuple[Any, ...]:
        # Here and not at each call, because it takes microseconds.
        called_at, user_agent, request_id = tally.latest
        return tally.count, called_at, user_agent_text(user_agent), request_id


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
    sql = _SELECT.format(condition=condition, limit="LIMIT ?4")
    rows = await store.read(Statement(sql, parameters, name="select_deprecated_uses"))
    next_after = None
    if len(rows) > limit:
        key_id, name = rows[limit - 1][:2]
        next_after = key_id * _MAX_OPERATIONS + by_id[name]
    return Page([_key_use_of(row, operations[by_id[row[1]]]) for row in rows[:limit]], next_after)


def select_uses(first: int, key_id: int) -> Statement:
    """Return the SELECT of what a key has called from day ``first`` on, a row an operation."""
    sql = _SELECT.format(condition="c.key_id = ?2", limit="")
    return Statement(sql, (first, key_id), name="select_deprecated_uses_of_key")


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
        last_called_at=utc_second(calls.last_called_at),
        last_user_agent=calls.last_user_agent,
        last_request_id=calls.last_request_id,
    )


def _key_use_of(row: Row, operation: DeprecatedOperation) -> KeyDeprecatedUse:
    key_id, _, name, *counts = row
    use = use_of(operation, Calls(*counts))
    return KeyDeprecatedUse(**asdict(use), key_id=key_id, key_name=name)
