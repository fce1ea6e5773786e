"""Accounts of people: signing in, invitations, and passwords, on each database."""

import asyncio
from typing import Any

import pytest

from petstore.clock import HOUR, MINUTE
from petstore.databases.contract import Store
from petstore.errors import InvalidBody, MissingKey
from petstore.keys.cache import ApiKeyCache
from petstore.keys.model import Environment
from petstore.people.accounts import (
    Account,
    accept_invitation,
    change_password,
    find_account,
    find_invitation,
    has_people,
    read_account,
    rename,
    sign_in,
)
from petstore.people.model import INVITATION_LIFE
from petstore.sessions.store import (
    Browser,
    Session,
    create_link,
    end_session,
    find_session,
    list_devices,
    use_link,
)
from support.history import acts_on, told_of
from support.keys import issue
from support.manual_clock import ManualClock
from support.people import add, alter, invite
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BROWSER = Browser("Firefox on Android", stays=True)


async def accept(
    store: Store,
    clock: ManualClock,
    secret: str,
    hashed: str = "first hash",
    environment: Environment = "production",
) -> str | None:
    """Set a password with an invitation, and return the secret of the session."""
    unit = accept_invitation(secret, hashed, environment, clock(), BROWSER)
    return await store.write(unit)


async def add_account(store: Store, clock: ManualClock, **wanted: Any) -> Account:
    """Add a person with a password."""
    added = await add(store, clock, **wanted)
    assert await accept(store, clock, added.secret) is not None
    return await read_account(store, added.person.id)


async def signed_in(store: Store, clock: ManualClock, account: Account) -> str:
    """Sign in with the password of an account, and return the secret of the session."""
    secret = await store.write(sign_in(account, clock(), BROWSER))
    assert secret is not None
    return secret


async def find(store: Store, clock: ManualClock, secret: str) -> Session:
    session = await find_session(store, secret, "production", clock())
    assert isinstance(session, Session)
    return session


async def why_ended(store: Store, clock: ManualClock, secret: str) -> object:
    return await find_session(store, secret, "production", clock())


# Logins


@pytest.mark.parametrize(
    "login",
    [
        "",
        "grace",
        "grace@shop.example ",
        "grace@shop.example\0",
        "x" * 100,
        "grace@shop.example" * 9,
    ],
)
async def test_an_unknown_login_has_no_account(
    store: Store, clock: ManualClock, login: str
) -> None:
    await add_account(store, clock)
    assert await find_account(store, login, "production") is None


async def test_a_login_is_found_in_any_case_and_in_its_environment(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock, login="Käthe@shop.example")
    for login in ("käthe@SHOP.example", "KA\N{COMBINING DIAERESIS}THE@shop.example"):
        assert await find_account(store, login, "production") == account
        assert await find_account(store, login, "staging") is None


async def test_a_long_login_that_begins_like_another_is_another(
    store: Store, clock: ManualClock
) -> None:
    longest = "x" * 64
    account = await add_account(store, clock, login=longest)
    assert await find_account(store, longest, "production") == account
    assert await find_account(store, longest + "x", "production") is None


async def test_a_store_has_people_of_each_environment(store: Store, clock: ManualClock) -> None:
    await issue(store, clock)
    assert not await has_people(store, "production")
    added = await add(store, clock)
    assert await has_people(store, "production")
    assert not await has_people(store, "staging")
    await alter(store, clock, added.person.id, state="disabled")
    assert not await has_people(store, "production")


# Signing in


