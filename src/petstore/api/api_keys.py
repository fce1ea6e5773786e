"""The operations on API keys, for keys that may administer keys."""

from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from petstore.api.authentication import bearer_token
from petstore.api.entity_tags import precondition
from petstore.api.idempotency import respond_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call, Operation, Success
from petstore.api.pages import PageQuery, page_response
from petstore.clock import SECOND, Milliseconds, milliseconds
from petstore.databases.contract import Unit
from petstore.domain.api_keys import (
    DEFAULT_SCOPES,
    LONGEST_LIFE,
    SCOPES,
    ApiKey,
    KeyName,
    NewApiKey,
    Scope,
)
from petstore.domain.fields import Moment
from petstore.domain.networks import MAX_NETWORKS, canonical_networks
from petstore.domain.plans import PLANS, UNLIMITED, PlanName
from petstore.errors import (
    BeyondOwnRights,
    InvalidBody,
    KeyEnded,
    LastAdminKey,
    ResponseSealed,
    Unavailable,
)
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
from petstore.store.console_sessions import find_session_key
from petstore.store.key_history import KeyEvent, list_history
from petstore.store.key_ring import find_key
from petstore.store.key_status import Key, get_key, list_keys

_Plan = Annotated[
    PlanName,
    Meta(
        description="The plan, which sets the limits of the key.",
        extra={"expected": f"one of {', '.join(map(repr, PLANS))}"},
    ),
]
_Limit = Annotated[
    int,
    Meta(
        ge=1,
        le=UNLIMITED - 1,
        description="The key's own limit, only for the plan enterprise; null means no limit.",
        extra={"expected": f"an integer from 1 to {UNLIMITED - 1}, or null"},
    ),
]
_Scopes = Annotated[
    frozenset[Scope],
    Meta(
        min_length=1,
        description="The scopes of the key.",
        extra={"expected": f"a list of one or more of {', '.join(map(repr, SCOPES))}"},
    ),
]
# The longest address has 45 characters, the longest prefix four.
_Network = Annotated[str, Meta(extra_json_schema={"minLength": 2, "maxLength": 49})]
_Networks = Annotated[
    list[_Network],
    Meta(
        max_length=MAX_NETWORKS,
        description=(
            "The networks that the key may be used from, in CIDR notation or as single addresses."
            " An empty list means anywhere."
        ),
        extra={
            "expected": (
                f"a list of up to {MAX_NETWORKS} networks such as 203.0.113.0/24 or 2001:db8::/32"
            )
        },
    ),
]
_RehearseSunset = Annotated[
    bool,
    Meta(
        description="Whether deprecated operations respond as they will after their sunset.",
        extra={"expected": "true or false"},
    ),
]
_ExpiresAt = Annotated[
    Moment, Meta(description="When the key expires, within the next 100 years; null means never.")
]


class KeyCreate(Struct, frozen=True):
    """A key to create."""

    name: KeyName
    plan: _Plan = "free"
    perMinute: _Limit | None = None  # noqa: N815 - JSON names are in camel case
    perDay: _Limit | None = None  # noqa: N815
    scopes: _Scopes = frozenset(DEFAULT_SCOPES)
    expiresAt: _ExpiresAt | None = None  # noqa: N815
    allowedNetworks: _Networks = []  # noqa: N815
    rehearseSunset: _RehearseSunset = False  # noqa: N815


class KeyPatch(Struct, frozen=True):
    """The fields of a key to change (RFC 7396)."""

    name: KeyName | UnsetType = UNSET
    plan: _Plan | UnsetType = UNSET
    perMinute: _Limit | UnsetType | None = UNSET  # noqa: N815 - JSON names are in camel case
    perDay: _Limit | UnsetType | None = UNSET  # noqa: N815
    scopes: _Scopes | UnsetType = UNSET
    expiresAt: _ExpiresAt | UnsetType | None = UNSET  # noqa: N815
    allowedNetworks: _Networks | UnsetType = UNSET  # noqa: N815
    rehearseSunset: _RehearseSunset | UnsetType = UNSET  # noqa: N815


class Rotation(Struct, frozen=True):
    """How to rotate a key."""

    graceSeconds: Annotated[  # noqa: N815 - JSON names are in camel case
        int,
        Meta(
            ge=0,
            le=LONGEST_LIFE // SECOND,
            description="How long the old token stays valid, in seconds.",
            extra={"expected": f"an integer from 0 to {LONGEST_LIFE // SECOND}"},
        ),
    ] = 0


