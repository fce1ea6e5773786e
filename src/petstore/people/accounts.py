"""The accounts of people: signing in with a password, setting and changing it, and the name."""

import secrets
from typing import NamedTuple

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.domain.names import name_key
from petstore.errors import InvalidBody, MissingKey
from petstore.events.model import Author
from petstore.keys.model import Caller, Environment, KeyName
from petstore.keys.model import digest as token_digest
from petstore.keys.status import PERSON, caller_of
from petstore.keys.store import count_up_revision
from petstore.people.store import read_person, record_person
from petstore.sessions.store import (
    Browser,
    Session,
    begin_session,
    find_link,
    find_session_caller,
    rebind_session,
    take_link,
)

MAX_LOGIN = 64
"""The maximum length of a login, in characters."""

_TOKEN_LENGTH = 32
# One statement finds the password and the token that ends with it: they belong together.
_SELECT = (
    f"SELECT {', '.join(PERSON.values())}, p.login, p.password, t.digest FROM people p"  # noqa: S608 - only names
    " LEFT JOIN api_key_tokens t ON t.key_id = p.id AND t.expires_at IS NULL"
)
_OF_ID = f"{_SELECT} WHERE p.id = ?1"
_OF_LOGIN = f"{_SELECT} WHERE p.login_key = ?1"


class Account(NamedTuple):
    """A person, and the hash of the password, ``None`` while there is none.

    Sessions of the person end with a token, which has this ``generation`` as its digest. Nobody has
    the token, and there is another one with each password.
    """

    caller: Caller
    login: str
    password: str | None
    generation: bytes


async def find_account(store: Reader, login: str, environment: Environment) -> Account | None:
    """Return the account with a login, in any case; ``None`` if there is none."""
    # What PostgreSQL cannot store, and what is too long, is no login. It is looked for anyway, so
    # that it costs as much.
    key, is_login = name_key(login[:MAX_LOGIN].replace("\0", "")), len(login) <= MAX_LOGIN
    is_login = is_login and "\0" not in login
    rows = await store.read(Statement(_OF_LOGIN, (key,), name="select_account_by_login"))
    account = _account_of(rows[0]) if rows and is_login else None
    return account if account and account.caller.environment == environment else None


async def read_account(store: Reader, person_id: int) -> Account:
    (row,) = await store.read(_select(person_id))
    return _account_of(row)


async def has_people(store: Reader, environment: Environment) -> bool:
    """Return whether anybody can sign in with a login."""
    sql = "SELECT 1 FROM people WHERE environment = ?1 AND disabled_at IS NULL LIMIT 1"
    return bool(await store.read(Statement(sql, (environment,), name="select_any_person")))


def sign_in(
    account: Account, now: Milliseconds, browser: Browser, rehashed: str | None = None
) -> Unit[str | None]:
    """Begin a session of an account whose password was verified, and return its secret.

    The result is ``None`` if the person has another password by now, or is disabled. The password
    may have been ``rehashed`` with newer parameters.
    """
    (row,) = yield _select(account.caller.id)
    now_there = _account_of(row)
    if now_there.password != account.password or now_there.caller.state(now) != "active":
        return None
    if rehashed is not None:
        yield Statement(
            "UPDATE people SET password = ?1 WHERE id = ?2 AND password = ?3",
            (rehashed, account.caller.id, account.password),
            name="update_password_hash",
        )
    return (yield from begin_session(account.caller.id, now_there.generation, None, now, browser))


async def find_invitation(
    store: Reader, secret: str, environment: Environment, now: Milliseconds
) -> Account | None:
    """Return the account of the person whom a link invites; ``None`` if it has no use left."""
    link = await find_link(store, secret, "invitation", environment, now)
    return None if link is None else await read_account(store, link.caller.id)


def accept_invitation(
    secret: str,
    hashed: str,
    environment: Environment,
    now: Milliseconds,
    browser: Browser,
    request_id: str | None = None,
) -> Unit[str | None]:
    """Set the password of the person whom a link invites, and sign in; return the session's secret.

    Every session of the person ends, and every other link. The result is ``None`` if the link has
    no use left.
    """
    yield count_up_revision()
    link = yield from take_link(secret, "invitation", environment, now)
    if link is None:
        return None
    token = yield from _set_password(link.caller, hashed, now, request_id)
    return (yield from begin_session(link.caller.id, token_digest(token), None, now, browser))


def change_password(
    session: Session,
    before: str | None,
    hashed: str,
    now: Milliseconds,
    request_id: str | None = None,
) -> Unit[None]:
    """Give the person of a session another password than the one ``before``, which was verified.

    Every other session ends, and every link.
    """
    yield count_up_revision()
    caller = yield from _find_caller_again(session, now)
    (row,) = yield _select(caller.id)
    if _account_of(row).password != before:
        msg = "current: your password was changed just now"
        raise InvalidBody(msg)
    token = yield from _set_password(caller, hashed, now, request_id)
    yield from rebind_session(session, token)


def rename(
    session: Session, name: KeyName, now: Milliseconds, request_id: str | None = None
) -> Unit[None]:
    """Give the person of a session another name."""
    if session.caller.name == name:  # else anybody could wake all long polls for nothing
        return
    yield count_up_revision()
    caller = yield from _find_caller_again(session, now)
    before = yield from read_person(caller.id, caller.environment)
    yield Statement(
        "UPDATE people SET name = ?1 WHERE id = ?2", (name, caller.id), name="update_own_name"
    )
    after, by = before.changed({"name": name}, now), Author(caller.actor, request_id)
    yield record_person("person.updated", after, before, by, now)


def _set_password(
    caller: Caller, hashed: str, now: Milliseconds, request_id: str | None
) -> Unit[bytes]:
    """Set a password, end what the one before has begun, and return the token of the new one.

    The revision of the callers is locked, so no other unit does so meanwhile.
    """
    before = yield from read_person(caller.id, caller.environment)
    yield Statement(
        "UPDATE people SET password = ?1 WHERE id = ?2", (hashed, caller.id), name="update_password"
    )
    yield Statement(
        "UPDATE api_key_tokens SET expires_at = ?1"
        " WHERE key_id = ?2 AND (expires_at IS NULL OR expires_at > ?1)",
        (now, caller.id),
        name="end_tokens",
    )
    token = secrets.token_bytes(_TOKEN_LENGTH)
    yield Statement(
        "INSERT INTO api_key_tokens (digest, key_id) VALUES (?1, ?2)",
        (token_digest(token), caller.id),
        name="insert_token",
    )
    yield Statement(
        "DELETE FROM console_links WHERE key_id = ?1", (caller.id,), name="delete_own_links"
    )
    after, by = before._replace(has_password=True), Author(caller.actor, request_id)
    yield record_person("person.updated", after, before, by, now)
    return token


def _find_caller_again(session: Session, now: Milliseconds) -> Unit[Caller]:
    caller = yield from find_session_caller(session.digest, now)
    if caller is None:
        raise _ended()
    return caller


def _ended() -> MissingKey:
    return MissingKey("the session has ended meanwhile")


def _select(person_id: int) -> Statement:
    return Statement(_OF_ID, (person_id,), name="select_account")


def _account_of(row: Row) -> Account:
    return Account(caller_of(row, PERSON), *row[len(PERSON) :])
