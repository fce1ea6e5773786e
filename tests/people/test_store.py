"""People, sessions and invitations in the store; and people apart from keys."""

import asyncio
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Statement, Store, read_unit
from petstore.databases.schema import prune_all
from petstore.errors import BeyondOwnRights, LastAdministrator, LoginTaken, MissingScope, NotFound
from petstore.events.store import Change
from petstore.keys.model import SCOPES, Caller, Environment, digest
from petstore.people.model import INVITATION_LIFE, Browser, Device, Session
from petstore.people.store import (
    MAX_SESSIONS,
    begin_session,
    create_invitation,
    end_session,
    end_sessions,
    find_account,
    find_account_by_login,
    find_invited,
    find_person,
    find_session,
    list_devices,
    list_people,
    take_invitation,
    touch_session,
)
from petstore.webhooks.store import active_webhooks
from support.history import acts_on
from support.keys import actor, change, issue, revoke, rotate, stored_key
from support.manual_clock import ManualClock
from support.people import add, add_active, alter, caller, invite, set_some_password
from support.retention import DAYS_KEPT
from support.webhooks import add_webhook

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


WEAK = frozenset({"keys:admin", "pets:read", "orders:read"})


async def found(store: Store, login: str, environment: Environment = "production") -> int | None:
    account = await read_unit(store, find_account_by_login(login, environment))
    return None if account is None else account.caller.id


async def test_a_login_is_unique_and_found_in_any_case(store: Store, clock: ManualClock) -> None:
    person_id = (await add(store, clock, login="Grüße@shop.example")).person.id
    for login in ("Grüße@shop.example", "GRÜSSE@SHOP.EXAMPLE", "gru\u0308ße@shop.example"):
        with pytest.raises(LoginTaken) as refused:
            await add(store, clock, login=login)
        assert refused.value.message == f"login: another person already has the login {login!r}"
        with pytest.raises(LoginTaken):
            await add(store, clock, login=login, environment="staging")
        assert await found(store, login) == person_id
        assert await found(store, login, "staging") is None
    for other in ("", "grüße", "Grüße@shop.example ", "Grüße@shop.example\0", "x" * 100):
        assert await found(store, other) is None
    # It changes to a free one; the same in another case is one's own.
    grace = (await add_active(store, clock)).id
    with pytest.raises(LoginTaken):
        await alter(store, clock, grace, login="grüsse@shop.example")
    for login in ("Grace@shop.example", "hopper@shop.example"):
        await alter(store, clock, grace, login=login)
    await alter(store, clock, person_id, login="grace@shop.example")
    assert [was for _, _, was in await acts_on(store, f"person/{grace}")][-2:] == [
        {"login": "grace@shop.example"},
        {"login": "Grace@shop.example"},
    ]


async def test_people_are_those_of_their_environment(store: Store, clock: ManualClock) -> None:
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    elsewhere: dict[str, Any] = {"environment": "staging"}
    people = [
        (await add(store, clock, login=f"grace{n}", **where)).person
        for n, where in enumerate(({}, elsewhere, {}, {}))
    ]
    mine = [people[0], people[2], people[3]]
    first = await list_people(store, "production", None, 2)
    assert (first.items, first.next_after) == (mine[:2], mine[1].id)
    second = await list_people(store, "production", first.next_after, 2)
    assert (second.items, second.next_after) == (mine[2:], None)
    assert (await list_people(store, None, None, 100)).items == people
    assert (await list_people(store, "staging", None, 100)).items == people[1:2]
    for person_id in (by.caller.id, people[1].id, 99):
        for attempt in (
            find_person(store, person_id, "production"),
            alter(store, clock, person_id, by=by, name="Eve"),
            invite(store, clock, person_id, by=by),
        ):
            with pytest.raises(NotFound) as refused:
                await attempt
            assert refused.value.message == f"there is no person {person_id}"


