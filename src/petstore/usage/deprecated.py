"""Deprecated operations, and what keys have called of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, json
from msgspec.structs import asdict

from petstore.clock import Milliseconds, utc_second
from petstore.databases.contract import Reader, Statement, Value, placeholder_list
from petstore.databases.pages import Page
from petstore.keys.model import Environment
from petstore.usage.counter import first_day, first_hour

# The cursor of a list has the key and the number of the operation in one integer.
_MAX_OPERATIONS = 1000
# The sign keeps both databases from using the index by hour.
_SELECT = """SELECT c.key_id, c.name, (SELECT name FROM api_keys WHERE id = c.key_id),
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
    sql = _SELECT.format(condition=condition, limit="LIMIT ?4")
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
    sql = _SELECT.format(condition="c.key_id = ?2", limit="")
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
