"""Sessions of people at the console, and links that begin one."""

import secrets
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.domain.api_keys import ApiKey, Environment
from petstore.domain.api_keys import digest as token_digest
from petstore.errors import KeyEnded
from petstore.store.key_status import COLUMNS, api_key_of, found, select_key
from petstore.store.retention import are_first, prune_by_age

IDLE: Milliseconds = 30 * MINUTE
"""A session ends once nobody has used it for so long."""

LONGEST: Milliseconds = 12 * 60 * MINUTE
"""The maximum life of a session."""

SESSION_KEPT: Milliseconds = DAY
"""How long after its last use a session is kept: the person is told why it has ended."""

LINK_LIFE: Milliseconds = 10 * MINUTE
"""How long a link works."""

MAX_SESSIONS = 1000
"""The maximum number of sessions of one key: a new one ends those that were not used for longest.

A script that signs in again and again must not fill the database.
"""

SessionEnd: TypeAlias = Literal["revoked", "expired", "replaced", "unused", "longest"]
"""Why a session has ended: with its key, with its token, or because of its last use or its age."""

_TOUCH: Milliseconds = 60 * SECOND
_SELECT = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)},"  # noqa: S608 - only names
    " s.created_at, s.used_at, s.notice, s.token_digest, t.digest, t.expires_at"
    " FROM console_sessions s JOIN api_keys k ON k.id = s.key_id"
    " LEFT JOIN api_key_tokens t ON t.digest = s.token_digest WHERE s.digest = ?1"
)


class Session(NamedTuple):
    """A session of a ``key``; ``digest`` is that of its cookie.

    ``notice`` is what the last change told the person, as JSON.
    """

    digest: bytes
    key: ApiKey
    created_at: Milliseconds
    used_at: Milliseconds
    notice: str

    @property
    def ends_at(self) -> Milliseconds:
        """When it ends if nobody uses it again."""
        return min(self.created_at + LONGEST, self.used_at + IDLE)

    def needs_touch(self, now: Milliseconds) -> bool:
        """Return whether its last use is so long ago that a new one is worth a write."""
        return now - self.used_at >= _TOUCH


def open_session(
    key_id: int, token: bytes | None, now: Milliseconds, replaced: str = ""
) -> Unit[str]:
    """Begin a session of a key, and return its secret, the value of the cookie.

    With a ``token`` the session ends with that token, too. The session with the secret
    ``replaced`` ends.
    """
    yield from end_session(replaced)
    beyond = "key_id = ?1 ORDER BY used_at DESC LIMIT ?2 OFFSET ?3"
    which = are_first("console_sessions", "digest", beyond)
    yield Statement(
        f"DELETE FROM console_sessions WHERE {which}",  # noqa: S608 - only names
        (key_id, MAX_SESSIONS, MAX_SESSIONS - 1),
        name="delete_sessions_beyond",
        affects_pages=False,
    )
    secret = secrets.token_urlsafe(32)
    yield Statement(
        "INSERT INTO console_sessions (digest, key_id, token_digest, created_at, used_at)"
        " VALUES (?1, ?2, ?3, ?4, ?4)",
        (_digest(secret), key_id, None if token is None else token_digest(token), now),
        name="insert_session",
        affects_pages=False,
    )
    return secret


async def find_session(
    store: Reader, secret: str, environment: Environment, now: Milliseconds
) -> Session | SessionEnd | None:
    """Return the session with this secret, or why it has ended; ``None`` if there is none.

    Raises:
        Unavailable: the database is unreachable.
    """
    digest = _digest(secret)
    rows = await store.read(Statement(_SELECT, (digest,), name="select_session"))
    if not rows:
        return None
    key = api_key_of(rows[0])
    return _session_of(digest, key, rows[0], now) if key.environment == environment else None


def touch_session(session: Session, now: Milliseconds) -> Unit[None]:
    """Note that somebody has just used a session."""
    yield Statement(
        "UPDATE console_sessions SET used_at = ?1 WHERE digest = ?2",
        (now, session.digest),
        name="update_session_use",
        affects_pages=False,
    )


