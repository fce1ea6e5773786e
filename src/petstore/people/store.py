"""List, add, change and invite people.

Each change is one unit of work, which begins and ends as a change to a key does.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.clock import Milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.databases.pages import Page, found, read_page
from petstore.domain.names import name_key
from petstore.errors import BeyondOwnRights, LastAdministrator, LoginTaken, NotFound, PersonDisabled
from petstore.events.model import AdminEventType, Author, admin_event
from petstore.events.store import record
from petstore.keys.model import ROLES, Caller, Environment, Role
from petstore.keys.status import PERSON, caller_of, new_caller
from petstore.keys.store import Principal, begin_change, unconditional
from petstore.people.model import (
    INVITATION_LIFE,
    Invitation,
    Person,
    PersonCreate,
    PersonDevice,
    PersonState,
    PersonWithInvitation,
    check_role,
)
from petstore.sessions.model import Device
from petstore.sessions.store import (
    create_invitation,
    delete_invitations,
    end_sessions,
    list_devices,
    read_unit,
)

_SELECT = (
    f"SELECT {', '.join(PERSON.values())},"  # noqa: S608 - only names
    " (SELECT seen_at FROM callers WHERE callers.id = p.id), p.login, p.password IS NOT NULL"
    " FROM people p"
)


class StoredPerson(NamedTuple):
    """A person as stored: the caller, the last use of the console, and how to sign in."""

    caller: Caller
    seen_at: Milliseconds | None
    login: str
    has_password: bool

    @property
    def state(self) -> PersonState:
        """Whether the person may sign in, and can."""
        if self.caller.revoked_at is not None:
            return "disabled"
        return "active" if self.has_password else "invited"

    @property
    def administers(self) -> bool:
        """Whether it is an administrator who is not disabled, though perhaps only invited."""
        return self.caller.role == "administrator" and self.state != "disabled"

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

    def changed(self, changes: Mapping[str, Any], now: Milliseconds) -> "StoredPerson":
        """Return it with other fields, by their names in ``PersonPatch``."""
        rest = dict(changes)
        login, state = rest.pop("login", self.login), rest.pop("state", None)
        if state == "active":
            rest["revoked_at"] = None
        elif state == "disabled" and self.state != "disabled":
            rest["revoked_at"] = now
        role: Role = rest.pop("role", self.shown.role)
        caller = replace(self.caller, **rest, role=role, scopes=ROLES[role])
        return self._replace(caller=caller, login=login)


class Added(NamedTuple):
    """A person who was added or invited, and the secret of the invitation."""

    person: Person
    secret: str

    def shown(self, root: str, now: Milliseconds) -> PersonWithInvitation:
        """Return the person with the URL of the invitation, at a service whose URL is ``root``."""
        url = f"{root}/console/invitation/{self.secret}"
        invitation = Invitation(url, utc_second(now + INVITATION_LIFE))
        return PersonWithInvitation(**asdict(self.person), invitation=invitation)


async def find_person(store: Reader, person_id: int, environment: Environment | None) -> Person:
    """Return one person, or raise ``NotFound`` (see ``_read``)."""
    return _found((await store.read(_select(person_id))), person_id, environment).shown


async def list_people(
    store: Reader, environment: Environment | None, after: int | None, limit: int
) -> Page[Person]:
    """Return the first ``limit`` people with an id above ``after``, of ``environment`` if given."""
    filters = {"environment": environment or UNSET}
    return await read_page(
        *(store, "select_people", _SELECT, filters, after, limit, lambda row: _stored(row).shown)
    )


def add_person(
    new: PersonCreate, by: Principal, environment: Environment, now: Milliseconds
) -> Unit[Added]:
    by = yield from begin_change(by, now)
    yield from _require_free_login(new.login)
    ((person_id,),) = yield new_caller("person")
    yield Statement(
        "INSERT INTO people (id, name, login, login_key, role, environment, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (person_id, new.name, new.login, name_key(new.login), new.role, environment, now),
        name="insert_person",
    )
    person = yield from read_person(person_id, by.environment)
    yield record_person("person.created", person, None, by.author, now)
    return (yield from _invite(person, by, now))


def invite_person(
    person_id: int,
    by: Principal,
    now: Milliseconds,
    check: Callable[[Person], None] = unconditional,
) -> Unit[Added]:
    """Make a link with which a person who passes ``check`` sets a password; earlier ones end.

    The password until now works until the link is used.
    """
    by = yield from begin_change(by, now)
    person = yield from read_person(person_id, by.environment)
    check(person.shown)
    if person.state == "disabled":
        msg = f"person {person_id} is disabled; enable the account first"
        raise PersonDisabled(msg)
    return (yield from _invite(person, by, now))


def change_person(
    person_id: int,
    changes: Mapping[str, Any],
    by: Principal,
    now: Milliseconds,
    check: Callable[[Person], None] = unconditional,
) -> Unit[Person]:
    """Change fields of a person who passes ``check``, by their names in ``PersonPatch``.

    Who is disabled is signed out, and their links end, with those that they have made.
    """
    by = yield from begin_change(by, now)
    before = yield from read_person(person_id, by.environment)
    check(before.shown)
    after = before.changed(changes, now)
    if after == before:
        return before.shown
    was_disabled, is_disabled = before.state == "disabled", after.state == "disabled"
    is_enabled = was_disabled and not is_disabled
    gets_more = is_enabled or not after.caller.scopes <= before.caller.scopes
    if by.caller is not None and (gets_more or after.login != before.login):
        check_role(by.caller, after.caller)
    yield from _require_administrator(before, after, by)
    if name_key(after.login) != name_key(before.login):
        yield from _require_free_login(after.login)
    yield from _save(after)
    if is_disabled and not was_disabled:
        yield delete_invitations(person_id)
        yield from end_sessions(person_id)
    yield record_person("person.updated", after, before, by.author, now)
    return after.shown


async def list_devices_of(
    store: Reader, person_id: int, environment: Environment | None, now: Milliseconds
) -> list[PersonDevice]:
    """Return where a person is signed in, the last used first, or raise ``NotFound``."""
    await find_person(store, person_id, environment)
    return [*map(_shown_device, await read_unit(store, list_devices(person_id, now)))]


def end_device_of(
    person_id: int,
    device_id: int,
    by: Principal,
    now: Milliseconds,
    check: Callable[[PersonDevice], None],
) -> Unit[None]:
    """Sign a person out on a device that passes ``check``."""
    by = yield from begin_change(by, now)
    yield from read_person(person_id, by.environment)
    devices = yield from list_devices(person_id, now)
    device = next((each for each in devices if each.id == device_id), None)
    if device is None:
        msg = f"person {person_id} is not signed in on device {device_id}"
        raise NotFound(msg)
    check(_shown_device(device))
    yield from end_sessions(person_id, only=device.digest)


def _shown_device(device: Device) -> PersonDevice:
    since, used = utc_second(device.created_at), utc_second(device.used_at)
    return PersonDevice(device.id, device.device, since, used, device.stays)


def _select(person_id: int) -> Statement:
    return Statement(f"{_SELECT} WHERE p.id = ?1", (person_id,), name="select_person")


def read_person(person_id: int, environment: Environment | None) -> Unit[StoredPerson]:
    """Return a person as it is within a unit of work, or raise ``NotFound``."""
    return _found((yield _select(person_id)), person_id, environment)


def record_person(
    kind: AdminEventType,
    person: StoredPerson,
    before: StoredPerson | None,
    by: Author,
    now: Milliseconds,
) -> Statement:
    was = None if before is None else before.shown
    return record(now, admin_event(kind, person.caller.environment, person.shown, was), by=by)


def _found(rows: list[Row], person_id: int, environment: Environment | None) -> StoredPerson:
    person = found(rows, _stored, "person", person_id)
    if environment not in (person.caller.environment, None):
        msg = f"there is no person {person_id}"
        raise NotFound(msg)
    return person


def _stored(row: Row) -> StoredPerson:
    seen_at, login, has_password = row[len(PERSON) :]
    return StoredPerson(caller_of(row, PERSON), seen_at, login, bool(has_password))


def _invite(person: StoredPerson, by: Principal, now: Milliseconds) -> Unit[Added]:
    if by.caller is not None:
        if by.caller.id == person.caller.id:
            msg = "this is your own account: change your password there"
            raise BeyondOwnRights(msg)
        check_role(by.caller, person.caller)
    secret = yield from create_invitation(person.caller.id, now, by)
    yield record_person("person.invited", person, person, by.author, now)
    return Added(person.shown, secret)


def _save(person: StoredPerson) -> Unit[None]:
    caller = person.caller
    yield Statement(
        "UPDATE people SET name = ?2, role = ?3, disabled_at = ?4, login = ?5, login_key = ?6"
        " WHERE id = ?1",
        (
            *(caller.id, caller.name, caller.role, caller.revoked_at),
            *(person.login, name_key(person.login)),
        ),
        name="update_person",
    )


def _require_free_login(login: str) -> Unit[None]:
    rows = yield Statement(
        "SELECT id FROM people WHERE login_key = ?1",
        (name_key(login),),
        name="select_person_by_login",
    )
    if rows:
        msg = f"login: another person already has the login {login!r}"
        raise LoginTaken(msg)


def _require_administrator(before: StoredPerson, after: StoredPerson, by: Principal) -> Unit[None]:
    # Who is only invited may be signed in by a link, and could never undo it.
    is_own = by.caller is not None and by.caller.id == before.caller.id
    counts = before.has_password or is_own
    if before.administers and counts and not after.administers:
        yield from _require_other_administrator(before.caller)


def _require_other_administrator(person: Caller) -> Unit[None]:
    others = yield Statement(
        "SELECT id FROM people WHERE id <> ?1 AND environment = ?2 AND role = 'administrator'"
        " AND disabled_at IS NULL AND password IS NOT NULL LIMIT 1",
        (person.id, person.environment),
        name="select_other_administrator",
    )
    if not others:
        msg = (
            f"person {person.id} is the last active administrator: make another active person one"
            " first"
        )
        raise LastAdministrator(msg)
