"""Sessions at the console, and invitations that set a password.

Both end with the credential that made them: the token of a key, or the password of a person.
"""

import secrets
from hashlib import sha256

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Row, Statement, T, Unit
from petstore.databases.retention import are_first
from petstore.events.store import Change
from petstore.keys.cache import find_key
from petstore.keys.model import Caller, Environment
from petstore.keys.store import count_up_revision
from petstore.people.accounts import any_person, find_account
from petstore.people.model import FIRST, INVITATION_LIFE, Account, first_account
from petstore.sessions.model import Browser, Device, Session, expiry

MAX_SESSIONS = 100
"""The maximum number of sessions of a caller: a new one ends those that were not used for longest.

A script that signs in again and again must not fill the database.
"""

_SECRET_LENGTH = 32  # bytes
_DEVICE = "digest, device, created_at, used_at, expires_at, stays"


def begin_session(
    caller: Caller, credential: bytes, now: Milliseconds, browser: Browser
) -> Unit[str]:
    """Begin a session, and return its secret, the value of the cookie."""
    yield note_use(caller.id, now)
    yield from end_session(browser.replaced)
    last_used = "caller_id = ?1 ORDER BY used_at DESC LIMIT ?2 OFFSET ?3"
    yield Statement(
        f"DELETE FROM console_sessions WHERE {are_first('console_sessions', last_used)}",  # noqa: S608 - only names
        (caller.id, MAX_SESSIONS, MAX_SESSIONS - 1),
        name="delete_sessions_beyond",
    )
    secret, ends_at = _new_secret(), expiry(now, now, stays=browser.stays)
    yield Statement(
        "INSERT INTO console_sessions (digest, kind, caller_id, credential, device, created_at,"
        " used_at, expires_at, stays) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8)",
        (
            *(_digest(secret), caller.kind, caller.id, credential, browser.device),
            *(now, ends_at, int(browser.stays)),
        ),
        name="insert_session",
    )
    return secret


def note_use(caller_id: int, now: Milliseconds) -> Statement:
    """Return the UPDATE of the last use of the console. It locks the caller before its sessions."""
    return Statement(
        "UPDATE callers SET seen_at = ?1 WHERE id = ?2", (now, caller_id), name="update_caller_use"
    )


async def find_session(
    store: Reader, secret: str, environment: Environment, now: Milliseconds
) -> Session | None:
    """Return the session with this secret, if there is one and its credential is still valid."""
    session = await read_unit(store, find_session_in_unit(_digest(secret), now))
    return session if session and session.caller.environment == environment else None


def find_session_in_unit(digest: bytes, now: Milliseconds) -> Unit[Session | None]:
    """Return a session as it is within a unit of work."""
    rows = yield Statement(
        f"SELECT kind, caller_id, credential, {_DEVICE} FROM console_sessions"  # noqa: S608 - only names
        " WHERE digest = ?1 AND expires_at > ?2",
        (digest, now),
        name="select_session",
    )
    if not rows:
        return None
    kind, caller_id, credential = rows[0][:3]
    caller = yield from _find_holder(kind, caller_id, credential, now)
    return Session(caller, credential, _device_of(rows[0][3:])) if caller else None


def _find_holder(
    kind: str, caller_id: int, credential: bytes, now: Milliseconds
) -> Unit[Caller | None]:
    """Return the caller who has a credential, if it is still theirs and valid."""
    if kind == "key":
        caller = yield from find_key(credential)
    else:
        account = yield from find_account(caller_id)
        caller = account.caller if account and account.credential == credential else None
    return caller if caller is not None and caller.state(now) == "active" else None


async def read_unit(store: Reader, unit: Unit[T]) -> T:
    """Return the result of a unit that only reads, and needs no transaction."""
    try:
        statement = next(unit)
        while True:
            statement = unit.send(await store.read(statement))
    except StopIteration as done:
        result: T = done.value
        return result