class KeyWithToken(Key, frozen=True):
    """A key and its token, which is shown only once."""

    token: Annotated[str, Meta(description="The token, which is shown only this once.")]


async def _list(call: Call[None, PageQuery]) -> Response:
    query, services = call.query.values, call.services
    page = await list_keys(
        services.store, call.key.environment, query.after, query.limit, services.clock
    )
    return page_response(call, page)


async def _create(call: Call[KeyCreate, None]) -> Response:
    wanted, now = call.body, call.services.clock()
    new = NewApiKey(
        name=wanted.name,
        plan=wanted.plan,
        per_minute=wanted.perMinute,
        per_day=wanted.perDay,
        scopes=wanted.scopes,
        environment=call.key.environment,
        expires_at=_expiry(wanted.expiresAt, now),
        allowed_networks=canonical_networks(wanted.allowedNetworks),
        rehearse_sunset=wanted.rehearseSunset,
    )

    def created(issued: IssuedKey) -> Response:
        return created_response(_with_token(issued), f"{call.url}/{issued.key.id}")

    return await respond_once(call, create_key(new, _actor(call), now), created, sealed=True)


async def _get(call: Call[None, None]) -> Response:
    services = call.services
    key = await get_key(services.store, call.path_id, call.key.environment, services.clock)
    return json_response(200, key)


async def _update(call: Call[KeyPatch, None]) -> Response:
    patch, now = call.body, call.services.clock()
    expires_at, networks = patch.expiresAt, patch.allowedNetworks
    changes = ApiKeyChanges(
        name=patch.name,
        plan=patch.plan,
        per_minute=patch.perMinute,
        per_day=patch.perDay,
        scopes=patch.scopes,
        expires_at=UNSET if expires_at is UNSET else _expiry(expires_at, now),
        allowed_networks=UNSET if networks is UNSET else canonical_networks(networks),
        rehearse_sunset=patch.rehearseSunset,
    )
    unit = change_key(call.path_id, changes, _actor(call), now, precondition(call.request))
    key = await call.services.store.write(unit)
    await _take_effect(call)
    return json_response(200, key)


async def _rotate(call: Call[Rotation, None]) -> Response:
    grace = call.body.graceSeconds * SECOND
    check = precondition(call.request)
    unit = rotate_key(call.path_id, grace, _actor(call), call.services.clock(), check)
    response = await respond_once(
        call, unit, lambda issued: json_response(200, _with_token(issued)), sealed=True
    )
    await _take_effect(call)
    return response


async def _revoke(call: Call[None, None]) -> Response:
    unit = revoke_key(call.path_id, _actor(call), call.services.clock(), precondition(call.request))
    await call.services.store.write(unit)
    await _take_effect(call)
    return empty_response()


async def _unban(call: Call[None, None]) -> Response:
    unit = unban_key(call.path_id, _actor(call), call.services.clock(), precondition(call.request))
    response = await respond_once(call, unit, lambda _: empty_response())
    await _take_effect(call)
    return response


async def _list_history(call: Call[None, PageQuery]) -> Response:
    query = call.query.values
    page = await list_history(
        call.services.store, call.path_id, call.key.environment, query.after, query.limit
    )
    return page_response(call, page)


def _actor(call: Call[Any, Any]) -> Actor:
    return Actor(f"key {call.key.id}", call.key, call.client, partial(_find_key, call))


def _find_key(call: Call[Any, Any]) -> Unit[ApiKey | None]:
    """Return the key of a call as it is within a unit of work: its token may have just ended."""
    if call.session is not None:
        return find_session_key(call.session, call.services.clock())
    return find_key(bearer_token(call.request))


def _with_token(issued: IssuedKey) -> KeyWithToken:
    return KeyWithToken(**asdict(issued.key), token=issued.token)


def _expiry(moment: datetime | None, now: Milliseconds) -> Milliseconds | None:
    """Return the end of a key in milliseconds.

    Raises:
        InvalidBody: it is in the past, or more than 100 years ahead.
    """
    if moment is None:
        return None
    expires_at = milliseconds(moment)
    if not now < expires_at <= now + LONGEST_LIFE:
        msg = "expiresAt: expected a date and time within the next 100 years, or null"
        raise InvalidBody(msg)
    return expires_at


