"""People in the store: added, invited, changed, disabled, by whom; and apart from keys."""

from typing import Any

import pytest

from petstore.databases.contract import Statement, Store, read_unit
from petstore.errors import (
    BeyondOwnRights,
    LastAdministrator,
    LastAdminKey,
    LoginTaken,
    MissingScope,
    NotFound,
)
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.keys.model import SCOPES, Environment
from petstore.keys.store import get_key, list_keys
from petstore.people.model import Browser
from petstore.people.store import (
    begin_session,
    find_account,
    find_account_by_login,
    find_person,
    find_session,
    list_people,
)
from petstore.webhooks.store import active_webhooks
from support.history import acts_on
from support.keys import actor, change, issue, revoke, rotate, unban
from support.manual_clock import ManualClock
from support.people import add, add_active, alter, invite, set_some_password
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


WEAK = frozenset({"keys:admin", "pets:read", "orders:read"})


async def signed_in(store: Store, person_id: int, clock: ManualClock) -> Change:
    """Return a person as one who changes people in a session."""
    account = await read_unit(store, find_account(person_id))
    assert account is not None
    unit = begin_session(account.caller, account.credential, clock(), Browser())
    session = await find_session(store, await store.write(unit), "production", clock())
    assert session is not None
    author = Author(f"person/{person_id}")
    return Change(0, author, caller=session.caller, credential=session.credential)


async def test_a_login_is_unique_ignoring_case(store: Store, clock: ManualClock) -> None:
    await add(store, clock, login="Grüße@shop.example")
    for login in ("Grüße@shop.example", "GRÜSSE@SHOP.EXAMPLE", "gru\u0308ße@shop.example"):
        with pytest.raises(LoginTaken) as refused:
            await add(store, clock, login=login)
        assert refused.value.message == f"login: another person already has the login {login!r}"
    with pytest.raises(LoginTaken):
        await add(store, clock, login="grüße@shop.example", environment="staging")
    assert len((await list_people(store, None, None, 100)).items) == 1


async def test_people_are_listed_by_environment(store: Store, clock: ManualClock) -> None:
    await issue(store, clock)
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


async def test_a_key_and_a_person_of_the_other_environment_are_no_people(
    store: Store, clock: ManualClock
) -> None:
    key_id = (await issue(store, clock)).id
    other = (await add(store, clock, environment="staging")).person.id
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    for person_id in (key_id, other, 99):
        for attempt in (
            find_person(store, person_id, "production"),
            alter(store, clock, person_id, by=by, name="Eve"),
            invite(store, clock, person_id, by=by),
        ):
            with pytest.raises(NotFound) as refused:
                await attempt
            assert refused.value.message == f"there is no person {person_id}"


async def test_a_login_changes_to_a_free_one(store: Store, clock: ManualClock) -> None:
    other = (await add(store, clock, login="ada@shop.example")).person
    person_id = (await add_active(store, clock)).id
    with pytest.raises(LoginTaken):
        await alter(store, clock, person_id, login="ADA@shop.example")
    # The same login in another case is one's own.
    await alter(store, clock, person_id, login="Grace@shop.example")
    await alter(store, clock, person_id, login="hopper@shop.example")
    await alter(store, clock, other.id, login="grace@shop.example")
    assert [was for _, _, was in await acts_on(store, f"person/{person_id}")][-2:] == [
        {"login": "grace@shop.example"},
        {"login": "Grace@shop.example"},
    ]


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
    await store.write(
        do(
            "INSERT INTO webhooks (key_id, url, types, created_at, enabled, secret_version,"
            " position, failures, environment)"
            " VALUES (?1, 'https://shop.example/', '', 0, 1, 1, 0, 0, 'production')",
            person_id,
        )
    )

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


async def test_nobody_resets_their_own_password_without_knowing_it(
    store: Store, clock: ManualClock
) -> None:
    admin = await add_active(store, clock, role="administrator")
    by = await signed_in(store, admin.id, clock)
    with pytest.raises(BeyondOwnRights, match="change your password there"):
        await invite(store, clock, admin.id, by=by)


async def test_nobody_invites_somebody_with_more_rights(store: Store, clock: ManualClock) -> None:
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


async def test_a_change_gives_no_new_rights(store: Store, clock: ManualClock) -> None:
    weak = await actor(store, clock, plan="free", scopes=WEAK)
    manager = await add_active(store, clock, role="manager")
    await alter(store, clock, manager.id, by=weak, name="Grace H.")
    # It lacks scopes of the role that the person has, and so could not give it anew either.
    with pytest.raises(BeyondOwnRights):
        await alter(store, clock, manager.id, by=weak, role="administrator")
    await alter(store, clock, manager.id, by=weak, role="clerk")
    await alter(store, clock, manager.id, role="manager")
    await alter(store, clock, manager.id, by=weak, state="disabled")
    # Enabling gives everything back.
    with pytest.raises(BeyondOwnRights):
        await alter(store, clock, manager.id, by=weak, state="active")
    await alter(store, clock, manager.id, by=weak, role="viewer")
    enabled = await alter(store, clock, manager.id, by=weak, state="active")
    assert (enabled.role, enabled.state) == ("viewer", "active")
    with pytest.raises(BeyondOwnRights):
        await alter(store, clock, manager.id, by=weak, role="clerk")


async def test_an_actor_who_lost_the_right_meanwhile_changes_nothing(
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


LOGIN = "Käthe@shop.example"


async def found(store: Store, login: str, environment: Environment = "production") -> int | None:
    account = await read_unit(store, find_account_by_login(login, environment))
    return None if account is None else account.caller.id


async def test_a_login_is_found_in_any_case_and_in_its_environment(
    store: Store, clock: ManualClock
) -> None:
    person_id = (await add(store, clock, login=LOGIN)).person.id
    for login in (LOGIN, "käthe@SHOP.example", "KA\N{COMBINING DIAERESIS}THE@shop.example"):
        assert await found(store, login) == person_id
        assert await found(store, login, "staging") is None
    for other in ("", "käthe", f"{LOGIN} ", f"{LOGIN}\0", "x" * 100, LOGIN * 9):
        assert await found(store, other) is None


async def stored(store: Store) -> list[list[str]]:
    """Return all that a change to a key or a person could change."""
    tables = ("api_keys", "people", "api_key_tokens", "events", "invitations")
    return [
        sorted(map(repr, await store.read(Statement(f"SELECT * FROM {table}"))))  # noqa: S608
        for table in tables
    ]


async def test_no_operation_on_keys_finds_a_person(store: Store, clock: ManualClock) -> None:
    person_id = (await add_active(store, clock, role="administrator")).id
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    before = await stored(store)
    for attempt in (
        get_key(store, person_id, None, clock),
        change(store, clock, person_id, name="Eve"),
        change(store, clock, person_id, by=by, scopes=frozenset(SCOPES)),
        rotate(store, clock, person_id),
        rotate(store, clock, person_id, by=by),
        revoke(store, clock, person_id),
        unban(store, clock, person_id),
    ):
        with pytest.raises(NotFound) as refused:
            await attempt
        assert refused.value.message == f"there is no key {person_id}"
    assert await stored(store) == before
    listed = [key.id for key in (await list_keys(store, None, None, 100, clock)).items]
    assert listed == [by.caller.id]


async def test_an_administrator_is_no_admin_key(store: Store, clock: ManualClock) -> None:
    await add_active(store, clock, role="administrator")
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    with pytest.raises(LastAdminKey):
        await revoke(store, clock, by.caller.id, by=by)
