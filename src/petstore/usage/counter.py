"""What keys do, counted in memory and saved, and the deprecated operations that they call."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, json
from msgspec.structs import asdict

from petstore.clock import DAY, Milliseconds, utc_second
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Store,
    Value,
    placeholder_list,
    upsert,
)
from petstore.databases.pages import Page
from petstore.domain.fields import Time
from petstore.keys.model import Environment

Kind: TypeAlias = Literal["deprecated", "refused", "response"]
"""What is counted: calls of deprecated operations, requests that a limit refused, responses.

The names are operations, operations or "" for none, and statuses. Refused requests are counted by
hour, the others by day: their hour is the first one of the day.
"""

Request: TypeAlias = tuple[Milliseconds, bytes | None, str]
"""The time of a request, its ``User-Agent`` and its id."""

SHOWN_DAYS = 30
"""How many UTC days are shown, today included."""

_Counted: TypeAlias = tuple[str, int, str, int]
_MAX_USER_AGENT = 100
# More of them at once would delay requests: on SQLite the event loop makes the change.
_ROWS_AT_ONCE = 250
_COLUMNS = ("kind", "key_id", "name", "hour", "count", "latest")
_ADDED = """(kind, key_id, name, hour) DO UPDATE SET count = counts.count + excluded.count,
    latest = CASE WHEN excluded.latest >= counts.latest THEN excluded.latest ELSE counts.latest END
"""


class Counter:
    """Counts in memory, and adds the counts to the table ``counts``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: defaultdict[_Counted, int] = defaultdict(int)
        self._latest: dict[_Counted, Request] = {}
        self._saving = asyncio.Lock()

    def count(
        self, kind: Kind, key_id: int, name: str, hour: int, latest: Request | None = None
    ) -> None:
        counted = kind, key_id, name, hour
        self._counts[counted] += 1
        if latest is not None:
            self._latest[counted] = latest

    async def save(self) -> None:
        """Add the counts to the table. A save that fails after its commit is made twice."""
        async with self._saving:
            # In order: neighbours share a page of the file.
            counted = sorted(self._counts)
            for first in range(0, len(counted), _ROWS_AT_ONCE):
                rows = [self._row(each) for each in counted[first : first + _ROWS_AT_ONCE]]
                await self._store.write(upsert("counts", _COLUMNS, rows, _ADDED))
                for kind, key_id, name, hour, saved, _ in rows:
                    saved_as = kind, key_id, name, hour
                    self._counts[saved_as] -= saved
                    if not self._counts[saved_as]:
                        del self._counts[saved_as]
                        self._latest.pop(saved_as, None)

    def _row(self, counted: _Counted) -> Row:
        latest = self._latest.get(counted)
        return *counted, self._counts[counted], "" if latest is None else text_of(latest)


def select_counts(kind: Kind, key_id: int, first: int) -> Statement:
    """Select name, hour and count of the newest 1,000 saved counts from the hour ``first`` on."""
    return Statement(
        "SELECT name, hour, count FROM counts WHERE kind = ?1 AND key_id = ?2 AND hour >= ?3"
        " ORDER BY hour DESC, name LIMIT 1000",
        (kind, key_id, first),
        name="select_counts",
    )


def text_of(request: Request) -> str:
    """Return a request as text. The text of a later one is greater, in SQL too."""
    at, user_agent, request_id = request
    # Four bytes are the longest character in UTF-8: a long field is not decoded whole.
    text = (user_agent or b"")[: 4 * _MAX_USER_AGENT].decode("utf-8", "replace")[:_MAX_USER_AGENT]
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return msgspec.json.encode((at, printable, request_id)).decode()


def first_day(now: Milliseconds) -> int:
    return now // DAY - SHOWN_DAYS + 1


def first_hour(day: int) -> int:
    return 24 * day


