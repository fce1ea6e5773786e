"""People, their accounts, the sessions of callers at the console, and invitations."""

import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict

from petstore.clock import Milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Unit, read_unit
from petstore.databases.pages import Page, read_page
from petstore.databases.schema import are_first
from petstore.domain.names import name_key
from petstore.errors import BeyondOwnRights, LastAdministrator, LoginTaken, NotFound, PersonDisabled
from petstore.events.model import AdminEventType, admin_event
from petstore.events.store import Change
from petstore.keys.model import ROLES, Caller, Environment
from petstore.keys.store import begin_change, count_up_revision, find_key, new_caller
from petstore.people.model import (
    INVITATION_LIFE,
    MAX_LOGIN,
    Account,
    Browser,
    Device,
    Invitation,
    Person,
    PersonCreate,
    PersonWithInvitation,
    Session,
    check_role,
    expiry,
)

MAX_SESSIONS = 100
"""The maximum number of sessions of a caller; a new one ends the one used the longest ago."""

_DEVICE = "digest, device, created_at, used_at, expires_at, stays"

SELECT_ACCOUNTS = (
    "SELECT id, name, role, environment, created_at, disabled_at, login, password,"
    " (SELECT seen_at FROM callers WHERE callers.id = people.id) FROM people"
)


def find_account(person_id: int) -> Unit[Account | None]:
    sql = f"{SELECT_ACCOUNTS} WHERE id = ?1"
    rows = yield Statement(sql, (person_id,), name="select_account")
    return account_of(rows[0]) if rows else None


def find_account_by_login(
    login: str, environment: Environment | None = None
) -> Unit[Account | None]:
    # What PostgreSQL cannot store, and what is too long, is no login. It is looked for anyway, so
    # that it costs as much.
    key, is_login = name_key(login[:MAX_LOGIN].replace("\0", "")), len(login) <= MAX_LOGIN
    sql = f"{SELECT_ACCOUNTS} WHERE login_key = ?1"
    rows = yield Statement(sql, (key,), name="select_account_by_login")
    account = account_of(rows[0]) if rows and is_login and "\0" not in login else None
    return account if account and environment in (account.caller.environment, None) else None


def account_of(row: Row) -> Account:
    person_id, name, role, environment, created_at, disabled_at, *rest = row
    caller = Caller(
        *(name, "enterprise"),
        scopes=ROLES[role],
        id=person_id,
        environment=environment,
        created_at=created_at,
        revoked_at=disabled_at,
        role=role,
    )
    return Account(caller, *rest)


class Added(NamedTuple):
    person: Person
    secret: str

    def shown(self, root: str, now: Milliseconds) -> PersonWithInvitation:
        url = f"{root}/console/invitation/{self.secret}"
        invitation = Invitation(url, utc_second(now + INVITATION_LIFE))
        return PersonWithInvitation(**asdict(self.person), invitation=invitation)


async def find_person(store: Reader, person_id: int, environment: Environment | None) -> Person:
    return (await read_unit(store, read_person(person_id, environment))).shown


async def list_people(
    store: Reader, environment: Environment | None, after: int | None, limit: int
) -> Page[Person]:
    return await read_page(
        *(store, "select_people", SELECT_ACCOUNTS, {"environment": environment or UNSET}),
        *(after, limit, lambda row: account_of(row).shown),
    )


def add_person(new: PersonCreate, change: Change, environment: Environment) -> Unit[Added]:
    change = yield from begin_change(change)
    yield from _require_free_login(new.login)
    ((person_id,),) = yield new_caller("person")
    yield Statement(
        "INSERT INTO people (id, name, login, login_key, role, environment, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (person_id, new.name, new.login, name_key(new.login), new.role, environment, change.now),
        name="insert_person",
    )
    person = yield from read_person(person_id, change.environment)
    yield record_person("person.created", person, None, change)
    return (yield from _invite(person, change))


def invite_person(person_id: int, change: Change) -> Unit[Added]:
    change = yield from begin_change(change)
    person = yield from read_person(person_id, change.environment)
    change.check(person.shown)
    if person.state == "disabled":
        raise PersonDisabled(f"person {person_id} is disabled; enable the account first")
    return (yield from _invite(person, change))