@pytest.mark.parametrize("changes", [{"state": "disabled"}, {"role": "manager"}])
async def test_the_last_active_administrator_stays(
    store: Store, clock: ManualClock, changes: dict[str, Any]
) -> None:
    last = await add_active(store, clock, role="administrator")
    # None of these could go on: a clerk, one who never came, one who left, one elsewhere.
    await add_active(store, clock, login="clerk")
    invited = (await add(store, clock, login="invited", role="administrator")).person
    left = await add_active(store, clock, login="left", role="administrator")
    await alter(store, clock, left.id, state="disabled")
    await add_active(store, clock, login="elsewhere", role="administrator", environment="staging")
    await issue(store, clock, scopes=frozenset(SCOPES))
    with pytest.raises(LastAdministrator) as refused:
        await alter(store, clock, last.id, **changes)
    assert refused.value.message == (
        f"person {last.id} is the last active administrator: make another active person one first"
    )
    await alter(store, clock, last.id, name="Ada", login="lovelace")
    # An invited administrator is not active, and so is not needed.
    await alter(store, clock, invited.id, **changes)
    await alter(store, clock, invited.id, role="administrator", state="active")
    await set_some_password(store, invited.id)
    changed = await alter(store, clock, last.id, **changes)
    assert (changed.role, changed.state) != ("administrator", "active")


async def test_webhooks_follow_role_and_state(store: Store, clock: ManualClock) -> None:
    person_id = (await add_active(store, clock, role="manager")).id
    await add_webhook(store, await caller(store, person_id))

    async def are_active() -> bool:
        return bool(await active_webhooks(store, "production", clock()))

    assert await are_active()
    steps: list[tuple[dict[str, Any], bool]] = [
        ({"role": "clerk"}, False),
        ({"role": "administrator"}, True),
        ({"state": "disabled"}, False),
        ({"state": "active"}, True),
        ({"role": "viewer"}, False),
    ]
    for changes, expected in steps:
        await alter(store, clock, person_id, **changes)
        if changes == {"role": "administrator"}:
            await add_active(store, clock, login="ada", role="administrator")
        assert await are_active() is expected, changes


async def test_nobody_invites_somebody_with_more_rights_or_gives_new_ones(
    store: Store, clock: ManualClock
) -> None:
    weak = await actor(store, clock, plan="free", scopes=WEAK)
    clerk = await add_active(store, clock)
    for attempt in (
        add(store, clock, by=weak, login="new"),
        invite(store, clock, clerk.id, by=weak),
    ):
        with pytest.raises(BeyondOwnRights) as refused:
            await attempt
        assert refused.value.message.startswith("role: your key cannot give ")
    assert (await list_people(store, None, None, 10)).items == [clerk]
    assert await store.read(Statement("SELECT 1 FROM invitations")) == []
    # Limits are for keys: a key of the plan free gives the roles of its scopes.
    viewer = (await add(store, clock, by=weak, login="new", role="viewer")).person
    assert viewer.role == "viewer"
    manager = await add_active(store, clock, login="manager", role="manager")
    await alter(store, clock, manager.id, by=weak, name="Grace H.")
    # It lacks scopes of the role that the person has, and so could not give it anew either.
    # Enabling gives everything back.
    steps: tuple[tuple[dict[str, Any], bool], ...] = (
        *(({"role": "administrator"}, False), ({"role": "clerk"}, True)),
        *(({"state": "disabled"}, True), ({"state": "active"}, False)),
        *(({"role": "viewer"}, True), ({"state": "active"}, True), ({"role": "clerk"}, False)),
    )
    for changes, is_allowed in steps:
        if is_allowed:
            changed = await alter(store, clock, manager.id, by=weak, **changes)
        else:
            with pytest.raises(BeyondOwnRights):
                await alter(store, clock, manager.id, by=weak, **changes)
    assert (changed.role, changed.state) == ("viewer", "active")


async def test_who_lost_the_right_meanwhile_changes_nothing(
    store: Store, clock: ManualClock
) -> None:
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    person_id = (await add_active(store, clock)).id
    assert by.caller is not None
    await issue(store, clock, scopes=frozenset(SCOPES))
    await rotate(store, clock, by.caller.id)
    for attempt in (
        add(store, clock, by=by, login="new"),
        alter(store, clock, person_id, by=by, name="Eve"),
        invite(store, clock, person_id, by=by),
    ):
        with pytest.raises(MissingScope):
            await attempt


