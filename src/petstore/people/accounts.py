"""The accounts of people: who they are, and what they sign in with."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from petstore.clock import Milliseconds, utc_second
from petstore.databases.contract import Row, Statement, Unit
from petstore.domain.names import name_key
from petstore.keys.model import ROLES, Caller, Environment
from petstore.people.model import Person, PersonState

MAX_LOGIN = 64
"""The maximum length of a login, in characters."""

FIRST = 0
"""The id of nobody yet: the first person of a store, who has been invited."""

SELECT_ACCOUNTS = (
    "SELECT id, name, role, environment, created_at, disabled_at, login, password,"
    " (SELECT seen_at FROM callers WHERE callers.id = people.id) FROM people"
)


class Account(NamedTuple):
    """A person as stored: who calls, what they sign in with, and the last use of the console.

    ``password`` is a hash, ``None`` while there is none.
    """

    caller: Caller
    login: str = ""
    password: str | None = None
    seen_at: Milliseconds | None = None

    @property
    def credential(self) -> bytes:
        """What sessions of the person end with: the digest of the hash."""
        return sha256((self.password or "").encode("utf-8")).digest()

    @property
    def state(self) -> PersonState:
        """Whether the person may sign in, and can."""
        if self.caller.revoked_at is not None:
            return "disabled"
        return "active" if self.password else "invited"

    @property
    def administers(self) -> bool:
        return self.caller.role == "administrator" and self.state == "active"

    @property
    def shown(self) -> Person:
        """The person as administrators see it."""
        caller, seen_at = self.caller, self.seen_at
        assert caller.role is not None  # noqa: S101 - or it would be a key
        return Person(
            *(caller.id, caller.name, self.login, caller.role, self.state),
            created_at=utc_second(caller.created_at),
            last_seen_at=None if seen_at is None else utc_second(seen_at),
        )

    def changed(self, changes: Mapping[str, Any], now: Milliseconds) -> "Account":
        """Return it with other fields, by their names in ``PersonPatch``."""
        before, after = self.shown, replace(self.shown, **changes)
        caller = replace(self.caller, name=after.name, role=after.role, scopes=ROLES[after.role])
        if after.state != before.state:
            caller = replace(caller, revoked_at=now if after.state == "disabled" else None)
        return self._replace(caller=caller, login=after.login)


def first_account(environment: Environment, now: Milliseconds) -> Account:
    """Return the account that the first person of a store is to have."""
    caller = Caller(
        *("", "enterprise"), id=FIRST, environment=environment, created_at=now, role="administrator"
    )
    return Account(caller)


def find_account(person_id: int) -> Unit[Account | None]:
    sql = f"{SELECT_ACCOUNTS} WHERE id = ?1"
    rows = yield Statement(sql, (person_id,), name="select_account")
    return account_of(rows[0]) if rows else None


def find_account_by_login(
    login: str, environment: Environment | None = None
) -> Unit[Account | None]:
    """Return the account with a login, in any case; ``None`` if there is none."""
    # What PostgreSQL cannot store, and what is too long, is no login. It is looked for anyway, so
    # that it costs as much.
    key, is_login = name_key(login[:MAX_LOGIN].replace("\0", "")), len(login) <= MAX_LOGIN
    sql = f"{SELECT_ACCOUNTS} WHERE login_key = ?1"
    rows = yield Statement(sql, (key,), name="select_account_by_login")
    account = account_of(rows[0]) if rows and is_login and "\0" not in login else None
    return account if account and environment in (account.caller.environment, None) else None


def any_person(environment: Environment) -> Unit[bool]:
    """Return whether anybody was ever added."""
    sql = "SELECT 1 FROM people WHERE environment = ?1 LIMIT 1"
    return bool((yield Statement(sql, (environment,), name="select_any_person")))


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
