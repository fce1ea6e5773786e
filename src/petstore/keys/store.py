"""List, create, change, rotate, revoke and unban API keys.

Each change is one unit of work. It begins by counting up the revision of all keys, so changes to
keys and people happen one after another, and a running service learns of them. It ends by
recording an event.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.clock import DAY, Clock, Milliseconds, seconds_up, utc_second
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Unit,
    Value,
    placeholder_list,
    placeholders,
)
from petstore.databases.pages import Page, lateral_join, read_page
from petstore.domain.plans import UNLIMITED, PlanName
from petstore.errors import (
    BeyondOwnRights,
    InvalidBody,
    KeyEnded,
    LastAdminKey,
    MissingScope,
    NotFound,
    TooManyRotations,
)
from petstore.events.model import OPERATOR, AdminEventType, Author, NewEvent, admin_event
from petstore.events.search import count_since
from petstore.events.store import record
from petstore.keys.model import (
    Caller,
    CallerKind,
    Environment,
    Key,
    KeyFields,
    KeyWithToken,
    check_rights,
    digest,
    new_token,
)
from petstore.limits.decide import NEVER

MAX_OWN_ROTATIONS = 5
"""How often a key may rotate itself on one day (UTC)."""

COLUMNS = ("id", *(name for name in Caller.__struct_fields__ if name not in {"id", "role"}))
"""The columns of a key in SQL, of which the first is its id."""

SELECT_KEYS = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)},"  # noqa: S608 - only names
    " (SELECT seen_at FROM callers WHERE callers.id = k.id), r.used_at, r.banned_at,"
    " r.banned_until, k.token_ends"
    f" FROM api_keys k {lateral_join('LEFT JOIN', 'rate_limits', 'r', 'key_id', 'k.id')}"
)


class StoredKey(NamedTuple):
    """A key as stored, its last use in the console, and what the limiter has saved about it.

    ``token_ends`` are the last characters of its tokens, the newest first.
    """

    key: Caller
    seen_at: Milliseconds | None
    used_at: Milliseconds | None
    banned_at: Milliseconds | None
    banned_until: Milliseconds | None
    token_ends: str

    def shown(self, now: Milliseconds) -> Key:
        """Return the key as its managers see it at ``now``."""
        key, until = self.key, self.banned_until
        unbanned_at = key.unbanned_at or NEVER
        is_banned = until is not None and now < until and (self.banned_at or NEVER) > unbanned_at
        per_minute, per_day = (None if each == UNLIMITED else each for each in key.limits)
        return Key(
            *(key.id, key.name, key.plan, per_minute, per_day),
            scopes=sorted(key.scopes),
            allowed_networks=list(key.allowed_networks),
            environment=key.environment,
            token_ends=self.token_ends.partition(" ")[0],
            state=key.state(now),
            banned_until=_time(until if is_banned else None),
            created_at=utc_second(key.created_at),
            expires_at=_time(key.expires_at),
            last_used_at=_time(max(self.used_at or 0, self.seen_at or 0) or None),
        )


def _passes(_: object) -> None:
    """Let a change begin with any version of its key or person."""


class Principal(NamedTuple):
    """Who changes keys or people ``now``: the operator at the command line, or a ``caller``.

    ``check`` raises an error if the key or person is another version than the client expects.
    Events name the ``author``. ``address`` is where the client of the ``caller`` is.
    ``find_caller`` finds the caller once more by what the client has shown, a token or a session,
    if that is still valid. The ``credential`` is the digest of what it ends with (see ``Session``).
    """

    author: Author = OPERATOR
    caller: Caller | None = None
    address: str = ""
    find_caller: Callable[[], Unit[Caller | None]] | None = None
    credential: bytes | None = None
    now: Milliseconds = 0
    check: Callable[[Any], None] = _passes

    def at(self, now: Milliseconds) -> "Principal":
        return self._replace(now=now)

    def record(self, event: NewEvent) -> Statement:
        return record(self.now, event, by=self.author)

    @property
    def environment(self) -> Environment | None:
        """The environment whose keys it sees; ``None`` is all of them."""
        return self.caller.environment if self.caller else None


async def get_key(store: Reader, key_id: int, environment: Environment | None, clock: Clock) -> Key:
    """Return one key, or raise ``NotFound`` (see ``found``)."""
    return found(await store.read(select_key(key_id)), key_id, environment).shown(clock())


async def list_keys(
    store: Reader, environment: Environment | None, after: int | None, limit: int, clock: Clock
) -> Page[Key]:
    """Return the first ``limit`` keys with an id above ``after``, of ``environment`` if given."""
    now = clock()
    return await read_page(
        *(store, "select_keys", SELECT_KEYS, {"environment": environment or UNSET}, after, limit),
        lambda row: stored_key(row).shown(now),
    )


async def names_of_callers(store: Reader, ids: Collection[int]) -> dict[int, str]:
    """Return the names of these keys and people."""
    wanted = f"WHERE id IN ({placeholder_list(1, ids)})"
    sql = f"SELECT id, name FROM api_keys {wanted} UNION ALL SELECT id, name FROM people {wanted}"  # noqa: S608 - only parameters
    return dict(await store.read(Statement(sql, tuple(ids), name="select_names_of_callers")))


def select_key(key_id: int) -> Statement:
    """Return the SELECT of one key, with what the limiter has saved about it."""
    return Statement(f"{SELECT_KEYS} WHERE k.id = ?1", (key_id,), name="select_key")


def found(rows: list[Row], key_id: int, environment: Environment | None) -> StoredKey:
    """Return the key in the rows of ``select_key``."""
    stored = stored_key(rows[0]) if rows else None
    if stored is None or environment not in (stored.key.environment, None):
        msg = f"there is no key {key_id}"
        raise NotFound(msg)
    return stored


def caller_of(row: Row) -> Caller:
    """Return the key in a row that begins with ``COLUMNS``."""
    values = dict(zip(COLUMNS, row, strict=False))
    values["scopes"] = frozenset(values["scopes"].split())
    values["allowed_networks"] = tuple(values["allowed_networks"].split())
    return Caller(**values)


def stored_key(row: Row) -> StoredKey:
    """Return the key in a row of ``SELECT_KEYS``."""
    return StoredKey(caller_of(row), *row[len(COLUMNS) :])


def values_of(key: KeyFields[Milliseconds]) -> dict[str, Value]:
    """Return the fields of a key as the database stores them."""
    scopes, networks = " ".join(sorted(key.scopes)), " ".join(key.allowed_networks)
    return asdict(key) | {"scopes": scopes, "allowed_networks": networks}


def new_caller(kind: CallerKind) -> Statement:
    """Return the INSERT that gives a key or a person its id."""
    return Statement(
        "INSERT INTO callers (kind) VALUES (?1) RETURNING id", (kind,), name="insert_caller"
    )


def create_key(
    new: KeyFields[Milliseconds], environment: Environment, by: Principal
) -> Unit[KeyWithToken]:
    _check_own_limits(new.plan, new.per_minute, new.per_day)
    by = yield from begin_change(by)
    ((key_id,),) = yield new_caller("key")
    values = {"id": key_id, "environment": environment, "created_at": by.now} | values_of(new)
    yield Statement(
        f"INSERT INTO api_keys ({', '.join(values)}) VALUES {placeholders(len(values))}",  # noqa: S608 - only names
        tuple(values.values()),
        name="insert_key",
    )
    stored = yield from _read(key_id, by)
    if by.caller is not None:
        check_rights(by.caller, stored.key)
    return (yield from _issue_token("key.created", stored, None, by))


def change_key(key_id: int, changes: Mapping[str, Any], by: Principal) -> Unit[Key]:
    """Change fields of a key, by their names in ``KeyFields``.

    A key that leaves enterprise loses its own limits.
    """

    def change(stored: StoredKey) -> Caller:
        key = stored.key
        is_enterprise = changes.get("plan", key.plan) == "enterprise"
        lost = {} if is_enterprise else {"per_minute": None, "per_day": None}
        changed = replace(key, **{**lost, **changes})
        _check_own_limits(changed.plan, changed.per_minute, changed.per_day)
        return changed

    return (yield from _change(key_id, "key.updated", change, by))


def rotate_key(key_id: int, grace: Milliseconds, by: Principal) -> Unit[KeyWithToken]:
    """Issue a new token for a key; the old one is valid for ``grace``."""
    by = yield from begin_change(by)
    stored = yield from _read(key_id, by)
    key, shown = stored.key, stored.shown(by.now)
    by.check(shown)
    if shown.state != "active":
        msg = f"key {key.id} is {shown.state}; only an active key can be rotated"
        raise KeyEnded(msg)
    if by.caller is not None:
        check_rights(by.caller, key)
    return (yield from _rotate(stored, grace, by))


def rotate_own_key(
    grace: Milliseconds, find_own: Callable[[], Unit[Caller]], token: bytes, by: Principal
) -> Unit[KeyWithToken]:
    """Issue a new token for the key of a client, which needs no scope for it.

    ``find_own`` finds the key once more, if it is still valid. The client has the ``token`` with
    this digest. An old one in its grace period cannot rotate: whoever has found it could lock out
    the owner, who has the new one.
    """
    yield count_up_revision()
    key = yield from find_own()
    newest = yield Statement(
        "SELECT 1 FROM api_key_tokens WHERE digest = ?1 AND expires_at IS NULL",
        (token,),
        name="select_newest_token",
    )
    if not newest:
        msg = "this token ends soon, because the key was rotated: only its newest token can do that"
        raise BeyondOwnRights(msg)
    today = by.now // DAY  # rotations by others are free
    ((rotations,),) = yield count_since(
        today * DAY, f"key/{key.id}", "key.rotated", by.author.actor
    )
    if rotations >= MAX_OWN_ROTATIONS:
        seconds = seconds_up((today + 1) * DAY - by.now)
        msg = (
            f"this key has rotated itself {MAX_OWN_ROTATIONS} times today, the maximum: wait"
            f" {seconds} seconds, or ask an administrator of the keys"
        )
        raise TooManyRotations(msg, {"Retry-After": str(seconds)})
    stored = found((yield select_key(key.id)), key.id, key.environment)
    return (yield from _rotate(stored, grace, by))


def revoke_key(key_id: int, by: Principal) -> Unit[Key]:
    """End a key, for good. Revoking it again changes nothing."""

    def revoke(stored: StoredKey) -> Caller:
        key = stored.key
        return key if key.revoked_at is not None else replace(key, revoked_at=by.now)

    return (yield from _change(key_id, "key.revoked", revoke, by))


def unban_key(key_id: int, by: Principal) -> Unit[Key]:
    """Lift the ban of a key, and forget how often it was banned before."""

    def unban(stored: StoredKey) -> Caller:
        # Later than the ban and any unban before, whatever their clocks, so it counts, and once.
        latest = max(stored.banned_at or 0, stored.key.unbanned_at or 0)
        return replace(stored.key, unbanned_at=max(by.now, latest + 1))

    return (yield from _change(key_id, "key.unbanned", unban, by))


def count_up_revision() -> Statement:
    """Return the UPDATE after which every process looks at its callers again."""
    return Statement(
        "UPDATE api_key_revision SET revision = revision + 1", name="update_key_revision"
    )


def _change(
    key_id: int,
    kind: AdminEventType,
    change: Callable[[StoredKey], Caller],
    by: Principal,
) -> Unit[Key]:
    by, now = (yield from begin_change(by)), by.now
    stored = yield from _read(key_id, by)
    by.check(stored.shown(now))
    before, after = stored.key, change(stored)
    if after == before:
        return stored.shown(now)
    if by.caller is not None:
        # A longer life extends all rights of the key. A key that has ended has no rights left.
        check_rights(by.caller, after, before if after.end <= before.end else None)
        stays = _administers(after, now) and after.end >= before.end
        if after.id == by.caller.id:
            stays = stays and after.works_from(by.address)
        if _administers(before, now) and not stays and by.caller.kind != "operator":
            yield from _require_other_admin_key(before)
    values = values_of(after)
    changed = ", ".join(f"{name} = ?{number}" for number, name in enumerate(COLUMNS[1:], 2))
    yield Statement(
        f"UPDATE api_keys SET {changed} WHERE id = ?1",  # noqa: S608 - only names
        tuple(values[name] for name in COLUMNS),
        name="update_key",
    )
    shown = stored._replace(key=after).shown(now)
    yield by.record(admin_event(kind, shown.environment, shown, stored.shown(now)))
    return shown


def begin_change(by: Principal) -> Unit[Principal]:
    """Count up the revision, and return the principal with its caller as it is now.

    Raises:
        MissingScope: the actor's token or session has ended since the request began, or its key
            or person has lost the scope or the network.
    """
    yield count_up_revision()
    if by.find_caller is None:
        return by
    key = yield from by.find_caller()
    if key is None or not _administers(key, by.now) or not key.works_from(by.address):
        msg = f"{by.author.actor.replace('/', ' ')} may no longer administer keys"
        raise MissingScope(msg)
    return by._replace(caller=key)


def _read(key_id: int, by: Principal) -> Unit[StoredKey]:
    return found((yield select_key(key_id)), key_id, by.environment)


def _rotate(stored: StoredKey, grace: Milliseconds, by: Principal) -> Unit[KeyWithToken]:
    yield Statement(
        "UPDATE api_key_tokens SET expires_at = ?1"
        " WHERE key_id = ?2 AND (expires_at IS NULL OR expires_at > ?1)",
        (by.now + grace, stored.key.id),
        name="end_tokens",
    )
    return (yield from _issue_token("key.rotated", stored, stored.shown(by.now), by))


def _issue_token(
    kind: AdminEventType, stored: StoredKey, before: Key | None, by: Principal
) -> Unit[KeyWithToken]:
    token = new_token(stored.key.environment)
    yield Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, ?2)",
        (digest(token.encode("ascii")), stored.key.id),
        name="insert_token",
    )
    # The last 20 of them: each has a space behind it.
    yield Statement(
        "UPDATE api_keys SET token_ends = substr(?2 || ' ' || token_ends, 1, 100) WHERE id = ?1",
        (stored.key.id, token[-4:]),
        name="update_token_ends",
    )
    shown = stored._replace(token_ends=token[-4:]).shown(by.now)
    yield by.record(admin_event(kind, shown.environment, shown, before))
    return KeyWithToken(**asdict(shown), token=token)


def _administers(key: Caller, now: Milliseconds) -> bool:
    return "keys:admin" in key.scopes and key.state(now) == "active"


def _require_other_admin_key(key: Caller) -> Unit[None]:
    others = yield Statement(
        "SELECT id FROM api_keys WHERE environment = ?1 AND id <> ?2"
        " AND scopes LIKE '%keys:admin%' AND revoked_at IS NULL"
        " AND (expires_at IS NULL OR expires_at >= ?3) LIMIT 1",
        (key.environment, key.id, key.expires_at),
        name="select_other_admin_key",
    )
    if not others:
        msg = (
            f"key {key.id} is the last one that can administer keys: give another key the scope"
            " keys:admin first, or use the command line without a key"
        )
        raise LastAdminKey(msg)


def _check_own_limits(plan: PlanName, per_minute: int | None, per_day: int | None) -> None:
    for name, value in (("perMinute", per_minute), ("perDay", per_day)):
        if value is not None and plan != "enterprise":
            msg = f"{name}: only a key of the plan enterprise has its own limits, not {plan}"
            raise InvalidBody(msg)


def _time(moment: Milliseconds | None) -> datetime | None:
    return None if moment is None else utc_second(moment)
