"""Sessions of people at the console, and links that begin one."""

import secrets
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.databases.retention import are_first
from petstore.errors import BeyondOwnRights, KeyEnded, NotFound
from petstore.keys.model import Caller, Environment, check_rights
from petstore.keys.model import digest as token_digest
from petstore.keys.status import CALLER, caller_of, join_caller
from petstore.keys.store import Principal, count_up_revision
from petstore.people.model import INVITATION_LIFE

IDLE: Milliseconds = 30 * MINUTE
"""A session ends once nobody has used it for so long."""

LONGEST: Milliseconds = 12 * 60 * MINUTE
"""The maximum life of a session, but for one that stays."""

STAYS: Milliseconds = 30 * DAY
"""A session that stays ends once nobody has used it for so long, and has no maximum life."""

LinkPurpose: TypeAlias = Literal["sign_in", "invitation"]
"""What a link does: it begins a session, or lets a person set a password."""

LINK_LIFE: Milliseconds = 10 * MINUTE
"""How long a link works that signs somebody in."""

MAX_SESSIONS = 1000
"""The maximum number of sessions of one key: a new one ends those that were not used for longest.

A script that signs in again and again must not fill the database.
"""

SessionEnd: TypeAlias = Literal[
    "revoked", "expired", "replaced", "disabled", "password", "device", "unused", "away", "longest"
]
"""Why a session has ended: with its key or a token of it, with its person or a password, because
somebody ended it on this device, or because of its last use or its age. One that stays was
``away``."""

_LIVES: dict[LinkPurpose, Milliseconds] = {"sign_in": LINK_LIFE, "invitation": INVITATION_LIFE}
# No token has this digest. The row stays, so that the browser is told why its session ended.
_ENDED = b""
_TOUCH: Milliseconds = 60 * SECOND
_SECRET_LENGTH = _SEAL_LENGTH = 32  # bytes
_SELECT_SEAL = Statement("SELECT secret FROM console_seal", name="select_seal")


_CALLER = ", ".join(CALLER.values())


def _select(table: str, values: str) -> str:
    """Return the SELECT of a session or a link with its key and the token that ends it."""
    return (
        f"SELECT {_CALLER}, t.digest, t.expires_at, s.granted_by, {values}"  # noqa: S608 - only names
        f" FROM {table} s {join_caller('s.key_id')}"
        " LEFT JOIN api_key_tokens t ON t.digest = s.token_digest WHERE s.digest = ?1"
    )


_SELECT_SESSION = _select(
    "console_sessions", "s.created_at, s.used_at, s.token_digest, s.device, s.stays"
)
_SELECT_LINK = _select("console_links", "s.expires_at, s.token_digest") + " AND s.purpose = ?2"
_TOKEN = slice(len(CALLER), len(CALLER) + 2)
_GRANTED_BY = len(CALLER) + 2
_VALUES = slice(len(CALLER) + 3, None)
_BY_KEY = "key_id = ?1 OR granted_by IN (SELECT digest FROM api_key_tokens WHERE key_id = ?1)"
_LAST_USED = "key_id = ?1 ORDER BY used_at DESC LIMIT ?2 OFFSET ?3"
_SELECT_DEVICES = (
    "SELECT s.digest, s.device, s.created_at, s.used_at, s.stays FROM console_sessions s"
    " JOIN api_key_tokens t ON t.digest = s.token_digest"
    " LEFT JOIN api_key_tokens g ON g.digest = s.granted_by"
    " WHERE s.key_id = ?1"
    " AND (stays = 0 AND used_at > ?4 AND created_at > ?5 OR stays = 1 AND used_at > ?6)"
    " AND (t.expires_at IS NULL OR t.expires_at > ?2)"
    " AND (s.granted_by IS NULL"
    " OR g.digest IS NOT NULL AND (g.expires_at IS NULL OR g.expires_at > ?2))"
    " ORDER BY s.used_at DESC LIMIT ?3"
)