def keep_notice(session: Session, notice: str) -> Unit[None]:
    """Keep what a change told the person, until the next change."""
    yield Statement(
        "UPDATE console_sessions SET notice = ?1 WHERE digest = ?2",
        (notice, session.digest),
        name="update_session_notice",
        affects_pages=False,
    )


def rebind_session(session: Session, token: bytes) -> Unit[None]:
    """Let a session end with another token of its key, unless it began with a link."""
    yield Statement(
        "UPDATE console_sessions SET token_digest = ?1"
        " WHERE digest = ?2 AND token_digest IS NOT NULL",
        (token_digest(token), session.digest),
        name="update_session_token",
        affects_pages=False,
    )


def end_session(secret: str) -> Unit[None]:
    """End the session with this secret, if there is one."""
    yield Statement(
        "DELETE FROM console_sessions WHERE digest = ?1",
        (_digest(secret),),
        name="delete_session",
        affects_pages=False,
    )


def end_sessions(key_id: int) -> Unit[None]:
    """End every session of a key, and every link that could begin one."""
    yield Statement(
        "DELETE FROM console_sessions WHERE key_id = ?1",
        (key_id,),
        name="delete_sessions",
        affects_pages=False,
    )
    yield Statement(
        "DELETE FROM console_links WHERE key_id = ?1",
        (key_id,),
        name="delete_links",
        affects_pages=False,
    )


def create_link(key_id: int, now: Milliseconds) -> Unit[str]:
    """Create a link that signs a person in with a key once, and return its secret.

    Raises:
        NotFound: there is no key with this id.
        KeyEnded: the key is expired or revoked.
    """
    key = found((yield select_key(key_id)), key_id, None).key
    state = key.state(now)
    if state != "active":
        msg = f"key {key_id} is {state}; only an active key can sign somebody in"
        raise KeyEnded(msg)
    secret = secrets.token_urlsafe(32)
    yield Statement(
        "INSERT INTO console_links (digest, key_id, expires_at) VALUES (?1, ?2, ?3)",
        (_digest(secret), key_id, now + LINK_LIFE),
        name="insert_link",
        affects_pages=False,
    )
    return secret


def use_link(
    secret: str, environment: Environment, now: Milliseconds, replaced: str = ""
) -> Unit[str | None]:
    """Begin a session with a link, and return its secret; ``None`` if the link has no use left.

    The session with the secret ``replaced`` ends.
    """
    links = yield Statement(
        "DELETE FROM console_links WHERE digest = ?1 RETURNING key_id, expires_at",
        (_digest(secret),),
        name="delete_link",
        affects_pages=False,
    )
    for key_id, expires_at in links:
        key = found((yield select_key(key_id)), key_id, None).key
        if now < expires_at and key.state(now) == "active" and key.environment == environment:
            return (yield from open_session(key_id, None, now, replaced))
    return None


def prune_sessions(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the sessions not used since a moment; return how many."""
    return prune_by_age("console_sessions", "digest", "used_at", before)


def prune_links(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the links that ended before a moment; return how many."""
    return prune_by_age("console_links", "digest", "expires_at", before)


def _session_of(digest: bytes, key: ApiKey, row: Row, now: Milliseconds) -> Session | SessionEnd:
    created_at, used_at, notice, token, still_there, token_ends_at = row[len(COLUMNS) :]
    state = key.state(now)
    if state != "active":
        return state
    if token != still_there or (token_ends_at is not None and now >= token_ends_at):
        return "replaced"
    if token_ends_at is not None and token_ends_at < key.end:
        # Keys created in this session must not outlive its token either.
        key = replace(key, expires_at=token_ends_at)
    session = Session(digest, key, created_at, used_at, notice)
    if now < session.ends_at:
        return session
    return "longest" if now >= created_at + LONGEST else "unused"


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
