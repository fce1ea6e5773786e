"""What is for keys neither shows nor changes a person, though both are callers."""

import pytest

from petstore.databases.contract import Statement, Store
from petstore.errors import LastAdminKey, NotFound
from petstore.keys.model import SCOPES
from petstore.keys.store import get_key, list_keys
from support.keys import actor, change, revoke, rotate, unban
from support.manual_clock import ManualClock
from support.people import add_active

pytestmark = pytest.mark.anyio

TABLES = ("api_keys", "people", "api_key_tokens", "events", "invitations")


async def stored(store: Store) -> list[list[str]]:
    """Return all that a change to a key or a person could change."""
    return [
        sorted(map(repr, await store.read(Statement(f"SELECT * FROM {table}"))))  # noqa: S608
        for table in TABLES
    ]


@pytest.mark.each_database
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


@pytest.mark.each_database
async def test_an_administrator_is_no_admin_key(store: Store, clock: ManualClock) -> None:
    await add_active(store, clock, role="administrator")
    by = await actor(store, clock, scopes=frozenset(SCOPES))
    assert by.caller is not None
    with pytest.raises(LastAdminKey):
        await revoke(store, clock, by.caller.id, by=by)