class Browser(NamedTuple):
    """The browser that a session begins in.

    ``device`` is what it is, in a few words. The session with the secret ``replaced`` ends. The new
    one ``stays`` if the person wants to stay signed in there.
    """

    device: str = ""
    stays: bool = False
    replaced: str = ""


_ANY_BROWSER = Browser()


def _device_id(digest: bytes) -> int:
    return int.from_bytes(digest[:7]) >> 3


class Device(NamedTuple):
    """A session as the person sees it who may end it, by its ``digest``."""

    digest: bytes
    device: str
    created_at: Milliseconds
    used_at: Milliseconds
    stays: bool

    @property
    def id(self) -> int:
        """A number that stands for it, which JavaScript takes, too."""
        return _device_id(self.digest)


class Session(NamedTuple):
    """A session of a ``caller``; ``digest`` is that of its cookie.

    It ends with the ``token`` of its key; a person has another one with each password. If a session
    of another key granted it by a link, it also ends with the token of that session
    (``granted_by``). Both are digests.
    """

    digest: bytes
    caller: Caller
    created_at: Milliseconds
    used_at: Milliseconds
    token: bytes
    granted_by: bytes | None
    device: str = ""
    stays: bool = False

    @property
    def ends_at(self) -> Milliseconds:
        """When it ends if nobody uses it again."""
        if self.stays:
            return self.used_at + STAYS
        return min(self.created_at + LONGEST, self.used_at + IDLE)

    @property
    def device_id(self) -> int:
        """The ``id`` of the ``Device`` that it is shown as."""
        return _device_id(self.digest)

    def needs_touch(self, now: Milliseconds) -> bool:
        """Return whether its last use is so long ago that a new one is worth a write."""
        return now - self.used_at >= _TOUCH


def open_session(
    key_id: int, token: bytes, now: Milliseconds, browser: Browser = _ANY_BROWSER
) -> Unit[str]:
    """Begin a session with a token of a key, and return its secret, the value of the cookie."""
    return (yield from begin_session(key_id, token_digest(token), None, now, browser))


def begin_session(
    caller_id: int,
    token: bytes,
    granted_by: bytes | None,
    now: Milliseconds,
    browser: Browser = _ANY_BROWSER,
) -> Unit[str]:
    """Begin a session that ends with a token, of which this is the digest; return its secret.

    ``granted_by`` is as in ``Session``.
    """
    yield note_use(caller_id, now)
    yield from end_session(_digest(browser.replaced))
    which = are_first("console_sessions", _LAST_USED)
    yield Statement(
        f"DELETE FROM console_sessions WHERE {which}",  # noqa: S608 - only names
        (caller_id, MAX_SESSIONS, MAX_SESSIONS - 1),
        name="delete_sessions_beyond",
    )
    secret = secrets.token_urlsafe(_SECRET_LENGTH)
    yield Statement(
        "INSERT INTO console_sessions"
        " (digest, key_id, token_digest, granted_by, created_at, used_at, device, stays)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)",
        (
            *(_digest(secret), caller_id, token, granted_by, now),
            *(browser.device, int(browser.stays)),
        ),
        name="insert_session",
    )
    return secret


def note_use(caller_id: int, now: Milliseconds) -> Statement:
    """Return the UPDATE of the last use of the console. It locks the caller before its sessions."""
    return Statement(
        "UPDATE callers SET seen_at = ?1 WHERE id = ?2", (now, caller_id), name="update_caller_use"
    )


def seal() -> Unit[bytes]:
    """Return what marks the cookies of known browsers as issued by this store."""
    rows = yield _SELECT_SEAL
    if not rows:
        yield Statement(
            "INSERT INTO console_seal (one, secret) VALUES (1, ?1) ON CONFLICT DO NOTHING",
            (secrets.token_bytes(_SEAL_LENGTH),),
            name="insert_seal",
        )
        rows = yield _SELECT_SEAL
    ((found,),) = rows
    return bytes(found)


