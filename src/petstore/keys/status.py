"""An API key with its state, its ban and its last use, as its managers see it."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict, fields

from petstore.clock import Clock, Milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Value, placeholder_list
from petstore.databases.pages import Page, looked_up, read_page
from petstore.domain.plans import UNLIMITED
from petstore.errors import NotFound
from petstore.keys.model import ROLES, Caller, CallerKind, Environment, Key, KeyFields
from petstore.limits.contract import NEVER

COLUMNS = ("id", *(name for name in Caller.__struct_fields__ if name not in {"id", "role"}))
"""The columns of a key in SQL, of which the first is its id."""

PERSON = {name: f"p.{name}" for name in ("id", "name", "environment", "created_at", "role")} | {
    "revoked_at": "p.disabled_at"
}
"""The fields of a caller that a person has, and their columns of ``people p``."""

CALLER = {
    name: f"coalesce(k.{name}, {PERSON[name]})" if name in PERSON else f"k.{name}"
    for name in COLUMNS
} | {"role": "p.role"}
"""The fields of a key or a person, and their columns in ``join_caller``."""

STORED_COLUMNS = (
    *(f"k.{name}" for name in COLUMNS),
    "(SELECT seen_at FROM callers WHERE callers.id = k.id)",
    *("r.used_at", "r.banned_at", "r.banned_until", "k.token_ends"),
)
"""The columns of a ``StoredKey``, from ``api_keys k`` and ``rate_limits r``."""

_OF_VALUE: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    tuple: lambda text: tuple(text.split()),
    frozenset: lambda text: frozenset(text.split()),
}
# SQL has neither lists nor booleans. The default of such a field has its type.
_DECODERS = [
    (field.name, _OF_VALUE[type(field.default)])
    for field in fields(Caller)
    if type(field.default) in _OF_VALUE
]

_LIMITS = looked_up("LEFT JOIN", "rate_limits", "r", "key_id", "k.id")
SELECT_KEYS = f"SELECT {', '.join(STORED_COLUMNS)} FROM api_keys k {_LIMITS}"  # noqa: S608 - only names


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
        return Key(
            id=key.id,
            name=key.name,
            plan=key.plan,
            per_minute=_limit(key.limits.per_minute),
            per_day=_limit(key.limits.per_day),
            scopes=sorted(key.scopes),
            allowed_networks=list(key.allowed_networks),
            environment=key.environment,
            token_ends=self.token_ends.partition(" ")[0],
            state=key.state(now),
            banned_until=_time(until) if is_banned else None,
            created_at=utc_second(key.created_at),
            expires_at=_time(key.expires_at),
            last_used_at=_time(max(self.used_at or 0, self.seen_at or 0) or None),
        )


async def get_key(store: Reader, key_id: int, environment: Environment | None, clock: Clock) -> Key:
    """Return one key, or raise ``NotFound`` (see ``found``)."""
    return found(await store.read(select_key(key_id)), key_id, environment).shown(clock())


async def list_keys(
    store: Reader, environment: Environment | None, after: int | None, limit: int, clock: Clock
) -> Page[Key]:
    """Return the first ``limit`` keys with an id above ``after``, of ``environment`` if given."""
    now, filters = clock(), {"environment": environment or UNSET}
    return await read_page(
        store,
        "select_keys",
        SELECT_KEYS,
        filters,
        after,
        limit,
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


def join_caller(caller_id: str) -> str:
    """Return the joins of the key ``k`` or the person ``p`` with an id; the other one is null."""
    return f"LEFT JOIN api_keys k ON k.id = {caller_id} LEFT JOIN people p ON p.id = {caller_id}"


def caller_of(row: Row, fields: Collection[str] = COLUMNS) -> Caller:
    """Return the key or the person in a row that begins with these fields."""
    values = dict(zip(fields, row, strict=False))
    if values.get("role") is not None:
        values |= {"plan": "enterprise", "scopes": ROLES[values["role"]], "allowed_networks": ()}
        return Caller(**values)
    for name, decode in _DECODERS:
        values[name] = decode(values[name])
    return Caller(**values)


def new_caller(kind: CallerKind) -> Statement:
    """Return the INSERT that gives a key or a person its id."""
    return Statement(
        "INSERT INTO callers (kind) VALUES (?1) RETURNING id", (kind,), name="insert_caller"
    )


def stored_key(row: Row) -> StoredKey:
    """Return the key in a row that begins with ``STORED_COLUMNS``."""
    return StoredKey(caller_of(row), *row[len(COLUMNS) : len(STORED_COLUMNS)])


def values_of(key: KeyFields[Milliseconds]) -> dict[str, Value]:
    """Return the fields of a key as the database stores them."""
    return {name: _value(value) for name, value in asdict(key).items()}


def _value(value: Any) -> Value:
    if isinstance(value, frozenset):
        return " ".join(sorted(value))
    if isinstance(value, tuple):
        return " ".join(value)
    return int(value) if isinstance(value, bool) else value


def _limit(limit: int) -> int | None:
    return None if limit == UNLIMITED else limit


def _time(moment: Milliseconds | None) -> datetime | None:
    return None if moment is None else utc_second(moment)