STAYS = Browser("Firefox on Android", stays=True)


class Door:
    """A person with a credential, who signs in with it."""

    def __init__(self, store: Store, clock: ManualClock, who: Caller, credential: bytes) -> None:
        self.store, self.clock, self.who, self.credential = store, clock, who, credential

    async def sign_in(self, browser: Browser = Browser()) -> str:  # noqa: B008 - immutable
        unit = begin_session(self.who, self.credential, self.clock(), browser)
        return await self.store.write(unit)

    async def find(self, secret: str) -> Session | None:
        return await find_session(self.store, secret, "production", self.clock())

    async def is_found(self, secret: str) -> bool:
        return await self.find(secret) is not None

    async def devices(self) -> list[Device]:
        return await read_unit(self.store, list_devices(self.who.id, self.clock()))

    async def invite(self, person_id: int) -> str:
        change = Change(self.clock(), caller=self.who, credential=self.credential)
        return await self.store.write(create_invitation(change, person_id))


async def invitee(
    store: Store, link: str, clock: ManualClock, environment: Environment = "production"
) -> int | None:
    account = await read_unit(store, find_invited(link, environment, clock()))
    return None if account is None else account.caller.id


@pytest.fixture
async def owner(store: Store, clock: ManualClock) -> Door:
    issued = await issue(store, clock, scopes=frozenset({"keys:admin"}))
    key = await stored_key(store, issued.id)
    return Door(store, clock, key, digest(issued.token.encode("ascii")))


@pytest.fixture
async def grace(store: Store, clock: ManualClock) -> Door:
    person = await add_active(store, clock, role="administrator")
    account = await read_unit(store, find_account(person.id))
    assert account is not None
    return Door(store, clock, account.caller, account.credential)


async def ended_by(door: Door, what: str) -> None:
    store, clock, key_id = door.store, door.clock, door.who.id
    match what:
        case "a new token":
            await rotate(store, clock, key_id)
        case "the grace period":
            await rotate(store, clock, key_id, MINUTE)
            clock.advance(60)
        case "revoked":
            await revoke(store, clock, key_id)
        case "expired":
            await change(store, clock, key_id, expires_at=clock())
        case "a new password":
            await set_some_password(store, key_id, "another hash")
        case "disabled":
            await alter(store, clock, key_id, state="disabled")
        case "disabled for a time":
            await alter(store, clock, key_id, state="disabled")
            await alter(store, clock, key_id, state="active")
        case "another role":
            await alter(store, clock, key_id, role="clerk")


OF_KEYS = ("a new token", "the grace period", "revoked", "expired")
OF_PEOPLE = ("a new password", "disabled", "disabled for a time", "another role")


@pytest.mark.parametrize("what", [*OF_KEYS, *OF_PEOPLE])
async def test_a_session_and_its_invitations_end_with_its_credential(
    store: Store, clock: ManualClock, owner: Door, grace: Door, what: str
) -> None:
    await add_active(store, clock, login="other@shop.example", role="administrator")
    door, other = (owner, grace) if what in OF_KEYS else (grace, owner)
    secret, beside = await door.sign_in(), await other.sign_in()
    invited = await add_active(store, clock, login="new@shop.example")
    link = await door.invite(invited.id)
    assert await invitee(store, link, clock) == invited.id
    await ended_by(door, what)
    assert await door.is_found(secret) is (what == "another role")
    assert await other.is_found(beside)
    if what != "disabled for a time":
        assert await invitee(store, link, clock) is None