async def find_session(
    store: Reader, secret: str, environment: Environment, now: Milliseconds
) -> Session | SessionEnd | None:
    """Return the session with this secret, or why it has ended; ``None`` if there is none."""
    digest = _digest(secret)
    rows = await store.read(Statement(_SELECT_SESSION, (digest,), name="select_session"))
    if not rows:
        return None
    row, grants = rows[0], []
    if row[_GRANTED_BY] is not None:
        grants = await store.read(_select_grant(row[_GRANTED_BY]))
    key = caller_of(row, CALLER)
    return _session_of(digest, key, row, grants, now) if key.environment == environment else None


def find_session_caller(digest: bytes, now: Milliseconds) -> Unit[Caller | None]:
    """Return the key of a session, as it is within a unit of work; ``None`` if it has ended."""
    rows = yield Statement(_SELECT_SESSION, (digest,), name="select_session")
    if not rows:
        return None
    grants = yield from _grants_of(rows[0])
    session = _session_of(digest, caller_of(rows[0], CALLER), rows[0], grants, now)
    return session.caller if isinstance(session, Session) else None


def find_own_token(digest: bytes) -> Unit[bytes | None]:
    """Return the token that a session ends with; ``None`` if a link of another key granted it."""
    rows = yield Statement(
        "SELECT token_digest FROM console_sessions WHERE digest = ?1 AND granted_by IS NULL",
        (digest,),
        name="select_session_token",
    )
    return rows[0][0] if rows else None


def touch_session(session: Session, now: Milliseconds) -> Unit[None]:
    """Note that somebody has just used a session."""
    yield note_use(session.caller.id, now)
    yield Statement(
        "UPDATE console_sessions SET used_at = ?1 WHERE digest = ?2",
        (now, session.digest),
        name="update_session_use",
    )


def rebind_session(session: Session, token: bytes) -> Unit[None]:
    """Let a session end with another token of its key, unless somebody has just ended it."""
    yield Statement(
        "UPDATE console_sessions SET token_digest = ?1 WHERE digest = ?2 AND token_digest = ?3",
        (token_digest(token), session.digest, session.token),
        name="update_session_token",
    )


def end_session(digest: bytes) -> Unit[None]:
    """End the session whose cookie has this digest, if there is one."""
    yield Statement(
        "DELETE FROM console_sessions WHERE digest = ?1", (digest,), name="delete_session"
    )


async def list_devices(store: Reader, caller_id: int, now: Milliseconds) -> list[Device]:
    """Return where a caller is signed in now, the last used first."""
    return [*map(_device_of, await store.read(_select_devices(caller_id, now)))]


def find_device(caller_id: int, wanted: int, now: Milliseconds) -> Unit[Device | None]:
    """Return where a caller is signed in, by the id of the device; ``None`` if they are not."""
    rows = yield _select_devices(caller_id, now)
    return next((each for each in map(_device_of, rows) if each.id == wanted), None)


def _select_devices(caller_id: int, now: Milliseconds) -> Statement:
    parameters = (caller_id, now, MAX_SESSIONS, now - IDLE, now - LONGEST, now - STAYS)
    return Statement(_SELECT_DEVICES, parameters, name="select_devices")


def _device_of(row: Row) -> Device:
    digest, device, created_at, used_at, stays = row
    return Device(digest, device, created_at, used_at, bool(stays))


def end_device(caller_id: int, digest: bytes) -> Unit[bool]:
    """End a session of a caller, and return whether there was one."""
    yield count_up_revision()
    ended = yield Statement(
        "UPDATE console_sessions SET token_digest = ?3"
        " WHERE digest = ?1 AND key_id = ?2 AND token_digest <> ?3 RETURNING 1",
        (digest, caller_id, _ENDED),
        name="end_device",
    )
    return bool(ended)


def end_sessions(key_id: int, kept: bytes = b"") -> Unit[None]:
    """End every session of a caller, what these granted, and every link that could begin one.

    The session whose digest is ``kept`` goes on.
    """
    yield count_up_revision()
    yield Statement(
        f"DELETE FROM console_sessions WHERE ({_BY_KEY}) AND digest <> ?2",  # noqa: S608 - only names
        (key_id, kept),
        name="delete_sessions",
    )
    yield from delete_links(key_id)


