"""The operations on API keys, for keys that may administer keys."""

from contextlib import suppress
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import SECOND, Milliseconds, milliseconds
from petstore.databases.contract import T, Unit
from petstore.domain.fields import given_fields
from petstore.domain.networks import canonical_networks
from petstore.errors import (
    BeyondOwnRights,
    InvalidBody,
    KeyEnded,
    LastAdminKey,
    SecretAlreadyShown,
    TooManyRotations,
    Unavailable,
)
from petstore.interface.authentication import invalid_key, require_network
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Result, Success
from petstore.interface.pages import PageQuery, page_result, search_text
from petstore.interface.resource import Resource
from petstore.keys.model import (
    LONGEST_LIFE,
    Caller,
    Key,
    KeyCreate,
    KeyFields,
    KeyPatch,
    KeyWithToken,
)
from petstore.keys.store import (
    MAX_OWN_ROTATIONS,
    change_key,
    create_key,
    get_key,
    list_keys,
    revoke_key,
    rotate_key,
    rotate_own_key,
    unban_key,
)


class Rotation(Struct, frozen=True, rename="camel"):
    """How to rotate a key."""

    grace_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=LONGEST_LIFE // SECOND,
            description="How long the old token stays valid, in seconds.",
        ),
    ] = 0


_ROTATED = "the first request rotated key {id} and showed its token; rotate it again to get another"
_Search = Annotated[
    str,
    search_text(
        "Only keys with each of these words in their name, ignoring case, with this `id`,"
        " or with a token that ends in these four characters."
    ),
]


class ListKeysQuery(PageQuery, frozen=True):
    name: _Search | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListKeysQuery]) -> Result[list[Key]]:
    query, services, own = call.query, context.services, context.caller.environment
    text = "" if query.name is UNSET else query.name
    page = text, query.after, query.limit, services.clock()
    return page_result(await list_keys(services.store, own, *page))


async def _create(context: Context, call: Call[KeyCreate, None]) -> Result[KeyWithToken]:
    new = KeyFields(**_wanted(call.body, context.services.clock()))
    unit = create_key(new, context.caller.environment, context.checked_change)
    told = "the first request created key {id} and showed its token; rotate the key to get another"
    return await change(context, unit, shown_once=told)


async def _get(context: Context, call: Call[None, None]) -> Result[Key]:
    services, own = context.services, context.caller.environment
    return Result(await get_key(services.store, call.path_id, own, services.clock))


async def _update(context: Context, call: Call[Struct, None]) -> Result[Key]:
    changes = _wanted(call.body, context.services.clock())
    return await _change(context, change_key(call.path_id, changes, context.checked_change))


async def _rotate(context: Context, call: Call[Rotation, None]) -> Result[KeyWithToken]:
    unit = rotate_key(call.path_id, call.body.grace_seconds * SECOND, context.checked_change)
    return await _change(context, unit, shown_once=_ROTATED)


async def _rotate_own(context: Context, call: Call[Rotation, None]) -> Result[KeyWithToken]:
    def find_own() -> Unit[Caller]:
        caller = yield from context.find_caller_in_unit()
        if caller is None or caller.state(context.services.clock()) != "active":
            raise invalid_key()
        require_network(caller, context.address)
        return caller

    grace = call.body.grace_seconds * SECOND
    unit = rotate_own_key(grace, find_own, context.credential, context.checked_change)
    return await _change(context, unit, shown_once=_ROTATED)


async def _revoke(context: Context, call: Call[None, None]) -> Result[Key]:
    return await _change(context, revoke_key(call.path_id, context.checked_change))


async def _unban(context: Context, call: Call[None, None]) -> Result[Key]:
    return await _change(context, unban_key(call.path_id, context.checked_change))


async def _change(context: Context, unit: Unit[T], *, shown_once: str | None = None) -> Result[T]:
    """Change a key, and let this process see it at once. If that fails, it does in a moment."""
    result = await change(context, unit, shown_once=shown_once)
    with suppress(Unavailable):
        await context.services.keys.refresh()
    return result


