"""API keys in SQL. Every change counts up the revision, by which a running service notices."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Row, Statement
from petstore.databases.pages import select_page
from petstore.domain.api_keys import ApiKey, Environment, NewApiKey, Scope

_COLUMNS = (
    "k.id, k.name, k.plan, k.per_minute, k.per_day, k.scopes, k.environment,"
    " k.created_at, k.expires_at, k.revoked_at, k.pardoned_at"
)
_SELECT = (
    f"SELECT {_COLUMNS}, r.used_at, r.banned_at, r.banned_until"  # noqa: S608 - only names
    " FROM api_keys k LEFT JOIN rate_limits r ON r.key_id = k.id"
)

SELECT_REVISION = Statement("SELECT revision FROM api_key_revision", name="select_key_revision")

NOTE_CHANGE = Statement(
    "UPDATE api_key_revision SET revision = revision + 1", name="update_key_revision"
)
"""Counts up the revision. At the head of a unit it makes changes to keys wait for one another."""


def select_key_by_digest(digest: bytes) -> Statement:
    """Return the SELECT of a token's key, and of when the token itself expires."""
    return Statement(
        f"SELECT {_COLUMNS}, t.expires_at FROM api_key_tokens t"  # noqa: S608 - only names
        " JOIN api_keys k ON k.id = t.key_id WHERE t.digest = ?1",
        (digest,),
        name="select_key_by_digest",
    )


def select_key(key_id: int) -> Statement:
    """Return the SELECT of one key, and of what the limiter has saved of it."""
    return Statement(f"{_SELECT} WHERE k.id = ?1", (key_id,), name="select_key")


def select_keys(environment: Environment | None, after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` keys with an id above ``after``, by id."""
    return select_page("select_keys", _SELECT, {"environment": environment}, after, count)


def select_other_admin_key(key: ApiKey) -> Statement:
    """Return the SELECT of one key beside ``key`` that can administer keys, for as long."""
    lives_as_long = "expires_at IS NULL"
    if key.expires_at is not None:
        lives_as_long += " OR expires_at >= ?3"
    return Statement(
        "SELECT id FROM api_keys WHERE environment = ?1 AND id <> ?2"  # noqa: S608 - only names
        f" AND scopes LIKE '%keys:admin%' AND revoked_at IS NULL AND ({lives_as_long}) LIMIT 1",
        (key.environment, key.id, *(() if key.expires_at is None else (key.expires_at,))),
        name="select_other_admin_key",
    )


def insert_key(new: NewApiKey, now: Milliseconds) -> Statement:
    """Return the INSERT of a key; its row has the id."""
    return Statement(
        "INSERT INTO api_keys"
        " (name, plan, per_minute, per_day, scopes, environment, created_at, expires_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
        (
            new.name,
            new.plan,
            new.per_minute,
            new.per_day,
            _stored(new.scopes),
            new.environment,
            now,
            new.expires_at,
        ),
        name="insert_key",
    )


def insert_token(digest: bytes, key_id: int) -> Statement:
    """Return the INSERT of a token by its digest."""
    return Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, ?2)",
        (digest, key_id),
        name="insert_token",
    )


def end_tokens(key_id: int, until: Milliseconds) -> Statement:
    """Return the UPDATE after which the tokens of a key live on to ``until`` at most."""
    return Statement(
        "UPDATE api_key_tokens SET expires_at = ?1"
        " WHERE key_id = ?2 AND (expires_at IS NULL OR expires_at > ?1)",
        (until, key_id),
        name="end_tokens",
    )


def update_key(key: ApiKey) -> Statement:
    """Return the UPDATE of what can change of a key."""
    return Statement(
        "UPDATE api_keys SET name = ?1, plan = ?2, per_minute = ?3, per_day = ?4, scopes = ?5,"
        " expires_at = ?6, revoked_at = ?7, pardoned_at = ?8 WHERE id = ?9",
        (
            key.name,
            key.plan,
            key.per_minute,
            key.per_day,
            _stored(key.scopes),
            key.expires_at,
            key.revoked_at,
            key.unbanned_at,
            key.id,
        ),
        name="update_key",
    )


def insert_event(
    key_id: int, now: Milliseconds, actor: str, action: str, changes: str
) -> Statement:
    """Return the INSERT of a change to a key; ``changes`` is JSON."""
    return Statement(
        "INSERT INTO api_key_events (key_id, at, actor, action, changes)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        (key_id, now, actor, action, changes),
        name="insert_key_event",
    )


def select_events(key_id: int, after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` changes with an id above ``after``, by id."""
    select = "SELECT id, at, actor, action, changes FROM api_key_events"
    return select_page("select_key_events", select, {"key_id": key_id}, after, count)


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
        unbanned_at=row[10],
    )


def _stored(scopes: frozenset[Scope]) -> str:
    return " ".join(sorted(scopes))
