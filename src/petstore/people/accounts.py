"""The accounts of people: their logins, and the hashes of their passwords."""

from hashlib import sha256

from petstore.databases.contract import Row, Statement, Unit
from petstore.domain.names import name_key
from petstore.keys.model import Environment
from petstore.keys.status import PERSON, caller_of
from petstore.people.model import MAX_LOGIN, Account

_SELECT = f"SELECT {', '.join(PERSON.values())}, p.login, p.password FROM people p"  # noqa: S608 - only names


def find_account(person_id: int) -> Unit[Account | None]:
    rows = yield Statement(f"{_SELECT} WHERE p.id = ?1", (person_id,), name="select_account")
    return _account_of(rows)


def find_account_by_login(login: str, environment: Environment) -> Unit[Account | None]:
    """Return the account with a login, in any case; ``None`` if there is none."""
    # What PostgreSQL cannot store, and what is too long, is no login. It is looked for anyway, so
    # that it costs as much.
    key, is_login = name_key(login[:MAX_LOGIN].replace("\0", "")), len(login) <= MAX_LOGIN
    sql = f"{_SELECT} WHERE p.login_key = ?1"
    account = _account_of((yield Statement(sql, (key,), name="select_account_by_login")))
    if account is None or not is_login or "\0" in login:
        return None
    return account if account.caller.environment == environment else None


def any_person(environment: Environment) -> Unit[bool]:
    """Return whether anybody was ever added."""
    sql = "SELECT 1 FROM people WHERE environment = ?1 LIMIT 1"
    return bool((yield Statement(sql, (environment,), name="select_any_person")))


def _account_of(rows: list[Row]) -> Account | None:
    if not rows:
        return None
    login, password = rows[0][len(PERSON) :]
    return Account(caller_of(rows[0], PERSON), login, password, credential_of(password))


def credential_of(password: str | None) -> bytes:
    """Return what sessions of a person end with: the digest of the hash of the password."""
    return sha256((password or "").encode("utf-8")).digest()
