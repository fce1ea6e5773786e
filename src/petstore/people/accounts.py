"""The accounts of people, as stored."""

from petstore.databases.contract import Row, Statement, Unit
from petstore.domain.names import name_key
from petstore.keys.model import ROLES, Caller, Environment
from petstore.people.model import MAX_LOGIN, Account

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