def _wanted(body: Struct, now: Milliseconds) -> dict[str, Any]:
    wanted = given_fields(body)
    if wanted.get("expires_at") is not None:
        wanted["expires_at"] = expires_at = milliseconds(wanted["expires_at"])
        if not now < expires_at <= now + LONGEST_LIFE:
            raise InvalidBody("expiresAt: expected a date and time within the next 100 years")
    if "allowed_networks" in wanted:
        wanted["allowed_networks"] = canonical_networks(wanted["allowed_networks"])
    return wanted


_KEY = {
    "id": 4,
    "name": "Till 2",
    "plan": "pro",
    "perMinute": 300,
    "perDay": 10000,
    "scopes": ["orders:read", "orders:write", "pets:read", "pets:write"],
    "allowedNetworks": ["203.0.113.0/24"],
    "environment": "production",
    "tokenEnds": "0000",
    "state": "active",
    "bannedUntil": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "expiresAt": None,
    "lastUsedAt": None,
}
_ISSUED = _KEY | {"token": "ps_live_" + 38 * "0"}

_RESOURCE = Resource(
    *(Key, "/keys", "Keys", "a key", "keys:admin", "keys:admin", _KEY), no_store=True
)

OPERATIONS = (
    _RESOURCE.list(
        *(_list, ListKeysQuery),
        "Returns a page of the keys of this environment, by ascending `id`.",
        cached=False,
    ),
    _RESOURCE.row(
        *("createKey", "POST", "/keys", "Create a key"),
        "Creates a key of this environment. By default it has the plan `free` and the scopes"
        " of pets and orders. The `token` is shown only once. Your key cannot give a scope, a"
        " higher limit, a longer life or a network that it does not have itself.",
        *(_create, Success(201, "The key and its token.", KeyWithToken, _ISSUED)),
        body=KeyCreate,
        body_example={"name": "Till 2", "plan": "pro"},
        errors=(BeyondOwnRights, SecretAlreadyShown),
    ),
    _RESOURCE.get(_get, "Returns one key, without its token."),
    _RESOURCE.row(
        *("updateKey", "PATCH", "/keys/{keyId}", "Change a key"),
        "Changes the fields in the body (RFC 7396); usage carries over. A key that leaves"
        " the plan `enterprise` loses its own limits. The last key with the scope `keys:admin`"
        " cannot lose it, or exclude its own address.",
        *(_update, Success(200, "The key as it is now.", Key, _KEY)),
        body=KeyPatch,
        body_example={"plan": "pro"},
        errors=(BeyondOwnRights, LastAdminKey),
    ),
    _RESOURCE.row(
        *("revokeKey", "DELETE", "/keys/{keyId}", "Revoke a key"),
        "Revokes a key for good, within a second everywhere. Revoking it again has no effect."
        " The last key with the scope `keys:admin` cannot be revoked here.",
        *(_revoke, Success(204, "The key is revoked.")),
        errors=(LastAdminKey,),
    ),
    _RESOURCE.row(
        *("rotateKey", "POST", "/keys/{keyId}/rotate", "Rotate a key"),
        "Issues a new token for the same key. Usage, limits and bans carry over. The old"
        " token stays valid for `graceSeconds`. The new token is shown only once.",
        *(_rotate, Success(200, "The key and its new token.", KeyWithToken, _ISSUED)),
        body=Rotation,
        body_example={"graceSeconds": 3600},
        body_required=False,
        errors=(BeyondOwnRights, KeyEnded, SecretAlreadyShown),
    ),
    _RESOURCE.row(
        *("rotateCurrentKey", "POST", "/keys/current/rotate", "Rotate your own key"),
        "Issues a new token for the key of the request, which needs no scope. Usage, limits"
        " and bans carry over. The old token stays valid for `graceSeconds`, but can no longer"
        f" rotate the key. A key may do this {MAX_OWN_ROTATIONS} times a day (UTC). The new"
        " token is shown only once.",
        *(_rotate_own, Success(200, "Your key and its new token.", KeyWithToken, _ISSUED)),
        scope=None,
        body=Rotation,
        body_example={"graceSeconds": 3600},
        body_required=False,
        errors=(BeyondOwnRights, SecretAlreadyShown, TooManyRotations),
    ),
    _RESOURCE.row(
        *("unbanKey", "POST", "/keys/{keyId}/unban", "Lift the ban of a key"),
        "Lifts the ban of a key, and forgets how often it was banned before.",
        *(_unban, Success(204, "The key is not banned.")),
    ),
)