async def test_a_session_is_found_by_its_secret_in_its_environment_and_extended_by_use(
    owner: Door, grace: Door
) -> None:
    secret = await owner.sign_in()
    session = await owner.find(secret)
    assert session is not None
    assert (session.caller.id, session.credential) == (owner.who.id, owner.credential)
    for other in (secret[:-1], secret.swapcase(), "", "\ud800"):
        assert not await owner.is_found(other)
    assert await find_session(owner.store, secret, "staging", owner.clock()) is None
    rows = await owner.store.read(Statement("SELECT * FROM console_sessions"))
    assert secret not in repr(rows)
    seen = await owner.store.read(Statement("SELECT seen_at FROM callers ORDER BY id"))
    assert seen[0] == (owner.clock(),)
    secret = await grace.sign_in(STAYS)
    for _ in range(2):
        grace.clock.advance(29 * DAY / SECOND)
        session = await grace.find(secret)
        assert session is not None
        await grace.store.write(touch_session(session, grace.clock()))


async def test_the_newest_hundred_sessions_are_kept(owner: Door, grace: Door) -> None:
    other = await grace.sign_in()
    secrets = []
    for _ in range(MAX_SESSIONS + 2):
        owner.clock.advance(0.001)
        secrets.append(await owner.sign_in())
    found = [await owner.is_found(each) for each in secrets]
    assert found == [False] * 2 + [True] * MAX_SESSIONS
    assert await grace.is_found(other)


async def test_devices_are_sessions_and_one_or_all_others_can_end(grace: Door, owner: Door) -> None:
    await owner.sign_in()
    gone = await grace.sign_in()
    grace.clock.advance(1)
    phone = await grace.sign_in(STAYS)
    grace.clock.advance(1)
    window = await grace.sign_in(Browser("Chrome on Windows"))
    await grace.store.write(end_session(gone))
    last, first = await grace.devices()  # the last used comes first
    assert (last.device, last.stays) == ("Chrome on Windows", False)
    assert (first.device, first.stays) == ("Firefox on Android", True)
    session = await grace.find(phone)
    assert session is not None
    assert session.device.id == first.id
    for caller_id, ends, found in (
        (owner.who.id, {"only": first.digest}, [True, True]),
        (grace.who.id, {"kept": first.digest}, [True, False]),
        (grace.who.id, {"only": first.digest}, [False, False]),
    ):
        await grace.store.write(end_sessions(caller_id, **ends))
        assert [await grace.is_found(each) for each in (phone, window)] == found
    await grace.sign_in(STAYS)
    await grace.sign_in()
    grace.clock.advance(30 * 60)
    assert [each.device for each in await grace.devices()] == ["Firefox on Android"]


async def test_an_invitation_works_once_within_72_hours_in_its_environment(
    store: Store, clock: ManualClock, grace: Door
) -> None:
    person_id = grace.who.id
    first = await store.write(create_invitation(Change(clock()), person_id))
    link = await store.write(create_invitation(Change(clock()), person_id))
    assert await invitee(store, first, clock) is None  # a newer one ends it
    assert await invitee(store, link, clock, "staging") is None
    clock.advance(INVITATION_LIFE / SECOND - 1)
    assert await invitee(store, link, clock) == person_id
    assert sorted(await asyncio.gather(*(store.write(take_invitation(link)) for _ in "ab"))) == [
        False,
        True,
    ]
    assert await invitee(store, link, clock) is None
    late = await store.write(create_invitation(Change(clock()), person_id))
    clock.advance(INVITATION_LIFE / SECOND)
    assert await invitee(store, late, clock) is None
    await add_active(store, clock, login="other@shop.example", role="administrator")
    ended = await store.write(create_invitation(Change(clock()), person_id))
    for state in ("disabled", "active"):
        await alter(store, clock, person_id, state=state)
        assert await invitee(store, ended, clock) is None


async def test_ended_sessions_and_invitations_are_pruned(
    store: Store, clock: ManualClock, grace: Door
) -> None:
    await grace.sign_in()
    await store.write(create_invitation(Change(clock()), grace.who.id))
    clock.advance(INVITATION_LIFE / SECOND + 10 * 60 + 1)
    await prune_all(store, clock, DAYS_KEPT)
    for table in ("console_sessions", "invitations"):
        assert await store.read(Statement(f"SELECT 1 FROM {table}")) == []  # noqa: S608
