"""API keys in SQL. Every change counts up the revision, by which a running service notices."""

from collections.abc import Callable

from msgspec import Struct

from petstore.clock import Milliseconds
from petstore.domain.api_keys import ApiKey, Environment, Scope
from petstore.domain.plans import PlanName
from petstore.errors import NotFound
from petstore.storage.contract import Row, Statement, Unit

_COLUMNS = (
    "k.id, k.name, k.plan, k.per_minute, k.per_day, k.scopes, k.environment,"
    " k.created_at, k.expires_at, k.revoked_at, k.pardoned_at"
)
_NOTE_CHANGE = Statement("UPDATE api_key_revision SET revision = revision + 1")

SELECT_REVISION = Statement("SELECT revision FROM api_key_revision")


class NewApiKey(Struct, frozen=True):
    """A key to create. Times are milliseconds since the epoch."""

    name: str
    plan: PlanName
    per_minute: int | None
    per_day: int | None
    scopes: frozenset[Scope]
    environment: Environment
    expires_at: Milliseconds | None


def select_key_by_digest(digest: bytes) -> Statement:
    """Return the SELECT of a token's key, and of when the token itself expires."""
    return Statement(
        f"SELECT {_COLUMNS}, t.expires_at FROM api_key_tokens t"  # noqa: S608 - only names
        " JOIN api_keys k ON k.id = t.key_id WHERE t.digest = ?1",
        (digest,),
    )


def select_key(key_id: int) -> Statement:
    """Return the SELECT of one key."""
    return Statement(f"SELECT {_COLUMNS} FROM api_keys k WHERE k.id = ?1", (key_id,))  # noqa: S608


def select_keys() -> Statement:
    """Return the SELECT of all keys, by id."""
    return Statement(f"SELECT {_COLUMNS} FROM api_keys k ORDER BY k.id")  # noqa: S608


def add_key(new: NewApiKey, digest: bytes, now: Milliseconds) -> Unit[ApiKey]:
    """Add a key with its first token and return it."""
    ((key_id,),) = yield Statement(
        "INSERT INTO api_keys"
        " (name, plan, per_minute, per_day, scopes, environment, created_at, expires_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
        (
            new.name,
            new.plan,
            new.per_minute,
            new.per_day,
            " ".join(sorted(new.scopes)),
            new.environment,
            now,
            new.expires_at,
        ),
    )
    yield _insert_token(digest, key_id)
    yield _NOTE_CHANGE
    return (yield from _stored(key_id))


def change_key(key_id: int, change: Callable[[ApiKey], ApiKey]) -> Unit[ApiKey]:
    """Store what ``change`` makes of a key, and return that.

    Raises:
        NotFound: there is no such key.
        PetstoreError: what ``change`` raises.
    """
    key = yield from _stored(key_id)
    changed = change(key)
    for field in key.__struct_fields__:
        value = getattr(changed, field)
        if value != getattr(key, field):
            # Only what has changed, so that changes to different fields cannot undo each other.
            yield Statement(
                f"UPDATE api_keys SET {field} = ?1 WHERE id = ?2",  # noqa: S608 - only names
                (" ".join(sorted(value)) if field == "scopes" else value, key_id),
            )
    yield _NOTE_CHANGE
    return changed


def rotate_key(
    key_id: int, check: Callable[[ApiKey], None], digest: bytes, old_until: Milliseconds
) -> Unit[ApiKey]:
    """Give a key that passes ``check`` a new token; old ones live on to ``old_until`` at most.

    Raises:
        NotFound: there is no such key.
        PetstoreError: what ``check`` raises.
    """
    key = yield from _stored(key_id)
    check(key)
    yield Statement(
        "UPDATE api_key_tokens SET expires_at = ?1"
        " WHERE key_id = ?2 AND (expires_at IS NULL OR expires_at > ?1)",
        (old_until, key_id),
    )
    yield _insert_token(digest, key_id)
    yield _NOTE_CHANGE
    return key


def api_key_of(row: Row) -> ApiKey:
    """Return the key in a row of the SELECTs above."""
    return ApiKey(
        id=row[0],
        name=row[1],
        plan=row[2],
        per_minute=row[3],
        per_day=row[4],
        scopes=frozenset(row[5].split()),
        environment=row[6],
        created_at=row[7],
        expires_at=row[8],
        revoked_at=row[9],
        pardoned_at=row[10],
    )


def _insert_token(digest: bytes, key_id: int) -> Statement:
    return Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, ?2)", (digest, key_id)
    )


def _stored(key_id: int) -> Unit[ApiKey]:
    rows = yield select_key(key_id)
    if not rows:
        msg = f"there is no key {key_id}"
        raise NotFound(msg)
    return api_key_of(rows[0])
