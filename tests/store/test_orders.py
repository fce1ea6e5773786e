"""Placing and moving orders, below HTTP."""

import pytest
from msgspec import UNSET

from petstore.clock import utc
from petstore.databases.contract import Row, Store, Unit
from petstore.domain.orders import Order, OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.domain.pets import NewPet, PetStatus
from petstore.errors import (
    IllegalTransition,
    NotFound,
    OrderClosed,
    PetNotAvailable,
    PreconditionFailed,
    UnknownPet,
)
from petstore.store.api_keys import unconditional
from petstore.store.orders import (
    cancel_order,
    get_order,
    list_orders,
    place_order,
    update_order,
)
from petstore.store.pets import delete_pet, get_pet
from support.changes import create_pet
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_000_000
PLACED: Row = (5, 1, "placed", None, NOW, NOW + 60_000)
CANCELLED: Row = (5, 1, "cancelled", None, NOW, None)


async def add(store: Store, status: PetStatus | None = "available") -> None:
    await store.write(create_pet(NewPet("Bella", 7, UNSET if status is None else status)))


def update(status: OrderStatus, order_id: int = 1) -> Unit[Order]:
    return update_order(order_id, OrderPatch(status=status), NOW, unconditional)


async def status_of(store: Store) -> object:
    """Return the status of the animal 1."""
    return (await get_pet(store, 1)).status


def refuse(_: object) -> None:
    msg = "another version"
    raise PreconditionFailed(msg)


# On a database


async def test_an_animal_that_is_not_there_cannot_be_ordered(store: Store) -> None:
    message = r"^petId: expected an existing animal; there is no pet 1$"
    with pytest.raises(UnknownPet, match=message):
        await store.write(place_order(OrderCreate(1), NOW, 1))


@pytest.mark.parametrize(
    ("status", "word"), [(None, "without a status"), ("pending", "pending"), ("sold", "sold")]
)
async def test_an_animal_that_is_not_available_cannot_be_ordered(
    store: Store, status: PetStatus | None, word: str
) -> None:
    await add(store, status)
    message = f"^pet 1 is {word}; only an available one can be ordered$"
    with pytest.raises(PetNotAvailable, match=message):
        await store.write(place_order(OrderCreate(1), NOW, 1))
    assert await status_of(store) == (status or UNSET)
    assert await list_orders(store, OrderFilter(), None, 10) == ([], None)


async def test_an_order_that_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match=r"^there is no order 1$"):
        await get_order(store, 1)
    for unit in (update("approved"), cancel_order(1, NOW, unconditional)):
        with pytest.raises(NotFound, match=r"^there is no order 1$"):
            await store.write(unit)


async def test_an_order_holds_the_animal_for_so_many_minutes(store: Store) -> None:
    await add(store)
    order = await store.write(place_order(OrderCreate(1), NOW, 3))
    expected = Order(
        1,
        1,
        1,
        "placed",
        complete=False,
        placedAt=utc(NOW),
        reservedUntil=utc(NOW + 180_000),
    )
    assert order == expected == await get_order(store, 1)
    assert await status_of(store) == "pending"


async def test_with_no_minutes_it_holds_the_animal_for_ever(store: Store) -> None:
    await add(store)
    order = await store.write(place_order(OrderCreate(1), NOW, 0))
    assert order.reservedUntil is UNSET


@pytest.mark.parametrize(
    ("moves", "status"),
    [
        (("approved",), "pending"),
        (("approved", "delivered"), "sold"),
        (("approved", "cancelled"), "available"),
        (("cancelled",), "available"),
    ],
)
async def test_the_animal_moves_with_its_order(
    store: Store, moves: tuple[OrderStatus, ...], status: PetStatus
) -> None:
    await add(store)
    await store.write(place_order(OrderCreate(1), NOW, 1))
    for move in moves:
        order = await store.write(update(move))
        assert order.reservedUntil is UNSET
        assert order == await get_order(store, 1)
    assert await status_of(store) == status


async def test_the_check_sees_the_order_and_may_refuse_it(store: Store) -> None:
    await add(store)
    order = await store.write(place_order(OrderCreate(1), NOW, 1))
    seen: list[Order] = []
    await store.write(update_order(1, OrderPatch(), NOW, seen.append))
    for unit in (
        update_order(1, OrderPatch(status="approved"), NOW, refuse),
        cancel_order(1, NOW, refuse),
    ):
        with pytest.raises(PreconditionFailed, match=r"^another version$"):
            await store.write(unit)
    assert await get_order(store, 1) == order
    await store.write(cancel_order(1, NOW, seen.append))
    assert seen == [order, order]


async def test_an_order_that_has_ended_does_not_move_another_buyers_animal(
    store: Store,
) -> None:
    await add(store)
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(update("cancelled"))
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(cancel_order(1, NOW, unconditional))
    for status in ("approved", "delivered", "cancelled"):
        with pytest.raises(IllegalTransition):
            await store.write(update(status))
    with pytest.raises(OrderClosed):
        await store.write(update_order(1, OrderPatch(shipDate=None), NOW, unconditional))
    assert await status_of(store) == "pending"
    assert (await get_order(store, 2)).status == "placed"


async def test_an_order_outlives_its_animal(store: Store) -> None:
    await add(store)
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(update("approved"))
    order = await store.write(update("delivered"))
    await store.write(delete_pet(1, 0, unconditional))
    assert await get_order(store, 1) == order
    await add(store)
    assert (await store.write(place_order(OrderCreate(2), NOW, 1))).id == 2


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    unit = update_order(5, OrderPatch(shipDate=None), NOW, unconditional)
    assert by_hand(unit, [PLACED]).status == "placed"
    assert by_hand(cancel_order(5, NOW, unconditional), [CANCELLED]) is None


def test_an_order_can_be_approved_in_the_last_moment() -> None:
    unit = update_order(5, OrderPatch(status="approved"), NOW + 59_999, unconditional)
    assert by_hand(unit, [PLACED], [], []).status == "approved"