async def _take_effect(call: Call[Any, Any]) -> None:
    """Let this process see the change at once. If that fails, it sees it in a moment."""
    with suppress(Unavailable):
        await call.services.keys.refresh()


_KEY = {
    "id": 4,
    "name": "Till 2",
    "plan": "pro",
    "perMinute": 300,
    "perDay": 10000,
    "scopes": ["orders:read", "orders:write", "pets:read", "pets:write"],
    "allowedNetworks": ["203.0.113.0/24"],
    "rehearseSunset": False,
    "environment": "production",
    "state": "active",
    "bannedUntil": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "expiresAt": None,
    "lastUsedAt": None,
}
_ISSUED = _KEY | {"token": "ps_live_" + 38 * "0"}
_EVENT = {
    "id": 9,
    "at": "2026-11-21T10:05:00Z",
    "by": "key 1",
    "action": "changed",
    "changes": {"plan": {"before": "free", "after": "pro"}},
}

_operation = partial(Operation, tag="Keys", scope="keys:admin", no_store=True)

OPERATIONS = (
    _operation(
        id="listKeys",
        method="GET",
        path="/keys",
        summary="List keys",
        description="Returns a page of the keys of this environment, by ascending `id`.",
        handler=_list,
        query=PageQuery,
        success=Success(200, "A page of keys.", list[Key], [_KEY]),
    ),
    _operation(
        id="createKey",
        method="POST",
        path="/keys",
        summary="Create a key",
        description=(
            "Creates a key of this environment. By default it has the plan `free` and the scopes"
            " of pets and orders. The `token` is shown only once. Your key cannot give a scope, a"
            " higher limit, a longer life or a network that it does not have itself."
        ),
        handler=_create,
        tagged=False,
        body=KeyCreate,
        body_example={"name": "Till 2", "plan": "pro"},
        success=Success(201, "The key and its token.", KeyWithToken, _ISSUED),
        errors=(BeyondOwnRights, ResponseSealed),
    ),
    _operation(
        id="getKey",
        method="GET",
        path="/keys/{keyId}",
        summary="Get a key",
        description="Returns one key, without its token.",
        handler=_get,
        success=Success(200, "The key.", Key, _KEY),
    ),
    _operation(
        id="updateKey",
        method="PATCH",
        path="/keys/{keyId}",
        summary="Change a key",
        description=(
            "Changes the members in the body (RFC 7396); usage carries over. A key that leaves"
            " the plan `enterprise` loses its own limits. The last key with the scope `keys:admin`"
            " cannot lose it, or exclude its own address."
        ),
        handler=_update,
        body=KeyPatch,
        body_example={"plan": "pro"},
        success=Success(200, "The key as it is now.", Key, _KEY),
        errors=(BeyondOwnRights, LastAdminKey),
    ),
    _operation(
        id="revokeKey",
        method="DELETE",
        path="/keys/{keyId}",
        summary="Revoke a key",
        description=(
            "Revokes a key for good, within a second everywhere. Revoking it again has no effect."
            " The last key with the scope `keys:admin` cannot be revoked here."
        ),
        handler=_revoke,
        success=Success(204, "The key is revoked."),
        errors=(LastAdminKey,),
    ),
    _operation(
        id="rotateKey",
        method="POST",
        path="/keys/{keyId}/rotate",
        summary="Rotate a key",
        description=(
            "Issues a new token for the same key. Usage, limits and bans carry over. The old"
            " token stays valid for `graceSeconds`. The new token is shown only once."
        ),
        handler=_rotate,
        tagged=False,
        body=Rotation,
        body_example={"graceSeconds": 3600},
        body_required=False,
        success=Success(200, "The key and its new token.", KeyWithToken, _ISSUED),
        errors=(BeyondOwnRights, KeyEnded, ResponseSealed),
    ),
    _operation(
        id="unbanKey",
        method="POST",
        path="/keys/{keyId}/unban",
        summary="Lift the ban of a key",
        description="Lifts the ban of a key, and forgets how often it was banned before.",
        handler=_unban,
        tagged=False,
        success=Success(204, "The key is not banned."),
    ),
    _operation(
        id="listKeyHistory",
        method="GET",
        path="/keys/{keyId}/history",
        summary="List the changes to a key",
        description="Returns a page of the changes to a key, oldest first, with author and time.",
        handler=_list_history,
        query=PageQuery,
        success=Success(200, "A page of changes.", list[KeyEvent], [_EVENT]),
    ),
)
