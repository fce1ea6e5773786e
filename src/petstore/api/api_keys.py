"""The operations on API keys: what the command line does, for keys that may administer keys."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import answer_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call
from petstore.api.pages import PageQuery, page_response
from petstore.clock import SECOND, Milliseconds, milliseconds
from petstore.domain.api_keys import DEFAULT_SCOPES, LONGEST_LIFE, SCOPES, KeyName, NewApiKey, Scope
from petstore.domain.fields import Moment
from petstore.domain.plans import PLANS, UNLIMITED, PlanName
from petstore.errors import InvalidBody, Unavailable
from petstore.http.messages import Response
from petstore.store.api_keys import (
    Actor,
    ApiKeyChanges,
    IssuedKey,
    change_key,
    create_key,
    revoke_key,
    rotate_key,
    unban_key,
)
from petstore.store.key_history import list_history
from petstore.store.key_status import Key, get_key, list_keys

_Plan = Annotated[
    PlanName,
    Meta(
        description="How many requests it may make.",
        extra={"expected": f"one of {', '.join(map(repr, PLANS))}"},
    ),
]
_Limit = Annotated[
    int,
    Meta(
        ge=1,
        le=UNLIMITED - 1,
        description="A limit of its own, for the plan enterprise alone; null is none.",
        extra={"expected": f"an integer from 1 to {UNLIMITED - 1}, or null"},
    ),
]
_Scopes = Annotated[
    frozenset[Scope],
    Meta(
        min_length=1,
        description="What it may do.",
        extra={"expected": f"a list of one or more of {', '.join(map(repr, SCOPES))}"},
    ),
]
_ExpiresAt = Annotated[
    Moment, Meta(description="When it ends, within the next 100 years; null is never.")
]


class NewKey(Struct, frozen=True):
    """A key to create."""

    name: KeyName
    plan: _Plan = "free"
    perMinute: _Limit | None = None  # noqa: N815 - JSON names are in camel case
    perDay: _Limit | None = None  # noqa: N815
    scopes: _Scopes = frozenset(DEFAULT_SCOPES)
    expiresAt: _ExpiresAt | None = None  # noqa: N815


class KeyPatch(Struct, frozen=True):
    """What to change of a key (RFC 7396)."""

    name: KeyName | UnsetType = UNSET
    plan: _Plan | UnsetType = UNSET
    perMinute: _Limit | UnsetType | None = UNSET  # noqa: N815 - JSON names are in camel case
    perDay: _Limit | UnsetType | None = UNSET  # noqa: N815
    scopes: _Scopes | UnsetType = UNSET
    expiresAt: _ExpiresAt | UnsetType | None = UNSET  # noqa: N815


class Rotation(Struct, frozen=True):
    """How to rotate a key."""

    graceSeconds: Annotated[  # noqa: N815 - JSON names are in camel case
        int,
        Meta(
            ge=0,
            le=LONGEST_LIFE // SECOND,
            description="How long the old token lives on.",
            extra={"expected": f"an integer from 0 to {LONGEST_LIFE // SECOND}"},
        ),
    ] = 0


class KeyWithToken(Key, frozen=True):
    """A key and its token, which is shown this once."""

    token: str


async def answer_list_keys(call: Call) -> Response:
    """Respond with a page of keys."""
    query: PageQuery = call.query.values
    services = call.services
    page = await list_keys(
        services.store, call.key.environment, query.after, query.limit, services.clock
    )
    return page_response(call, page)


async def answer_create_key(call: Call) -> Response:
    """Respond with the key, its token and where it is."""
    wanted: NewKey = call.body
    now = call.services.clock()
    new = NewApiKey(
        name=wanted.name,
        plan=wanted.plan,
        per_minute=wanted.perMinute,
        per_day=wanted.perDay,
        scopes=wanted.scopes,
        environment=call.key.environment,
        expires_at=_expiry(wanted.expiresAt, now),
    )

    def created(issued: IssuedKey) -> Response:
        return created_response(_with_token(issued), f"{call.request.path}/{issued.key.id}")

    return await answer_once(call, create_key(new, _actor(call), now), created, sealed=True)


async def answer_get_key(call: Call) -> Response:
    """Respond with one key."""
    services = call.services
    key = await get_key(services.store, call.path_id, call.key.environment, services.clock)
    return json_response(200, key)


async def answer_update_key(call: Call) -> Response:
    """Respond with the key as it is now."""
    patch: KeyPatch = call.body
    now = call.services.clock()
    expires_at = patch.expiresAt
    changes = ApiKeyChanges(
        name=patch.name,
        plan=patch.plan,
        per_minute=patch.perMinute,
        per_day=patch.perDay,
        scopes=patch.scopes,
        expires_at=UNSET if expires_at is UNSET else _expiry(expires_at, now),
    )
    unit = change_key(call.path_id, changes, _actor(call), now, precondition(call.request))
    key = await call.services.store.write(unit)
    await _take_effect(call)
    return json_response(200, key)


async def answer_rotate_key(call: Call) -> Response:
    """Respond with the key and its new token."""
    rotation: Rotation = call.body
    grace = rotation.graceSeconds * SECOND
    check = precondition(call.request)
    unit = rotate_key(call.path_id, grace, _actor(call), call.services.clock(), check)
    answer = await answer_once(
        call, unit, lambda issued: json_response(200, _with_token(issued)), sealed=True
    )
    await _take_effect(call)
    return answer


async def answer_revoke_key(call: Call) -> Response:
    """Revoke a key."""
    unit = revoke_key(call.path_id, _actor(call), call.services.clock(), precondition(call.request))
    await call.services.store.write(unit)
    await _take_effect(call)
    return empty_response()


async def answer_unban_key(call: Call) -> Response:
    """Lift the ban of a key."""
    unit = unban_key(call.path_id, _actor(call), call.services.clock(), precondition(call.request))
    answer = await answer_once(call, unit, lambda _: empty_response())
    await _take_effect(call)
    return answer


async def answer_list_key_history(call: Call) -> Response:
    """Respond with a page of changes to a key."""
    query: PageQuery = call.query.values
    page = await list_history(
        call.services.store, call.path_id, call.key.environment, query.after, query.limit
    )
    return page_response(call, page)


def _actor(call: Call) -> Actor:
    return Actor(f"key {call.key.id}", call.key)


def _with_token(issued: IssuedKey) -> KeyWithToken:
    return KeyWithToken(**asdict(issued.key), token=issued.token)


def _expiry(moment: datetime | None, now: Milliseconds) -> Milliseconds | None:
    """Return the end of a key in milliseconds.

    Raises:
        InvalidBody: it is past already, or beyond all reason.
    """
    if moment is None:
        return None
    expires_at = milliseconds(moment)
    if not now < expires_at <= now + LONGEST_LIFE:
        msg = "expiresAt: expected a date and time within the next 100 years, or null"
        raise InvalidBody(msg)
    return expires_at


async def _take_effect(call: Call) -> None:
    """See the change in this process at once; if it cannot be seen now, it is in a moment."""
    with suppress(Unavailable):
        await call.services.keys.refresh()
