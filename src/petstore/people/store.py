"""List, add, change and invite people.

Each change is one unit of work, which begins and ends as a change to a key does.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict

from petstore.clock import Milliseconds, utc_second
from petstore.databases.contract import Reader, Statement, Unit
from petstore.databases.pages import Page, read_page
from petstore.domain.names import name_key
from petstore.errors import BeyondOwnRights, LastAdministrator, LoginTaken, NotFound, PersonDisabled
from petstore.events.model import AdminEventType, admin_event
from petstore.events.store import Change
from petstore.keys.model import Caller, Environment
from petstore.keys.store import begin_change, new_caller
from petstore.people.accounts import (
    SELECT_ACCOUNTS,
    account_of,
    find_account,
    find_account_by_login,
)
from petstore.people.model import (
    INVITATION_LIFE,
    Account,
    Invitation,
    Person,
    PersonCreate,
    PersonDevice,
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
    return (await read_unit(store, read_person(person_id, environment))).shown


async def list_people(
    store: Reader, environment: Environment | None, after: int | None, limit: int
) -> Page[Person]:
    """Return the first ``limit`` people with an id above ``after``, of ``environment`` if given."""
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
    """Make a link with which a person sets a password; earlier ones end.

    The password until now works until the link is used.
    """
    change = yield from begin_change(change)
    person = yield from read_person(person_id, change.environment)
    change.check(person.shown)
    if person.state == "disabled":
        msg = f"person {person_id} is disabled; enable the account first"
        raise PersonDisabled(msg)
    return (yield from _invite(person, change))


def change_person(person_id: int, changes: Mapping[str, Any], change: Change) -> Unit[Person]:
    """Change fields of a person, by their names in ``PersonPatch``.

    Who is disabled is signed out, and their links end, with those that they have made.
    """
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


async def list_devices_of(
    store: Reader, person_id: int, environment: Environment | None, now: Milliseconds
) -> list[PersonDevice]:
    """Return where a person is signed in, the last used first, or raise ``NotFound``."""
    await find_person(store, person_id, environment)
    return [*map(_shown_device, await read_unit(store, list_devices(person_id, now)))]


def end_device_of(person_id: int, device_id: int, change: Change) -> Unit[None]:
    """Sign a person out on a device."""
    change = yield from begin_change(change)
    yield from read_person(person_id, change.environment)
    devices = yield from list_devices(person_id, change.now)
    device = next((each for each in devices if each.id == device_id), None)
    if device is None:
        msg = f"person {person_id} is not signed in on device {device_id}"
        raise NotFound(msg)
    change.check(_shown_device(device))
    yield from end_sessions(person_id, only=device.digest)


def _shown_device(device: Device) -> PersonDevice:
    since, used = utc_second(device.created_at), utc_second(device.used_at)
    return PersonDevice(device.id, device.device, since, used, device.stays)


def read_person(person_id: int, environment: Environment | None) -> Unit[Account]:
    """Return a person of ``environment``, if given, as they are within a unit of work."""
    person = yield from find_account(person_id)
    if person is None or environment not in (person.caller.environment, None):
        msg = f"there is no person {person_id}"
        raise NotFound(msg)
    return person


def record_person(
    kind: AdminEventType, person: Account, before: Account | None, change: Change
) -> Statement:
    was = None if before is None else before.shown
    return change.record(admin_event(kind, person.caller.environment, person.shown, was))


def _invite(person: Account, change: Change) -> Unit[Added]:
    if change.caller is not None:
        if change.caller.id == person.caller.id:
            msg = "this is your own account: change your password there"
            raise BeyondOwnRights(msg)
        check_role(change.caller, person.caller)
    secret = yield from create_invitation(change, person.caller.id)
    yield record_person("person.invited", person, person, change)
    return Added(person.shown, secret)


def _require_free_login(login: str) -> Unit[None]:
    if (yield from find_account_by_login(login)):
        msg = f"login: another person already has the login {login!r}"
        raise LoginTaken(msg)


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