# The cursor of a list has the key and the number of the operation in one integer.
_MAX_OPERATIONS = 1000
# The sign keeps both databases from using the index by hour.
_SELECT_USES = """SELECT c.key_id, c.name, (SELECT name FROM api_keys WHERE id = c.key_id),
        CAST(sum(c.count) AS BIGINT), max(c.latest)
    FROM counts c WHERE c.kind = 'deprecated' AND +c.hour >= ?1 AND {condition}
    GROUP BY c.key_id, c.name ORDER BY c.key_id, c.name {limit}
"""


class DeprecatedOperation(Struct, frozen=True, rename="camel"):
    """A deprecated operation, and what to ``use`` instead."""

    operation: Annotated[str, Meta(description="The id of the operation, such as `getPet`.")]
    method: Annotated[str, Meta(description="Its method.")]
    path: Annotated[str, Meta(description="The template of its path.")]
    since: Annotated[Time, Meta(description="When it was deprecated.")]
    sunset: Annotated[Time, Meta(description="When it ends.")]
    use: Annotated[str, Meta(description="What to call instead.")]
    documentation: Annotated[str, Meta(description="The address of the explanation.")]


class DeprecatedUse(DeprecatedOperation, frozen=True):
    """A deprecated operation that a key still calls."""

    calls: Annotated[int, Meta(description="Calls in the last 30 days (UTC).")]
    last_called_at: Annotated[Time, Meta(description="When it was last called.")]
    last_user_agent: Annotated[
        str, Meta(description="The `User-Agent` of the last call, up to 100 characters.")
    ]
    last_request_id: Annotated[str, Meta(description="The id of the last request.")]


class KeyDeprecatedUse(DeprecatedUse, frozen=True):
    """A deprecated operation that a key still calls, with the key."""

    key_id: Annotated[int, Meta(description="The `id` of the key.")]
    key_name: Annotated[str, Meta(description="What the key is for.")]


async def list_uses(
    store: Reader,
    operations: Sequence[DeprecatedOperation],
    environment: Environment | None,
    after: int | None,
    limit: int,
    now: Milliseconds,
) -> Page[KeyDeprecatedUse]:
    """Return the first ``limit`` saved uses after a position, by key and then by operation."""
    numbers = {each.operation: number for number, each in enumerate(operations)}
    key_id, number = divmod(after or 0, _MAX_OPERATIONS)
    last = operations[number].operation if after is not None and number < len(operations) else ""
    names = placeholder_list(5, numbers)
    condition = f"(c.key_id, c.name) > (?2, ?3) AND c.name IN ({names})"
    parameters: list[Value] = [first_hour(first_day(now)), key_id, last, limit + 1, *numbers]
    if environment is not None:
        parameters.append(environment)
        of_key = "(SELECT environment FROM api_keys WHERE id = c.key_id)"
        condition += f" AND {of_key} = ?{len(parameters)}"
    sql = _SELECT_USES.format(condition=condition, limit="LIMIT ?4")
    rows = await store.read(Statement(sql, parameters, name="select_deprecated_uses"))
    uses = [key_use_of(operations[numbers[row[1]]], row) for row in rows[:limit]]
    if len(rows) <= limit:
        return Page(uses, None)
    return Page(uses, uses[-1].key_id * _MAX_OPERATIONS + numbers[uses[-1].operation])


def select_uses(now: Milliseconds, key_id: int) -> Statement:
    sql = _SELECT_USES.format(condition="c.key_id = ?2", limit="")
    parameters = (first_hour(first_day(now)), key_id)
    return Statement(sql, parameters, name="select_deprecated_uses_of_key")


def key_use_of(operation: DeprecatedOperation, row: Row) -> KeyDeprecatedUse:
    """Return the use in a row of one of these SELECTs."""
    key_id, _, key_name, *counted = row
    use = asdict(use_of(operation, *counted))
    return KeyDeprecatedUse(**use, key_id=key_id, key_name=key_name)


def use_of(operation: DeprecatedOperation, calls: int, latest: str) -> DeprecatedUse:
    at, user_agent, request_id = json.decode(latest)
    return DeprecatedUse(
        **asdict(operation),
        calls=calls,
        last_called_at=utc_second(at),
        last_user_agent=user_agent,
        last_request_id=request_id,
    )
