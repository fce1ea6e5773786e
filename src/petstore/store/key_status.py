"""A key as those who manage keys see it: with its state, its ban and its last use."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from petstore.clock import Clock, Milliseconds, utc_second
from petstore.databases.api_keys import api_key_of, select_key, select_keys
from petstore.databases.contract import Row, Store
from petstore.domain.api_keys import ApiKey, Environment, KeyState, Scope
from petstore.domain.fields import Id
from petstore.domain.plans import UNLIMITED, PlanName
from petstore.errors import NotFound
from petstore.rate_limits.contract import NEVER
from petstore.store.pages import Page, page_of

Time = Annotated[datetime, Meta(tz=True)]


class Key(Struct, frozen=True):
    """An API key, without its tokens. A limit of null is none; a time of null has not come."""

    id: Id
    name: str
    plan: PlanName
    perMinute: int | None  # noqa: N815 - JSON names are in camel case
    perDay: int | None  # noqa: N815
    scopes: list[Scope]
    environment: Environment
    state: KeyState
    bannedUntil: Time | None  # noqa: N815
    createdAt: Time  # noqa: N815
    expiresAt: Time | None  # noqa: N815
    lastUsedAt: Time | None  # noqa: N815


async def get_key(store: Store, key_id: int, environment: Environment | None, clock: Clock) -> Key:
    """Return one key, of ``environment`` if one is given.

    Raises:
        NotFound: there is none with this id.
    """
    rows = await store.read(select_key(key_id))
    key = key_in(rows, key_id, environment)
    return key_of(key, rows[0], clock())


async def list_keys(
    store: Store, environment: Environment | None, after: int | None, limit: int, clock: Clock
) -> Page[Key]:
    """Return the first ``limit`` keys with an id above ``after``, of ``environment`` if given."""
    now = clock()
    rows = await store.read(select_keys(environment, after, limit + 1))
    return page_of(rows, limit, lambda row: key_of(api_key_of(row), row, now))


def key_in(rows: list[Row], key_id: int, environment: Environment | None) -> ApiKey:
    """Return the key in the rows of ``select_key``.

    Raises:
        NotFound: there is none, or it is not of ``environment``.
    """
    if rows:
        key = api_key_of(rows[0])
        if environment in (key.environment, None):
            return key
    msg = f"there is no key {key_id}"
    raise NotFound(msg)


def banned_at_of(row: Row) -> Milliseconds | None:
    """Return when the latest ban began that is saved of the key in a row of ``select_key``."""
    banned_at: Milliseconds | None = row[-2]
    return banned_at


def key_of(key: ApiKey, row: Row, now: Milliseconds) -> Key:
    """Return ``key`` as it is seen at ``now``; the end of ``row`` is what the limiter saved."""
    used_at, banned_at, banned_until = row[-3:]
    is_banned = (
        banned_until is not None and now < banned_until and banned_at > (key.unbanned_at or NEVER)
    )
    return Key(
        id=key.id,
        name=key.name,
        plan=key.plan,
        perMinute=_limit(key.limits.per_minute),
        perDay=_limit(key.limits.per_day),
        scopes=sorted(key.scopes),
        environment=key.environment,
        state=key.state(now),
        bannedUntil=utc_second(banned_until) if is_banned else None,
        createdAt=utc_second(key.created_at),
        expiresAt=_time(key.expires_at),
        lastUsedAt=_time(used_at),
    )


def _limit(limit: int) -> int | None:
    return None if limit == UNLIMITED else limit


def _time(moment: Milliseconds | None) -> datetime | None:
    return None if moment is None else utc_second(moment)
