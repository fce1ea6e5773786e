"""Reservations that lapse, below HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from petstore.clock import MINUTE
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.errors import Unavailable
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import Reservations, get_order, place_order, update_order
from petstore.pets.model import Inventory, NewPet
from petstore.pets.store import get_inventory
from support.changes import create_pets
from support.manual_clock import ManualClock
from support.stores import locked, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
def reservations(store: Store, clock: ManualClock) -> Reservations:
    return Reservations(store, clock)


@pytest.fixture
async def other(address: str) -> AsyncIterator[Store]:
    """Another service's connection to the same database."""
    async with open_store(address) as other:
        yield other


def place_all(count: int, now: int, minutes: int) -> Unit[None]:
    """Add so many pets and order each."""
    yield from create_pets([NewPet("Bella", 1, "available")] * count)
    for pet_id in range(1, count + 1):
        yield from place_order(Change(now, reservation_minutes=minutes), OrderCreate(pet_id))


async def status_of(store: Store, order_id: int = 1) -> str:
    return (await get_order(store, order_id)).status


async def test_a_reservation_that_is_made_during_a_refresh_lapses_in_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reservations = Reservations(store, clock)
    read = store.read

    async def read_before_an_order(statement: Statement) -> list[Row]:
        rows = await read(statement)
        await store.write(place_all(1, clock(), 1))
        reservations.note(clock() + MINUTE)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", read_before_an_order)
        await reservations.refresh()
    clock.now += MINUTE
    assert reservations.are_due()
    await reservations.settle()
    assert await status_of(store) == "cancelled"
    for until in (clock() + 3, clock() + 2, clock() + 4):
        reservations.note(until)
    for is_due in (False, True):
        clock.now += 1
        assert reservations.are_due() is is_due


async def test_a_reservation_of_any_process_lapses_at_the_exact_millisecond(
    store: Store, clock: ManualClock, reservations: Reservations, other: Store
) -> None:
    await reservations.refresh()
    await other.write(place_all(1, clock(), 1))
    await reservations.refresh()
    clock.now += MINUTE - 1
    assert not reservations.are_due()
    await reservations.refresh()
    assert await status_of(store) == "placed"
    clock.now += 1
    assert reservations.are_due()
    await reservations.settle()
    assert not reservations.are_due()
    assert await status_of(store) == "cancelled"
    assert await get_inventory(store) == Inventory(available=1)


@pytest.mark.parametrize("timeout_ms", [60_000])  # what lapses is ordered in one unit of work
async def test_many_reservations_can_lapse_at_once(
    store: Store, clock: ManualClock, reservations: Reservations
) -> None:
    await store.write(place_all(300, clock(), 1))  # more than a batch
    clock.now += MINUTE
    await reservations.refresh()
    assert await get_inventory(store) == Inventory(available=300)
    assert not reservations.are_due()


async def test_only_due_reservations_lapse(
    store: Store, clock: ManualClock, reservations: Reservations
) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "available")] * 4))
    for pet_id, minutes in ((1, 1), (2, 2), (3, 0), (4, 1)):
        await store.write(
            place_order(Change(clock(), reservation_minutes=minutes), OrderCreate(pet_id))
        )
    await store.write(update_order(Change(0), 4, OrderPatch(status="approved")))
    for passed, statuses in (
        (1, ["cancelled", "placed", "placed", "approved"]),
        (1, ["cancelled", "cancelled", "placed", "approved"]),
        (100 * 365 * 24 * 60, ["cancelled", "cancelled", "placed", "approved"]),
    ):
        clock.now += passed * MINUTE
        await reservations.refresh()
        assert [await status_of(store, order_id) for order_id in (1, 2, 3, 4)] == statuses
    assert await get_inventory(store) == Inventory(available=2, pending=2)


async def test_a_pet_released_by_another_process_is_not_released_again(
    store: Store, clock: ManualClock, reservations: Reservations, other: Store
) -> None:
    await store.write(place_all(1, clock(), 1))
    await reservations.refresh()
    clock.now += MINUTE
    await Reservations(other, clock).refresh()
    await other.write(place_order(Change(clock(), reservation_minutes=1), OrderCreate(1)))
    assert reservations.are_due()
    await reservations.settle()
    assert not reservations.are_due()
    assert await status_of(store, 2) == "placed"
    assert await get_inventory(store) == Inventory(pending=1)


async def test_a_lapse_is_retried_later_while_the_database_refuses_changes(
    store: Store,
    database: Path,
    clock: ManualClock,
    reservations: Reservations,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await store.write(place_all(1, clock(), 1))
    await reservations.refresh()
    clock.now += MINUTE
    with locked(database, store):
        await reservations.settle()
        assert "lapsed reservations were not released: " in caplog.text
        assert not reservations.are_due()
        with pytest.raises(Unavailable):
            await reservations.refresh()
    await reservations.refresh()
    assert await status_of(store) == "cancelled"