def change_person(person_id: int, changes: Mapping[str, Any], change: Change) -> Unit[Person]:
    """Disabling signs the person out and ends their links, and the links that they made."""
    change = yield from begin_change(change)
    before = yield from read_person(person_id, change.environment)
    change.check(before.shown)
    after = before.changed(changes, change.now)
    if after == before:
        return before.shown
    is_enabled = before.state == "disabled" and after.state != "disabled"
    gets_more = is_enabled or not after.caller.scopes <= before.caller.scopes
    if change.caller is not None and (gets_more or after.login != before.login):
        check_role(change.caller, after.caller)
    if before.administers and not after.administers:
        yield from _require_other_administrator(before.caller)
    if name_key(after.login) != name_key(before.login):
        yield from _require_free_login(after.login)
    caller = after.caller
    yield Statement(
        "UPDATE people SET name = ?2, role = ?3, disabled_at = ?4, login = ?5, login_key = ?6"
        " WHERE id = ?1",
        (
            *(person_id, caller.name, caller.role, caller.revoked_at),
            *(after.login, name_key(after.login)),
        ),
        name="update_person",
    )
    if after.state == "disabled" and before.state != "disabled":
        yield delete_invitations(person_id)
        yield from end_sessions(person_id)
    yield record_person("person.updated", after, before, change)
    return after.shown


def read_person(person_id: int, environment: Environment | None) -> Unit[Account]:
    person = yield from find_account(person_id)
    if person is None or environment not in (person.caller.environment, None):
        raise NotFound(f"there is no person {person_id}")
    return person


def record_person(
    kind: AdminEventType, person: Account, before: Account | None, change: Change
) -> Statement:
    was = None if before is None else before.shown
    return change.record(admin_event(kind, person.caller.environment, person.shown, was))


def _invite(person: Account, change: Change) -> Unit[Added]:
    if change.caller is not None:
        if change.caller.id == person.caller.id:
            raise BeyondOwnRights("this is your own account: change your password there")
        check_role(change.caller, person.caller)
    secret = yield from create_invitation(change, person.caller.id)
    yield record_person("person.invited", person, person, change)
    return Added(person.shown, secret)


def _require_free_login(login: str) -> Unit[None]:
    if (yield from find_account_by_login(login)):
        raise LoginTaken(f"login: another person already has the login {login!r}")


def _require_other_administrator(person: Caller) -> Unit[None]:
    others = yield Statement(
        "SELECT id FROM people WHERE id <> ?1 AND environment = ?2 AND role = 'administrator'"
        " AND disabled_at IS NULL AND password IS NOT NULL LIMIT 1",
        (person.id, person.environment),
        name="select_other_administrator",
    )
    if not others:
        raise LastAdministrator(
            f"person {person.id} is the last active administrator: make another active person one"
            " first"
        )


def begin_session(
    caller: Caller, credential: bytes, now: Milliseconds, browser: Browser
) -> Unit[str]:
    """Return the secret of a new session, the value of its cookie."""
    yield note_use(caller.id, now)
    yield from end_session(browser.replaced)
    last_used = "caller_id = ?1 ORDER BY used_at DESC LIMIT ?2 OFFSET ?3"
    yield Statement(
        f"DELETE FROM console_sessions WHERE {are_first('console_sessions', last_used)}",  # noqa: S608 - only names
        (caller.id, MAX_SESSIONS, MAX_SESSIONS - 1),
        name="delete_sessions_beyond",
    )
    secret, ends_at = secrets.token_urlsafe(32), expiry(now, now, stays=browser.stays)
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
    # It locks the caller before its sessions.
    return Statement(
        "UPDATE callers SET seen_at = ?1 WHERE id = ?2", (now, caller_id), name="update_caller_use"
    )


async def find_session(
    store: Reader, secret: str, environment: Environment, now: Milliseconds
) -> Session | None:
    session = await read_unit(store, find_session_in_unit(_digest(secret), now))
    return session if session and session.caller.environment == environment else None


def find_session_in_unit(digest: bytes, now: Milliseconds) -> Unit[Session | None]:
    rows = yield Statement(
        f"SELECT kind, caller_id, credential, {_DEVICE} FROM console_sessions"  # noqa: S608 - only names
        " WHERE digest = ?1 AND expires_at > ?2",
        (digest, now),
        name="select_session",
    )
    if not rows:
        return None
    kind, caller_id, credential = rows[0][:3]
    caller = yield from _find_caller(kind, caller_id, credential, now)
    return Session(caller, credential, _device_of(rows[0][3:])) if caller else None


def _find_caller(
    kind: str, caller_id: int, credential: bytes, now: Milliseconds
) -> Unit[Caller | None]:
    if kind == "key":
        caller = yield from find_key(credential)
    else:
        account = yield from find_account(caller_id)
        caller = account.caller if account and account.credential == credential else None
    return caller if caller is not None and caller.state(now) == "active" else None


def touch_session(session: Session, now: Milliseconds) -> Unit[None]:
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
    """It ends with the credential of its maker, and earlier ones of the person end."""
    yield delete_invitations(person_id)
    secret, maker = secrets.token_urlsafe(32), change.caller
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
        maker = yield from _find_caller(kind, maker_id, credential, now)
        if maker is None or "keys:admin" not in maker.scopes:
            return None
    account = yield from find_account(person_id)
    if account is None or account.caller.state(now) != "active":
        return None
    return account if account.caller.environment == environment else None


def take_invitation(secret: str) -> Unit[bool]:
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


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
