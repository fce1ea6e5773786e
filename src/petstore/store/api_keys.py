"""Create, change, rotate, revoke and unban API keys. Every change is written down with its actor.

Each is one unit of work, and begins by counting up the revision: so changes to keys happen one
after another, and a running service learns of them.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from petstore.clock import Milliseconds
from petstore.databases import api_keys
from petstore.databases.contract import Statement, Unit
from petstore.domain.api_keys import (
    ApiKey,
    Environment,
    NewApiKey,
    Scope,
    check_rights,
    digest,
    new_token,
)
from petstore.domain.plans import PlanName
from petstore.errors import InvalidBody, KeyEnded, LastAdminKey, MissingScope
from petstore.store.key_history import changes_between
from petstore.store.key_status import Key, banned_at_of, key_in, key_of

Action: TypeAlias = Literal["created", "changed", "rotated", "revoked", "unbanned"]


class Actor(NamedTuple):
    """Who changes a key: the operator at the command line, or another ``key``."""

    name: str
    key: ApiKey | None = None

    @property
    def environment(self) -> Environment | None:
        """The environment whose keys the actor sees; ``None`` is all of them."""
        return self.key.environment if self.key else None


class IssuedKey(NamedTuple):
    """A key and its fresh token, which nobody can be shown again."""

    key: Key
    token: str


class ApiKeyChanges(Struct, frozen=True):
    """What to change of a key; what is unset stays."""

    name: str | UnsetType = UNSET
    plan: PlanName | UnsetType = UNSET
    per_minute: int | UnsetType | None = UNSET
    per_day: int | UnsetType | None = UNSET
    scopes: frozenset[Scope] | UnsetType = UNSET
    expires_at: Milliseconds | UnsetType | None = UNSET


def create_key(new: NewApiKey, actor: Actor, now: Milliseconds) -> Unit[IssuedKey]:
    """Create a key and its first token.

    Raises:
        InvalidBody: limits of its own for a key that is not of the plan enterprise.
        BeyondOwnRights: the actor's key has less than the new one would.
    """
    _check_own_limits(new.plan, new.per_minute, new.per_day)
    actor = yield from _begin(actor, now)
    ((key_id,),) = yield api_keys.insert_key(new, now)
    key, status = yield from _stored(key_id, actor, now)
    if actor.key is not None:
        check_rights(actor.key, key)
    token = yield from _new_token(key)
    yield _event(actor, "created", None, key, now)
    return IssuedKey(status, token)


def change_key(
    key_id: int,
    changes: ApiKeyChanges,
    actor: Actor,
    now: Milliseconds,
    check: Callable[[Key], None],
) -> Unit[Key]:
    """Change a key that passes ``check``; one that leaves enterprise loses limits of its own.

    Raises:
        NotFound: the actor sees none with this id.
        InvalidBody: limits of its own for a key that is not of the plan enterprise.
        BeyondOwnRights: it would get what the actor's key has not.
        LastAdminKey: over HTTP, no other key could administer keys then.
        PetstoreError: what ``check`` raises.
    """

    def change(key: ApiKey) -> ApiKey:
        wanted = {name: value for name, value in asdict(changes).items() if value is not UNSET}
        if wanted.get("plan", key.plan) != "enterprise":
            wanted = {"per_minute": None, "per_day": None, **wanted}
        changed = replace(key, **wanted)
        _check_own_limits(changed.plan, changed.per_minute, changed.per_day)
        return changed

    return (yield from _change(key_id, "changed", change, actor, now, check))


def rotate_key(
    key_id: int,
    grace: Milliseconds,
    actor: Actor,
    now: Milliseconds,
    check: Callable[[Key], None],
) -> Unit[IssuedKey]:
    """Issue a new token for a key that passes ``check``; its old one lives on for ``grace``.

    Raises:
        NotFound: the actor sees none with this id.
        KeyEnded: the key is expired or revoked.
        BeyondOwnRights: whoever holds the token could do what the actor's key cannot.
        PetstoreError: what ``check`` raises.
    """
    actor = yield from _begin(actor, now)
    key, status = yield from _stored(key_id, actor, now)
    check(status)
    if status.state != "active":
        msg = f"key {key.id} is {status.state}; only an active key can be rotated"
        raise KeyEnded(msg)
    if actor.key is not None:
        check_rights(actor.key, key)
    yield api_keys.end_tokens(key_id, now + grace)
    token = yield from _new_token(key)
    yield _event(actor, "rotated", key, key, now)
    return IssuedKey(status, token)


def revoke_key(
    key_id: int, actor: Actor, now: Milliseconds, check: Callable[[Key], None]
) -> Unit[Key]:
    """End a key that passes ``check``, for good. Revoking it again changes nothing.

    Raises:
        NotFound: the actor sees none with this id.
        LastAdminKey: over HTTP, no other key could administer keys then.
        PetstoreError: what ``check`` raises.
    """

    def revoke(key: ApiKey) -> ApiKey:
        return key if key.revoked_at is not None else replace(key, revoked_at=now)

    return (yield from _change(key_id, "revoked", revoke, actor, now, check))


def unban_key(
    key_id: int, actor: Actor, now: Milliseconds, check: Callable[[Key], None]
) -> Unit[Key]:
    """Lift the ban of a key that passes ``check``, and forget how often it was banned before.

    Raises:
        NotFound: the actor sees none with this id.
        PetstoreError: what ``check`` raises.
    """
    rows = yield api_keys.select_key(key_id)
    banned_at = banned_at_of(rows[0]) if rows else None

    def unbans(key: ApiKey) -> ApiKey:
        # Later than the ban and the unbans before, whatever their clocks: it is heeded, and once.
        return replace(key, unbanned_at=max(now, (banned_at or 0) + 1, (key.unbanned_at or 0) + 1))

    return (yield from _change(key_id, "unbanned", unbans, actor, now, check))


def unconditional(_: object) -> None:
    """Let everything pass: the check of those who set no condition."""


def _change(
    key_id: int,
    action: Action,
    change: Callable[[ApiKey], ApiKey],
    actor: Actor,
    now: Milliseconds,
    check: Callable[[Key], None],
) -> Unit[Key]:
    actor = yield from _begin(actor, now)
    before, status = yield from _stored(key_id, actor, now)
    check(status)
    after = change(before)
    if after == before:
        return status
    if actor.key is not None:
        # Who lets a key live longer gives all that it has; one that has ended has nothing any more.
        check_rights(actor.key, after, before if after.end <= before.end else None)
        stays = _administers(after, now) and after.end >= before.end
        if _administers(before, now) and not stays:
            yield from _require_other_admin_key(before)
    yield api_keys.update_key(after)
    yield _event(actor, action, before, after, now)
    _, status = yield from _stored(key_id, actor, now)
    return status


def _begin(actor: Actor, now: Milliseconds) -> Unit[Actor]:
    """Count up the revision, and return the actor with its key as it is now.

    Raises:
        MissingScope: since it was let in, its key has ended or lost the scope.
    """
    yield api_keys.NOTE_CHANGE
    if actor.key is None:
        return actor
    rows = yield api_keys.select_key(actor.key.id)
    key = key_in(rows, actor.key.id, actor.environment)
    if not _administers(key, now):
        msg = "this key may administer keys no more"
        raise MissingScope(msg)
    # Its token may end before the key does.
    return actor._replace(key=replace(key, expires_at=actor.key.expires_at))


def _stored(key_id: int, actor: Actor, now: Milliseconds) -> Unit[tuple[ApiKey, Key]]:
    rows = yield api_keys.select_key(key_id)
    key = key_in(rows, key_id, actor.environment)
    return key, key_of(key, rows[0], now)


def _new_token(key: ApiKey) -> Unit[str]:
    token = new_token(key.environment)
    yield api_keys.insert_token(digest(token.encode("ascii")), key.id)
    return token


def _event(
    actor: Actor, action: Action, before: ApiKey | None, after: ApiKey, now: Milliseconds
) -> Statement:
    changes = changes_between(before, after)
    return api_keys.insert_event(after.id, now, actor.name, action, changes)


def _administers(key: ApiKey, now: Milliseconds) -> bool:
    return "keys:admin" in key.scopes and key.state(now) == "active"


def _require_other_admin_key(key: ApiKey) -> Unit[None]:
    if not (yield api_keys.select_other_admin_key(key)):
        msg = (
            f"key {key.id} is the last that can administer keys: give another the scope"
            " keys:admin first, or use the command line"
        )
        raise LastAdminKey(msg)


def _check_own_limits(plan: PlanName, per_minute: int | None, per_day: int | None) -> None:
    for name, value in (("perMinute", per_minute), ("perDay", per_day)):
        if value is not None and plan != "enterprise":
            msg = f"{name}: only a key of the plan enterprise has limits of its own, not {plan}"
            raise InvalidBody(msg)