def delete_links(key_id: int) -> Unit[None]:
    """End every link that could begin a session of a caller, or one that the caller grants."""
    yield Statement(
        f"DELETE FROM console_links WHERE {_BY_KEY}",  # noqa: S608 - only names
        (key_id,),
        name="delete_links",
    )


def create_link(
    caller_id: int,
    now: Milliseconds,
    maker: Session | Principal | None = None,
    purpose: LinkPurpose = "sign_in",
) -> Unit[str]:
    """Create a link that works once for a key or a person, and return its secret.

    The ``maker`` passes on when it ends: a link must not outlive the
    token that made it. Any link ends with the token that is now the newest of its key, if not with
    an older one. A new invitation ends the earlier ones of the same person.
    """
    rows = yield Statement(
        f"SELECT {_CALLER} FROM callers c {join_caller('c.id')} WHERE c.id = ?1",  # noqa: S608 - only names
        (caller_id,),
        name="select_caller",
    )
    if not rows:
        msg = f"there is no key {caller_id}"
        raise NotFound(msg)
    caller = caller_of(rows[0], CALLER)
    state = caller.state(now)
    if state != "active":
        msg = f"{caller.label} is {state}; only an active {caller.kind} can sign somebody in"
        raise KeyEnded(msg)
    secret = secrets.token_urlsafe(_SECRET_LENGTH)
    if isinstance(maker, Session) and (yield from find_session_caller(maker.digest, now)) is None:
        msg = "your session has ended"
        raise KeyEnded(msg)
    token, granted_by = (None, None) if maker is None else _ends_of(maker, caller_id)
    if purpose == "invitation":
        yield Statement(
            "DELETE FROM console_links WHERE key_id = ?1 AND purpose = 'invitation'",
            (caller_id,),
            name="delete_invitations",
        )
    yield Statement(
        "INSERT INTO console_links (digest, key_id, expires_at, token_digest, granted_by, purpose)"
        " VALUES (?1, ?2, ?3, coalesce(?4, (SELECT digest FROM api_key_tokens"
        " WHERE key_id = ?2 AND expires_at IS NULL)), ?5, ?6)",
        (_digest(secret), caller_id, now + _LIVES[purpose], token, granted_by, purpose),
        name="insert_link",
    )
    return secret


def _ends_of(maker: Session | Principal, caller_id: int) -> tuple[bytes | None, bytes | None]:
    """Return the digests of the tokens that a link ends with: of its caller, and of its maker."""
    is_own = maker.caller is not None and maker.caller.id == caller_id
    if is_own:
        return maker.token, maker.granted_by
    if maker.granted_by is not None:
        msg = "you signed in by a link of another key: sign in with your key to make such links"
        raise BeyondOwnRights(msg)
    return None, maker.token


def use_link(
    secret: str, environment: Environment, now: Milliseconds, browser: Browser = _ANY_BROWSER
) -> Unit[str | None]:
    """Begin a session with a link, and return its secret; ``None`` if the link has no use left."""
    link = yield from take_link(secret, "sign_in", environment, now)
    if link is None:
        return None
    return (yield from begin_session(link.caller.id, link.token, link.granted_by, now, browser))


class Link(NamedTuple):
    """A link that can be used: whom it is for, and what ends it, as in ``Session``."""

    caller: Caller
    token: bytes
    granted_by: bytes | None


async def find_link(
    store: Reader, secret: str, purpose: LinkPurpose, environment: Environment, now: Milliseconds
) -> Link | None:
    """Return the link with this secret; ``None`` if it is for something else, or has ended."""
    rows = await store.read(_select_link(secret, purpose))
    if not rows:
        return None
    granted_by = rows[0][_GRANTED_BY]
    grants = [] if granted_by is None else await store.read(_select_grant(granted_by))
    return _link_of(rows[0], grants, environment, now)