async def test_a_session_of_a_person_is_where_and_as_they_wanted(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    session = await find(store, clock, await signed_in(store, clock, account))
    assert session.caller == account.caller
    assert (session.device, session.stays) == ("Firefox on Android", True)
    assert session.granted_by is None


@pytest.mark.parametrize("what", ["password", "disabled"])
async def test_nobody_signs_in_whose_account_changed_while_the_password_was_verified(
    store: Store, clock: ManualClock, what: str
) -> None:
    account = await add_account(store, clock)
    if what == "disabled":
        await alter(store, clock, account.caller.id, state="disabled")
    else:
        await accept(store, clock, (await invite(store, clock, account.caller.id)).secret, "other")
    assert await store.write(sign_in(account, clock(), BROWSER)) is None


async def test_a_password_may_be_hashed_anew_at_a_sign_in(store: Store, clock: ManualClock) -> None:
    account = await add_account(store, clock)
    other = await signed_in(store, clock, account)
    assert await store.write(sign_in(account, clock(), BROWSER, "newer hash")) is not None
    assert (await read_account(store, account.caller.id)).password == "newer hash"
    # It is the same password, so nobody is signed out.
    await find(store, clock, other)


# Invitations


async def test_an_invitation_shows_who_is_invited_until_it_is_used(
    store: Store, clock: ManualClock
) -> None:
    added = await add(store, clock)
    account = await find_invitation(store, added.secret, "production", clock())
    assert account is not None
    assert (account.caller.name, account.login, account.password) == (
        "Grace",
        "grace@shop.example",
        None,
    )
    assert await find_invitation(store, added.secret, "staging", clock()) is None
    assert await accept(store, clock, added.secret, environment="staging") is None
    again = (await invite(store, clock, added.person.id)).secret
    assert await accept(store, clock, again) is not None
    assert await find_invitation(store, again, "production", clock()) is None


async def test_an_invitation_sets_the_password_and_signs_in(
    store: Store, clock: ManualClock
) -> None:
    added = await add(store, clock)
    secret = await accept(store, clock, added.secret)
    assert secret is not None
    assert (await find(store, clock, secret)).caller.id == added.person.id
    assert (await read_account(store, added.person.id)).password == "first hash"


async def test_an_invitation_works_once(store: Store, clock: ManualClock) -> None:
    added = await add(store, clock)
    begun = await asyncio.gather(*(accept(store, clock, added.secret, f"{n}") for n in range(4)))
    (secret,) = [each for each in begun if each is not None]
    await find(store, clock, secret)
    assert await accept(store, clock, added.secret) is None


async def test_of_two_links_used_at_once_one_counts(store: Store, clock: ManualClock) -> None:
    added = await add(store, clock)
    link = await store.write(create_link(added.person.id, clock()))
    signed, accepted = await asyncio.gather(
        store.write(use_link(link, "production", clock())), accept(store, clock, added.secret)
    )
    assert accepted is not None
    await find(store, clock, accepted)
    if signed is not None:
        assert await why_ended(store, clock, signed) in ("password", None)


async def test_an_invitation_expires(store: Store, clock: ManualClock) -> None:
    added = await add(store, clock)
    clock.now += INVITATION_LIFE - 1
    assert await find_invitation(store, added.secret, "production", clock()) is not None
    clock.now += 1
    assert await find_invitation(store, added.secret, "production", clock()) is None
    assert await accept(store, clock, added.secret) is None


async def test_the_invitation_of_a_disabled_person_does_not_work(
    store: Store, clock: ManualClock
) -> None:
    added = await add(store, clock)
    await alter(store, clock, added.person.id, state="disabled")
    assert await find_invitation(store, added.secret, "production", clock()) is None
    assert await accept(store, clock, added.secret) is None


async def test_an_invitation_signs_nobody_in_and_a_sign_in_link_sets_no_password(
    store: Store, clock: ManualClock
) -> None:
    added = await add(store, clock)
    link = await store.write(create_link(added.person.id, clock()))
    assert await store.write(use_link(added.secret, "production", clock())) is None
    assert await find_invitation(store, link, "production", clock()) is None
    assert await accept(store, clock, link) is None
    # Neither is used up by that.
    assert await find_invitation(store, added.secret, "production", clock()) is not None
    assert await store.write(use_link(link, "production", clock())) is not None


async def test_a_new_password_by_invitation_ends_every_session_and_link(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    person_id = account.caller.id
    before = [await signed_in(store, clock, account) for _ in range(2)]
    link = await store.write(create_link(person_id, clock()))
    # What an administrator's session has granted ends with it, too.
    key = await issue(store, clock)
    maker = await find(store, clock, before[0])
    granted = await store.write(create_link(key.id, clock(), maker))
    added = await invite(store, clock, person_id)
    await find(store, clock, before[0])  # the invitation alone changes nothing
    after = await accept(store, clock, added.secret, "second hash")
    assert after is not None
    assert {await why_ended(store, clock, each) for each in before} == {"password"}
    for each in (link, granted):
        assert await store.write(use_link(each, "production", clock())) is None
    assert [device.device for device in await list_devices(store, person_id, clock())] == [
        "Firefox on Android"
    ]
    await find(store, clock, after)


# The own password and name


async def test_a_changed_password_ends_all_sessions_but_the_own(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    own, other = [await signed_in(store, clock, account) for _ in range(2)]
    link = await store.write(create_link(account.caller.id, clock()))
    invited = (await invite(store, clock, account.caller.id)).secret
    session = await find(store, clock, own)
    await store.write(change_password(session, account.password, "second hash", clock()))
    clock.now += MINUTE
    assert (await find(store, clock, own)).caller.id == account.caller.id
    assert await why_ended(store, clock, other) == "password"
    assert await store.write(use_link(link, "production", clock())) is None
    assert await accept(store, clock, invited) is None
    changed = await read_account(store, account.caller.id)
    assert changed.password == "second hash"
    await signed_in(store, clock, changed)


async def test_of_two_changes_of_a_password_one_counts(store: Store, clock: ManualClock) -> None:
    account = await add_account(store, clock)
    secrets = [await signed_in(store, clock, account) for _ in range(2)]
    sessions = [await find(store, clock, secret) for secret in secrets]
    ended = await asyncio.gather(
        *(
            store.write(change_password(session, account.password, f"{n}", clock()))
            for n, session in enumerate(sessions)
        ),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in ended) == ["MissingKey", "NoneType"]
    ((current,),) = [
        await store.write(
            do(
                "SELECT count(*) FROM api_key_tokens WHERE key_id = ?1 AND expires_at IS NULL",
                account.caller.id,
            )
        )
    ]
    assert current == (1,)


async def test_a_password_that_was_not_verified_is_not_changed(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    session = await find(store, clock, await signed_in(store, clock, account))
    with pytest.raises(InvalidBody, match="current: your password was changed just now"):
        await store.write(change_password(session, "another hash", "second hash", clock()))


async def test_an_ended_session_changes_neither_password_nor_name(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    session = await find(store, clock, await signed_in(store, clock, account))
    await store.write(end_session(session.digest))
    for unit in (
        change_password(session, account.password, "second hash", clock()),
        rename(session, "Ada", clock()),
    ):
        with pytest.raises(MissingKey):
            await store.write(unit)
    assert await read_account(store, account.caller.id) == account


async def test_the_history_of_a_person_has_passwords_and_names_but_no_secret(
    store: Store, clock: ManualClock
) -> None:
    account = await add_account(store, clock)
    session = await find(store, clock, await signed_in(store, clock, account))
    await store.write(change_password(session, account.password, "second hash", clock()))
    await store.write(rename(session, "Ada", clock()))
    person_id = account.caller.id
    person, name = f"person/{person_id}", account.caller.name
    assert (await acts_on(store, person))[2:] == [
        (person, "updated", {"state": "invited"}),
        (person, "updated", {}),
        (person, "updated", {"name": name}),
    ]
    told = await told_of(store, person)
    assert told[-1]["data"]["name"] == "Ada"
    assert "hash" not in repr(told)


async def test_every_process_learns_of_a_new_password(store: Store, clock: ManualClock) -> None:
    noticed: list[str] = []
    keys = ApiKeyCache(store, clock, "production", lambda: noticed.append("changed"))
    account = await add_account(store, clock)
    session = await find(store, clock, await signed_in(store, clock, account))
    await keys.refresh()
    noticed.clear()
    await keys.refresh()
    assert noticed == []
    await store.write(change_password(session, account.password, "second hash", clock()))
    await keys.refresh()
    assert noticed == ["changed"]
    clock.now += HOUR
    added = await invite(store, clock, account.caller.id)
    await keys.refresh()
    noticed.clear()
    await accept(store, clock, added.secret, "third hash")
    await keys.refresh()
    assert noticed == ["changed"]