def touch_session(session: Session, now: Milliseconds) -> Unit[None]:
    """Note that somebody has just used a session."""
    device = session.device
    yield note_use(session.caller.id, now)
    yield Statement(
        "UPDATE console_sessions SET used_at = ?1, expires_at = ?2 WHERE digest = ?3",
        (now, expiry(device.created_at, now, stays=device.stays), device.digest),
        name="update_session_use",
    )


def end_session(secret: str) -> Unit[None]:
    yield Statement(
        "DELETE FROM console_sessions WHERE digest = ?1", (_digest(secret),), name="delete_session"
    )


def list_devices(caller_id: int, now: Milliseconds) -> Unit[list[Device]]:
    """Return where a caller is signed in, the last used first."""
    rows = yield Statement(
        f"SELECT {_DEVICE} FROM console_sessions WHERE caller_id = ?1 AND expires_at > ?2"  # noqa: S608 - only names
        " ORDER BY used_at DESC",
        (caller_id, now),
        name="select_devices",
    )
    return [*map(_device_of, rows)]


def _device_of(row: Row) -> Device:
    return Device._make((*row[:-1], bool(row[-1])))


def end_sessions(caller_id: int, *, kept: bytes = b"", only: bytes = b"") -> Unit[None]:
    """End the sessions of a caller but the one ``kept``, or ``only`` one, by their digests."""
    yield count_up_revision()
    which, named = ("digest = ?2", only) if only else ("digest <> ?2", kept)
    yield Statement(
        f"DELETE FROM console_sessions WHERE caller_id = ?1 AND {which}",  # noqa: S608 - constants
        (caller_id, named),
        name="delete_sessions",
    )


def create_invitation(change: Change, person_id: int) -> Unit[str]:
    """Create a link that sets the password of a person once, and return its secret.

    It ends with the credential of its maker, and earlier ones of the person end.
    """
    yield delete_invitations(person_id)
    secret, maker = _new_secret(), change.caller
    made_with: Row = (None, None, None)
    if maker is not None and change.credential is not None:
        made_with = (maker.kind, maker.id, change.credential)
    yield Statement(
        "INSERT INTO invitations (digest, person_id, expires_at, kind, caller_id, credential)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (_digest(secret), person_id, change.now + INVITATION_LIFE, *made_with),
        name="insert_invitation",
    )
    return secret


def find_invited(secret: str, environment: Environment, now: Milliseconds) -> Unit[Account | None]:
    """Return whom a link invites, who has the id ``FIRST`` in a store without people.

    The result is ``None`` if the link has no use left.
    """
    rows = yield Statement(
        "SELECT person_id, kind, caller_id, credential FROM invitations"
        " WHERE digest = ?1 AND expires_at > ?2",
        (_digest(secret), now),
        name="select_invitation",
    )
    if not rows:
        return None
    person_id, kind, maker_id, credential = rows[0]
    if kind is not None:
        maker = yield from _find_holder(kind, maker_id, credential, now)
        if maker is None or "keys:admin" not in maker.scopes:
            return None
    if person_id == FIRST:
        has_people = yield from any_person(environment)
        return None if has_people else first_account(environment, now)
    account = yield from find_account(person_id)
    if account is None or account.caller.state(now) != "active":
        return None
    return account if account.caller.environment == environment else None


def take_invitation(secret: str) -> Unit[bool]:
    """Use a link up, and return whether nobody was faster."""
    used = yield Statement(
        "DELETE FROM invitations WHERE digest = ?1 RETURNING 1",
        (_digest(secret),),
        name="delete_invitation",
    )
    return bool(used)


def delete_invitations(person_id: int) -> Statement:
    return Statement(
        "DELETE FROM invitations WHERE person_id = ?1", (person_id,), name="delete_invitations"
    )


def _new_secret() -> str:
    return secrets.token_urlsafe(_SECRET_LENGTH)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