def take_link(
    secret: str, purpose: LinkPurpose, environment: Environment, now: Milliseconds
) -> Unit[Link | None]:
    """Use a link up, and return it; ``None`` if it had no use left.

    It locks the caller before the link, as every unit that changes both.
    """
    rows = yield _select_link(secret, purpose)
    if not rows:
        return None
    yield Statement(
        "SELECT id FROM callers WHERE id = ?1 /*pg FOR NO KEY UPDATE */",
        (rows[0][0],),
        name="lock_caller",
    )
    used = yield Statement(
        "DELETE FROM console_links WHERE digest = ?1 RETURNING 1",
        (_digest(secret),),
        name="delete_link",
    )
    if not used:  # somebody else was faster
        return None
    return _link_of(rows[0], (yield from _grants_of(rows[0])), environment, now)


def _select_link(secret: str, purpose: LinkPurpose) -> Statement:
    return Statement(_SELECT_LINK, (_digest(secret), purpose), name="select_link")


def _link_of(
    row: Row, grants: list[Row], environment: Environment, now: Milliseconds
) -> Link | None:
    key, (ends_at, token) = _until_replaced(caller_of(row, CALLER), row, grants, now), row[_VALUES]
    if not isinstance(key, Caller) or key.environment != environment or now >= ends_at:
        return None
    return Link(key, token, row[_GRANTED_BY])


def _select_grant(token: bytes) -> Statement:
    """Return the SELECT of when a token ends, and of its key; it finds none that was revoked."""
    return Statement(
        f"SELECT {_CALLER}, t.expires_at"  # noqa: S608 - only names
        f" FROM api_key_tokens t {join_caller('t.key_id')}"
        " WHERE t.digest = ?1 AND coalesce(k.revoked_at, p.disabled_at) IS NULL",
        (token,),
        name="select_grant",
    )


def _grants_of(row: Row) -> Unit[list[Row]]:
    """Return the row of what granted a session or a link; none if nothing did, or it has ended."""
    granted_by = row[_GRANTED_BY]
    return [] if granted_by is None else (yield _select_grant(granted_by))


def _session_of(
    digest: bytes, key: Caller, row: Row, grants: list[Row], now: Milliseconds
) -> Session | SessionEnd:
    created_at, used_at, token, device, stays = row[_VALUES]
    if token == _ENDED:
        return "device"
    until = _until_replaced(key, row, grants, now)
    if not isinstance(until, Caller):
        return until
    session = Session(
        *(digest, until, created_at, used_at, token, row[_GRANTED_BY]), device, bool(stays)
    )
    if now < session.ends_at:
        return session
    if session.stays:
        return "away"
    return "longest" if now >= created_at + LONGEST else "unused"


def _until_replaced(
    key: Caller, row: Row, grants: list[Row], now: Milliseconds
) -> Caller | SessionEnd:
    """Return a key that ends with the tokens of its session or link, or why these have ended."""
    is_person, state = key.role is not None, key.state(now)
    if state != "active":
        return "disabled" if is_person else state
    replaced: SessionEnd = "password" if is_person else "replaced"
    token, token_ends_at = row[_TOKEN]
    if token is None:
        return replaced
    ends = [token_ends_at]
    if row[_GRANTED_BY] is not None:
        giver = caller_of(grants[0], CALLER) if grants else None
        if giver is None or not _has_rights_of(giver, key):
            return replaced
        ends += [giver.expires_at, grants[0][-1]]
    end = min((at for at in ends if at is not None), default=key.end)
    if now >= end:
        return replaced
    # Keys created in the session must not outlive its tokens either.
    return replace(key, expires_at=end) if end < key.end else key


def _has_rights_of(giver: Caller, key: Caller) -> bool:
    """Return whether the giver of a link could make it now; when it ends is another question."""
    try:
        check_rights(giver, replace(key, expires_at=giver.expires_at))
    except BeyondOwnRights:
        return False
    return True


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
