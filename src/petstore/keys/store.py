"""API keys in the database. Each change first counts up the revision that all processes watch."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from petstore.clock import DAY, Clock, Milliseconds, seconds_up, utc_second
from petstore.coalescing import SingleFlight
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Unit,
    Value,
    placeholder_list,
    placeholders,
    read_unit,
)
from petstore.databases.pages import Page, lateral_join, read_page
from petstore.domain.names import name_key
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
from petstore.events.model import AdminEventType, admin_event
from petstore.events.search import count_since
from petstore.events.store import Change
from petstore.keys.model import (
    Caller,
    CallerKind,
    Environment,
    Key,
    KeyFields,
    KeyWithToken,
    check_rights,
    digest,
    is_token,
    new_token,
)
from petstore.limits.decide import NEVER
from petstore.periodic_tasks import PeriodicTask
from petstore.time_slices import TimeSlices

MAX_OWN_ROTATIONS = 5
"""How often a key may rotate itself on one day (UTC)."""

_SEARCHED_AT_ONCE = 100
_shared_scopes = lru_cache(maxsize=256)(lambda text: frozenset(text.split()))

COLUMNS = ("id", *(name for name in Caller.__struct_fields__ if name not in {"id", "role"}))
"""The columns of a key in SQL, of which the first is its id."""

SELECT_KEYS = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)},"  # noqa: S608 - only names
    " (SELECT seen_at FROM callers WHERE callers.id = k.id), r.used_at, r.banned_at,"
    " r.banned_until, k.token_ends"
    f" FROM api_keys k {lateral_join('LEFT JOIN', 'rate_limits', 'r', 'key_id', 'k.id')}"
)


class StoredKey(NamedTuple):
    """``token_ends`` are the last characters of its tokens, the newest first."""

    key: Caller
    seen_at: Milliseconds | None
    used_at: Milliseconds | None
    banned_at: Milliseconds | None
    banned_until: Milliseconds | None
    token_ends: str

    def shown(self, now: Milliseconds) -> Key:
        key, until = self.key, self.banned_until
        unbanned_at = key.unbanned_at or NEVER
        is_banned = until is not None and now < until and (self.banned_at or NEVER) > unbanned_at
        used_at = max(self.used_at or 0, self.seen_at or 0)
        per_minute, per_day = (None if each == UNLIMITED else each for each in key.limits)
        return Key(
            *(key.id, key.name, key.plan, per_minute, per_day),
            scopes=sorted(key.scopes),
            allowed_networks=list(key.allowed_networks),
            environment=key.environment,
            token_ends=self.token_ends.partition(" ")[0],
            state=key.state(now),
            banned_until=utc_second(until) if is_banned and until else None,
            created_at=utc_second(key.created_at),
            expires_at=utc_second(key.expires_at) if key.expires_at else None,
            last_used_at=utc_second(used_at) if used_at else None,
        )


async def get_key(store: Reader, key_id: int, environment: Environment | None, clock: Clock) -> Key:
    return found(await store.read(select_key(key_id)), key_id, environment).shown(clock())


async def list_keys(
    store: Reader,
    environment: Environment,
    text: str,
    after: int | None,
    limit: int,
    now: Milliseconds,
) -> Page[Key]:
    """A search, for a ``text`` that is not empty, reads keys until it has found enough."""
    words, slices = name_key(text).split(), TimeSlices()
    at_once = _SEARCHED_AT_ONCE if words else min(limit + 1, _SEARCHED_AT_ONCE)

    def matches(stored: StoredKey) -> bool:
        key = stored.key
        return (
            words == [str(key.id)]
            or all(word in name_key(key.name) for word in words)
            or text.rstrip().endswith(tuple(stored.token_ends.split()))
        )

    await slices.begin()
    found: list[Key] = []
    start: int | None = after or 0
    while start is not None and len(found) <= limit:
        page = await read_page(
            *(store, "select_keys", SELECT_KEYS, {"environment": environment}, start),
            *(at_once, stored_key),
        )
        found += [stored.shown(now) for stored in page.items if matches(stored)]
        start = page.next_after
        await slices.rest()
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


async def names_of_callers(store: Reader, ids: Collection[int]) -> dict[int, str]:
    wanted = f"WHERE id IN ({placeholder_list(1, ids)})"
    sql = f"SELECT id, name FROM api_keys {wanted} UNION ALL SELECT id, name FROM people {wanted}"  # noqa: S608 - only parameters
    return dict(await store.read(Statement(sql, tuple(ids), name="select_names_of_callers")))


def select_key(key_id: int) -> Statement:
    return Statement(f"{SELECT_KEYS} WHERE k.id = ?1", (key_id,), name="select_key")


def found(rows: list[Row], key_id: int, environment: Environment | None) -> StoredKey:
    stored = stored_key(rows[0]) if rows else None
    if stored is None or environment not in (stored.key.environment, None):
        raise NotFound(f"there is no key {key_id}")
    return stored


def caller_of(row: Row) -> Caller:
    """Return the key in a row that begins with ``COLUMNS``."""
    values = dict(zip(COLUMNS, row, strict=False))
    values["scopes"] = _shared_scopes(values["scopes"])
    values["allowed_networks"] = tuple(values["allowed_networks"].split())
    return Caller(**values)


def stored_key(row: Row) -> StoredKey:
    return StoredKey(caller_of(row), *row[len(COLUMNS) :])


def values_of(key: KeyFields[Milliseconds]) -> dict[str, Value]:
    scopes, networks = " ".join(sorted(key.scopes)), " ".join(key.allowed_networks)
    return asdict(key) | {"scopes": scopes, "allowed_networks": networks}


def new_caller(kind: CallerKind) -> Statement:
    return Statement(
        "INSERT INTO callers (kind) VALUES (?1) RETURNING id", (kind,), name="insert_caller"
    )


def create_key(
    new: KeyFields[Milliseconds], environment: Environment, change: Change
) -> Unit[KeyWithToken]:
    _check_own_limits(new.plan, new.per_minute, new.per_day)
    change = yield from begin_change(change)
    ((key_id,),) = yield new_caller("key")
    values = {"id": key_id, "environment": environment, "created_at": change.now} | values_of(new)
    yield Statement(
        f"INSERT INTO api_keys ({', '.join(values)}) VALUES {placeholders(len(values))}",  # noqa: S608 - only names
        tuple(values.values()),
        name="insert_key",
    )
    stored = found((yield select_key(key_id)), key_id, change.environment)
    if change.caller is not None:
        check_rights(change.caller, stored.key)
    return (yield from _issue_token("key.created", stored, None, change))


def change_key(key_id: int, changes: Mapping[str, Any], change: Change) -> Unit[Key]:
    """Change fields of ``KeyFields``. A key that leaves enterprise loses its own limits."""

    def changed(stored: StoredKey) -> Caller:
        key = stored.key
        is_enterprise = changes.get("plan", key.plan) == "enterprise"
        lost = {} if is_enterprise else {"per_minute": None, "per_day": None}
        after = replace(key, **{**lost, **changes})
        _check_own_limits(after.plan, after.per_minute, after.per_day)
        return after

    return (yield from _change(key_id, "key.updated", changed, change))


def revoke_key(key_id: int, change: Change) -> Unit[Key]:
    """End a key, for good. Revoking it again changes nothing."""

    def revoked(stored: StoredKey) -> Caller:
        return replace(stored.key, revoked_at=stored.key.revoked_at or change.now)

    return (yield from _change(key_id, "key.revoked", revoked, change))


def unban_key(key_id: int, change: Change) -> Unit[Key]:
    def unbanned(stored: StoredKey) -> Caller:
        # Later than the ban and any unban before, whatever their clocks, so it counts, and once.
        latest = max(stored.banned_at or 0, stored.key.unbanned_at or 0)
        return replace(stored.key, unbanned_at=max(change.now, latest + 1))

    return (yield from _change(key_id, "key.unbanned", unbanned, change))


def rotate_key(key_id: int, grace: Milliseconds, change: Change) -> Unit[KeyWithToken]:
    change = yield from begin_change(change)
    stored = found((yield select_key(key_id)), key_id, change.environment)
    key, shown = stored.key, stored.shown(change.now)
    change.check(shown)
    if shown.state != "active":
        raise KeyEnded(f"key {key.id} is {shown.state}; only an active key can be rotated")
    if change.caller is not None:
        check_rights(change.caller, key)
    return (yield from _rotate(stored, grace, change))


def rotate_own_key(
    grace: Milliseconds, find_own: Callable[[], Unit[Caller]], token: bytes, change: Change
) -> Unit[KeyWithToken]:
    """A token in its grace period cannot rotate: a thief could lock out who has the new one."""
    yield count_up_revision()
    key = yield from find_own()
    newest = yield Statement(
        "SELECT 1 FROM api_key_tokens WHERE digest = ?1 AND expires_at IS NULL",
        (token,),
        name="select_newest_token",
    )
    if not newest:
        raise BeyondOwnRights("this token was replaced; use the newest token")
    today = change.now // DAY  # rotations by others are free
    ((rotations,),) = yield count_since(
        today * DAY, f"key/{key.id}", "key.rotated", change.by.actor
    )
    if rotations >= MAX_OWN_ROTATIONS:
        seconds = seconds_up((today + 1) * DAY - change.now)
        msg = (
            f"this key has rotated itself {MAX_OWN_ROTATIONS} times today, the maximum: wait"
            f" {seconds} seconds, or ask an administrator of the keys"
        )
        raise TooManyRotations(msg, {"Retry-After": str(seconds)})
    stored = found((yield select_key(key.id)), key.id, key.environment)
    return (yield from _rotate(stored, grace, change))


def count_up_revision() -> Statement:
    """Return the UPDATE after which every process looks at its callers again."""
    return Statement(
        "UPDATE api_key_revision SET revision = revision + 1", name="update_key_revision"
    )


def begin_change(change: Change) -> Unit[Change]:
    """Count up the revision, and return the change with its caller, who must still administer."""
    yield count_up_revision()
    if change.find_caller is None:
        return change
    key = yield from change.find_caller()
    if key is None or not _administers(key, change.now) or not key.works_from(change.address):
        raise MissingScope(f"{change.by.actor.replace('/', ' ')} may no longer administer keys")
    return change._replace(caller=key)


def _change(
    key_id: int, kind: AdminEventType, changed: Callable[[StoredKey], Caller], change: Change
) -> Unit[Key]:
    change = yield from begin_change(change)
    stored = found((yield select_key(key_id)), key_id, change.environment)
    now, shown = change.now, stored.shown(change.now)
    change.check(shown)
    before, after = stored.key, changed(stored)
    if after == before:
        return shown
    if change.caller is not None:
        # A longer life extends all rights of the key. A key that has ended has no rights left.
        check_rights(change.caller, after, before if after.end <= before.end else None)
        stays = _administers(after, now) and after.end >= before.end
        if after.id == change.caller.id:
            stays = stays and after.works_from(change.address)
        if _administers(before, now) and not stays and change.caller.kind != "operator":
            yield from _require_other_admin_key(before)
    values = values_of(after)
    columns = ", ".join(f"{name} = ?{number}" for number, name in enumerate(COLUMNS[1:], 2))
    yield Statement(
        f"UPDATE api_keys SET {columns} WHERE id = ?1",  # noqa: S608 - only names
        tuple(values[name] for name in COLUMNS),
        name="update_key",
    )
    is_now = stored._replace(key=after).shown(now)
    yield change.record(admin_event(kind, is_now.environment, is_now, shown))
    return is_now


def _rotate(stored: StoredKey, grace: Milliseconds, change: Change) -> Unit[KeyWithToken]:
    yield Statement(
        "UPDATE api_key_tokens SET expires_at = ?1"
        " WHERE key_id = ?2 AND (expires_at IS NULL OR expires_at > ?1)",
        (change.now + grace, stored.key.id),
        name="end_tokens",
    )
    return (yield from _issue_token("key.rotated", stored, stored.shown(change.now), change))


def _issue_token(
    kind: AdminEventType, stored: StoredKey, before: Key | None, change: Change
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
    shown = stored._replace(token_ends=token[-4:]).shown(change.now)
    yield change.record(admin_event(kind, shown.environment, shown, before))
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
        raise LastAdminKey(
            f"key {key.id} is the last one that can administer keys: give another key the scope"
            " keys:admin first, or use the command line without a key"
        )


def _check_own_limits(plan: PlanName, per_minute: int | None, per_day: int | None) -> None:
    for name, value in (("perMinute", per_minute), ("perDay", per_day)):
        if value is not None and plan != "enterprise":
            msg = f"{name}: only a key of the plan enterprise has its own limits, not {plan}"
            raise InvalidBody(msg)


_SELECT_BY_DIGEST = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)}, t.expires_at"  # noqa: S608 - only names
    " FROM api_key_tokens t JOIN api_keys k ON k.id = t.key_id"
    " WHERE t.digest = ?1"
)


def find_key(credential: bytes) -> Unit[Caller | None]:
    """Return the key of a token with this digest, which expires with the token."""
    rows = yield Statement(_SELECT_BY_DIGEST, (credential,), name="select_key_by_digest")
    if not rows:
        return None
    key, token_ends_at = caller_of(rows[0]), rows[0][-1]
    if token_ends_at is not None and token_ends_at < key.end:
        # Keys created with this token must not outlive it either.
        key = replace(key, expires_at=token_ends_at)
    return key


class ApiKeyCache:
    """Finds the key of a token, from memory while no key has changed.

    The service calls ``refresh`` several times a second, so a revocation by another process takes
    effect within one. Look-ups of tokens that were found once are not limited.
    """

    def __init__(
        self,
        store: Reader,
        clock: Clock,
        environment: Environment,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self.environment: Environment = environment
        self._known: dict[bytes, Caller] = {}
        self._look_ups: SingleFlight[bytes, Caller | None] = SingleFlight()
        self._seen: set[bytes] = set()  # of tokens that were issued, so there are not too many
        self._revision = -1
        self._on_change = on_change

    def periodic_task(self, seconds: float) -> PeriodicTask:
        return PeriodicTask(self.refresh, seconds, "cannot refresh the API key cache")

    def get_cached(self, token: bytes) -> Caller | None:
        key = self._known.get(token)
        # Most keys never end, and need no look at the clock.
        lasts = key is not None and key.expires_at is None and key.revoked_at is None
        return key if lasts else self._usable(key)

    def is_new(self, token: bytes) -> bool:
        """Return whether ``token`` is well formed, and was never looked up."""
        if token in self._seen or token in self._look_ups:
            return False
        return is_token(token, self.environment)

    async def find(self, token: bytes) -> Caller | None:
        key = self._known.get(token)
        if key is None and is_token(token, self.environment):
            key = await self._look_ups.call(token, partial(self._read, token))
        return self._usable(key)

    async def refresh(self) -> None:
        select = Statement("SELECT revision FROM api_key_revision", name="select_key_revision")
        ((revision,),) = await self._store.read(select)
        if revision != self._revision:
            self._revision = revision
            self._known = {}
            # A look-up from before the refresh is not shared: its row may be stale.
            self._look_ups = SingleFlight()
            self._on_change()

    def _usable(self, key: Caller | None) -> Caller | None:
        return key if key is not None and key.state(self._clock()) == "active" else None

    async def _read(self, token: bytes) -> Caller | None:
        known = self._known
        key = await read_unit(self._store, find_key(digest(token)))
        if key is None or key.environment != self.environment:
            self._seen.discard(token)
            return None
        # Into the dict from before the read: after a refresh in between, this row may be stale.
        known[token] = key
        self._seen.add(token)
        return key
