"""Sessions and invitations, on each database."""

import asyncio
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Statement, Store, read_unit
from petstore.databases.schema import prune_all
from petstore.events.store import Change
from petstore.keys.model import Caller, digest
from petstore.people.model import (
    INVITATION_LIFE,
    Browser,
    Device,
    Session,
)
from petstore.people.store import (
    MAX_SESSIONS,
    begin_session,
    create_invitation,
    end_session,
    end_sessions,
    find_account,
    find_invited,
    find_session,
    list_devices,
    take_invitation,
    touch_session,
)
from support.keys import change, issue, revoke, rotate, stored_key
from support.manual_clock import ManualClock
from support.people import add_active, alter, set_some_password
from support.retention import DAYS_KEPT

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

STAYS = Browser("Firefox on Android", stays=True)


class Door:
    """Somebody with a credential, who signs in with it."""

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


OF_KEYS = ("a new token", "the grace period", "revoked", "expired")
OF_PEOPLE = ("a new password", "disabled", "disabled for a time")


@pytest.mark.parametrize("what", [*OF_KEYS, *OF_PEOPLE])
async def test_a_session_and_the_invitations_made_in_it_end_with_its_credential(
    store: Store, clock: ManualClock, owner: Door, grace: Door, what: str
) -> None:
    await add_active(store, clock, login="other@shop.example", role="administrator")
    door, other = (owner, grace) if what in OF_KEYS else (grace, owner)
    secret, beside = await door.sign_in(), await other.sign_in()
    invited = await add_active(store, clock, login="new@shop.example")
    link = await invitation(door, invited.id)
    assert await invitee(door, link) == invited.id
    await ended_by(door, what)
    assert not await door.is_found(secret)
    assert await other.is_found(beside)
    if what != "disabled for a time":
        assert await invitee(door, link) is None


async def test_an_invitation_ends_when_its_maker_no_longer_administers(
    store: Store, clock: ManualClock, grace: Door
) -> None:
    await add_active(store, clock, login="other@shop.example", role="administrator")
    link = await invitation(grace, grace.who.id)
    await alter(store, clock, grace.who.id, role="clerk")
    assert await invitee(grace, link) is None


async def invitation(by: Door, person_id: int) -> str:
    change = Change(by.clock(), caller=by.who, credential=by.credential)
    return await by.store.write(create_invitation(change, person_id))


async def invitee(door: Door, link: str, environment: Any = "production") -> int | None:
    account = await read_unit(door.store, find_invited(link, environment, door.clock()))
    return None if account is None else account.caller.id


async def test_a_session_is_found_by_its_secret_in_its_environment(owner: Door) -> None:
    secret = await owner.sign_in()
    session = await owner.find(secret)
    assert session is not None
    assert (session.caller.id, session.credential) == (owner.who.id, owner.credential)
    for other in (secret[:-1], secret.swapcase(), "", "\ud800"):
        assert not await owner.is_found(other)
    staging = await find_session(owner.store, secret, "staging", owner.clock())
    assert staging is None
    rows = await owner.store.read(Statement("SELECT * FROM console_sessions"))
    assert secret not in repr(rows)


@pytest.mark.parametrize(
    ("browser", "idle", "longest"),
    [(Browser(), 30 * MINUTE, 12 * 60 * MINUTE), (STAYS, 30 * DAY, 180 * DAY)],
)
async def test_each_use_extends_a_session_up_to_its_maximum_lifetime(
    grace: Door, browser: Browser, idle: Milliseconds, longest: Milliseconds
) -> None:
    secret, began, clock = await grace.sign_in(browser), grace.clock(), grace.clock
    step = (idle - MINUTE) / SECOND
    while clock() + step * SECOND < began + longest:
        clock.advance(step)
        session = await grace.find(secret)
        assert session is not None
        await grace.store.write(touch_session(session, clock()))
    clock.advance((began + longest - clock()) / SECOND - 1)
    assert await grace.is_found(secret)
    clock.advance(1)
    assert not await grace.is_found(secret)
    unused = await grace.sign_in(browser)
    clock.advance(idle / SECOND)
    assert not await grace.is_found(unused)


async def test_the_newest_hundred_sessions_are_kept(owner: Door, grace: Door) -> None:
    other = await grace.sign_in()
    secrets = []
    for _ in range(MAX_SESSIONS + 2):
        owner.clock.advance(0.001)
        secrets.append(await owner.sign_in())
    found = [await owner.is_found(each) for each in secrets]
    assert found == [False] * 2 + [True] * MAX_SESSIONS
    assert await grace.is_found(other)


async def test_devices_are_sessions_that_go_on_with_the_last_used_first(
    grace: Door, owner: Door
) -> None:
    await owner.sign_in()
    gone = await grace.sign_in()
    grace.clock.advance(1)
    phone = await grace.sign_in(STAYS)
    grace.clock.advance(1)
    await grace.sign_in(Browser("Chrome on Windows"))
    await grace.store.write(end_session(gone))
    devices = await grace.devices()
    assert [(each.device, each.stays) for each in devices] == [
        ("Chrome on Windows", False),
        ("Firefox on Android", True),
    ]
    session = await grace.find(phone)
    assert session is not None
    assert session.device.id == devices[1].id
    grace.clock.advance(30 * 60)
    assert [each.device for each in await grace.devices()] == ["Firefox on Android"]


async def test_one_session_or_all_but_one_can_end(grace: Door, owner: Door) -> None:
    secrets = [await grace.sign_in() for _ in range(4)]
    found = [await grace.find(each) for each in secrets]
    digests = [each.device.digest for each in found if each]
    await grace.store.write(end_sessions(owner.who.id, only=digests[0]))  # of somebody else
    await grace.store.write(end_sessions(grace.who.id, only=digests[1]))
    assert [await grace.is_found(each) for each in secrets] == [True, False, True, True]
    await grace.store.write(end_sessions(grace.who.id, kept=digests[2]))
    assert [await grace.is_found(each) for each in secrets] == [False, False, True, False]


async def test_an_invitation_works_once_within_72_hours_in_its_environment(
    store: Store, clock: ManualClock, grace: Door
) -> None:
    person_id = grace.who.id
    first = await store.write(create_invitation(Change(clock()), person_id))
    link = await store.write(create_invitation(Change(clock()), person_id))
    assert await invitee(grace, first) is None  # a newer one ends it
    assert await invitee(grace, link, "staging") is None
    clock.advance(INVITATION_LIFE / SECOND - 1)
    assert await invitee(grace, link) == person_id
    assert sorted(await asyncio.gather(*(store.write(take_invitation(link)) for _ in "ab"))) == [
        False,
        True,
    ]
    assert await invitee(grace, link) is None
    late = await store.write(create_invitation(Change(clock()), person_id))
    clock.advance(INVITATION_LIFE / SECOND)
    assert await invitee(grace, late) is None


async def test_ended_sessions_and_invitations_are_pruned(
    store: Store, clock: ManualClock, grace: Door
) -> None:
    await grace.sign_in()
    await store.write(create_invitation(Change(clock()), grace.who.id))
    clock.advance(INVITATION_LIFE / SECOND + 10 * 60 + 1)
    await prune_all(store, clock, DAYS_KEPT)
    for table in ("console_sessions", "invitations"):
        assert await store.read(Statement(f"SELECT 1 FROM {table}")) == []  # noqa: S608


async def test_a_use_is_noted_with_the_caller(grace: Door) -> None:
    grace.clock.advance(60)
    await grace.sign_in()
    rows = await grace.store.read(Statement("SELECT seen_at FROM callers"))
    assert rows == [(grace.clock(),)]
