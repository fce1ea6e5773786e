"""What is for keys neither shows nor changes a person, though both are callers."""

import json
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE
from petstore.databases.contract import Statement, Store
from petstore.errors import LastAdminKey, NotFound
from petstore.keys.model import SCOPES
from petstore.keys.notices import KeyNotices
from petstore.keys.status import get_key, list_keys
from petstore.limits.contract import State
from petstore.limits.database import StoredRateLimits
from support.cases import case
from support.command import Command
from support.error_body import assert_error
from support.history import told_of
from support.keys import actor, change, issue, revoke, rotate, unban
from support.manual_clock import ManualClock
from support.people import add_active, invite
from support.service import Service
from support.visitor import signed_in, signed_in_person

pytestmark = pytest.mark.anyio

TABLES = ("api_keys", "people", "api_key_tokens", "events", "invitations")


async def stored(store: Store) -> list[list[str]]:
    """Return all that a change to a key or a person could change."""
    return [
        sorted(map(repr, await store.read(Statement(f"SELECT * FROM {table}"))))  # noqa: S608
        for table in TABLES
    ]


@pytest.mark.each_database
async def test_no_operation_on_keys_finds_or_changes_a_person(
    store: Store, clock: ManualClock
) -> None:
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


@pytest.mark.each_database
async def test_an_administrator_is_no_admin_key(store: Store, clock: ManualClock) -> None:
    await add_active(store, clock, role="administrator")
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    with pytest.raises(LastAdminKey):
        await revoke(store, clock, by.caller.id, by=by)


@pytest.mark.each_database
async def test_no_notice_is_about_a_person(store: Store, clock: ManualClock) -> None:
    person_id = (await add_active(store, clock)).id
    # No person has such a state: people are not limited as keys are.
    state = State(
        *(clock(), 10**6),
        day=clock() // DAY,
        day_used=10**6,
        used_at=clock(),
        banned_at=clock(),
        banned_until=clock() + 5 * MINUTE,
        ban_level=1,
    )
    await StoredRateLimits(store).save([(person_id, state)])
    await KeyNotices(store, clock, []).look()
    assert await store.read(Statement("SELECT * FROM key_notices")) == []


@pytest.mark.each_database
async def test_what_a_key_did_to_people_is_known(store: Store, clock: ManualClock) -> None:
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    person_id = (await add_active(store, clock)).id
    await invite(store, clock, person_id, by=by)
    made = (await issue(store, clock, by=by)).id
    did = [
        (event["resource"], event["type"])
        for event in await told_of(store)
        if event["actor"] == {"type": "key", "id": by.caller.id}
    ]
    assert did == [(f"person/{person_id}", "person.invited"), (f"key/{made}", "key.created")]


async def test_no_operation_of_the_interface_takes_a_person_for_a_key(service: Service) -> None:
    person = await add_active(service.store, service.clock)
    token = (await service.issue(scopes=frozenset(SCOPES))).token
    asked: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("PATCH", "", {"name": "Eve"}),
        ("DELETE", "", None),
        ("POST", "/rotate", {}),
        ("POST", "/unban", None),
    ]
    for method, rest, body in asked:
        with case(method, rest):
            path = f"/v1/keys/{person.id}{rest}"
            response = await service.request(method, path, token, json=body)
            assert_error(response, 404, "not_found")
    listed = (await service.request("GET", "/v1/keys", token)).json()
    assert [key["id"] for key in listed] == [person.id + 1]
    assert (await service.request("GET", "/v1/deprecations", token)).json() == []


async def test_no_page_of_keys_takes_a_person_for_a_key(service: Service) -> None:
    staff = await signed_in(service)
    person = await signed_in_person(service, name="Lovelace")
    await person.get("/pets")
    assert (await staff.get(f"/keys/{person.key_id}")).status_code == 404
    for path in ("", "/rotate", "/revoke", "/unban"):
        refused = await staff.post(f"/keys/{person.key_id}{path}", graceSeconds="0")
        assert refused.status_code == 404, path
    assert "Lovelace" not in (await staff.get("/keys")).text
    assert "Lovelace" not in (await staff.get("/deprecations")).text


def test_no_command_takes_a_person_for_a_key(command: Command) -> None:
    command.succeed("people", "add", "--name", "Grace", "--login", "grace", "--role", "clerk")
    before = command.succeed("people", "list", "--json")
    for arguments in (
        ("keys", "show", "1"),
        ("keys", "change", "1", "--name", "Eve"),
        ("keys", "rotate", "1"),
        ("keys", "revoke", "1"),
        ("keys", "unban", "1"),
    ):
        assert command.fail(*arguments, status=3) == "there is no key 1"
    assert command.succeed("people", "list", "--json") == before
    assert command.succeed("keys", "list", "--json") == "[]\n"
    assert json.loads(before)[0]["name"] == "Grace"
