"""What keys do, counted in memory and saved, and the deprecated operations that they call."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, islice
from secrets import token_hex
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct, json
from msgspec.structs import asdict

from petstore.clock import DAY, HOUR, Clock, Milliseconds, utc_second
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Store,
    Unit,
    Value,
    placeholder_list,
    upsert,
)
from petstore.databases.pages import Page
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
_MAX_READ = 1000
_MAX_USER_AGENT = 100
# More of them at once would delay requests: on SQLite the event loop makes the change.
_ROWS_AT_ONCE = 100
_COLUMNS = ("kind", "key_id", "name", "hour", "count", "latest")
_ADDED = """(kind, key_id, name, hour) DO UPDATE SET count = counts.count + excluded.count,
    latest = CASE WHEN excluded.latest >= counts.latest THEN excluded.latest ELSE counts.latest END
"""
# A process counts its saves too: a save that may have been committed is not made again.
_SAVED_ONCE = """(kind, key_id, name, hour) DO UPDATE SET count = excluded.count
    WHERE counts.count < excluded.count RETURNING 1
"""
_SELECT = """SELECT name, hour, count, latest,
        (SELECT max(count) FROM counts WHERE kind = 'save' AND key_id = 0 AND name = ?4)
    FROM counts WHERE kind = ?1 AND key_id = ?2 AND hour >= ?3
    ORDER BY hour DESC, name LIMIT ?5
"""


class Count(NamedTuple):
    """The requests of an hour or a day, and the ``latest`` one as JSON if it was kept."""

    name: str
    hour: int
    requests: int
    latest: str


class Counter:
    """Counts in memory, and adds the counts to the table ``counts``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._process = ""
        self._counts: defaultdict[_Counted, int] = defaultdict(int)
        self._latest: dict[_Counted, Request] = {}
        self._unsaved: deque[list[Row]] = deque()  # each with the row of its save first
        self._batches = 0
        self._saving = asyncio.Lock()

    def count(
        self, kind: Kind, key_id: int, name: str, hour: int, latest: Request | None = None
    ) -> None:
        counted = kind, key_id, name, hour
        self._counts[counted] += 1
        if latest is not None:
            self._latest[counted] = latest

    async def save(self) -> None:
        async with self._saving:
            await self._save_batches()  # what the last one could not add
            self._process = self._process or token_hex(8)  # here, because workers may be forks
            hour = self._clock() // HOUR
            # In order: neighbours share a page of the file.
            rows = iter(sorted(map(self._row, self._counts)))
            self._counts.clear()
            self._latest.clear()
            while batch := list(islice(rows, _ROWS_AT_ONCE)):
                self._batches += 1
                save = ("save", 0, self._process, hour, self._batches, "")
                self._unsaved.append([save, *batch])
            await self._save_batches()

    async def read(self, kind: Kind, key_id: int, first: int) -> list[Count]:
        """Return the newest 1,000 counts of a key from the hour ``first`` on, and then by name.

        Those of this process are there at once, those of others as they were saved.
        """
        parameters = (kind, key_id, first, self._process, _MAX_READ)
        select = Statement(_SELECT, parameters, name="select_counts")
        while True:
            batches, unsaved = self._batches, tuple(self._unsaved)
            rows = await self._store.read(select)
            if batches == self._batches:  # else counts moved from memory to the table meanwhile
                break
        saved = rows[0][-1] or 0 if rows else 0
        found = {(-hour, name): (count, latest) for name, hour, count, latest, _ in rows}
        counted = (self._row(name) for name in self._counts if name[1] == key_id)
        for row in chain(counted, *(batch for batch in unsaved if batch[0][4] > saved)):
            if row[:2] == (kind, key_id) and row[3] >= first:
                _, _, name, hour, more, latest = row
                count, before = found.get((-hour, name), (0, ""))
                found[-hour, name] = count + more, max(before, latest)
        newest = sorted(found.items())[:_MAX_READ]
        return [Count(name, -hour, *values) for (hour, name), values in newest]

    def _row(self, counted: _Counted) -> Row:
        latest = self._latest.get(counted)
        return *counted, self._counts[counted], "" if latest is None else text_of(latest)

    async def _save_batches(self) -> None:
        while self._unsaved:
            await self._store.write(_added(self._unsaved[0]))
            self._unsaved.popleft()


def _added(batch: list[Row]) -> Unit[None]:
    save, *rows = batch
    if (yield from upsert("counts", _COLUMNS, [save], _SAVED_ONCE)):
        yield from upsert("counts", _COLUMNS, rows, _ADDED)


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

Time = Annotated[datetime, Meta(tz=True)]


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


class DeprecationNoticeData(DeprecatedUse, frozen=True):
    """A deprecated operation that a key has called: the data of an event for its owner."""

    key_id: Annotated[int, Meta(description="The `id` of the key.")]


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
    uses = [
        KeyDeprecatedUse(
            **asdict(use_of(operations[numbers[name]], *counted)), key_id=key_id, key_name=key_name
        )
        for key_id, name, key_name, *counted in rows[:limit]
    ]
    if len(rows) <= limit:
        return Page(uses, None)
    return Page(uses, uses[-1].key_id * _MAX_OPERATIONS + numbers[uses[-1].operation])


def select_uses(now: Milliseconds, key_id: int) -> Statement:
    """Return the SELECT of what a key has called in the last 30 days, a row an operation."""
    sql = _SELECT_USES.format(condition="c.key_id = ?2", limit="")
    parameters = (first_hour(first_day(now)), key_id)
    return Statement(sql, parameters, name="select_deprecated_uses_of_key")


def use_of(operation: DeprecatedOperation, calls: int, latest: str) -> DeprecatedUse:
    at, user_agent, request_id = json.decode(latest)
    return DeprecatedUse(
        **asdict(operation),
        calls=calls,
        last_called_at=utc_second(at),
        last_user_agent=user_agent,
        last_request_id=request_id,
    )
