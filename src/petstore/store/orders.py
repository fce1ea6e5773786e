"""Place, list and move orders. However many buyers race for an animal, one gets it."""

from collections.abc import Callable

from petstore.clock import MINUTE, Milliseconds, utc
from petstore.databases import orders
from petstore.databases.contract import Reader, Row, Store, Unit
from petstore.databases.pets import move_pet, pet_of, select_pet
from petstore.domain.orders import (
    PET_AFTER,
    NewOrder,
    Order,
    OrderFilter,
    OrderPatch,
    as_of,
    moved,
    patched,
)
from petstore.errors import NotFound, PetNotAvailable, UnknownPet
from petstore.store.lapses import free_if_lapsed
from petstore.store.pages import Page, page_of


async def list_orders(
    store: Reader, wanted: OrderFilter, after: int | None, limit: int
) -> Page[Order]:
    """Return the first ``limit`` orders with an id above ``after``, by ascending id."""
    rows = await store.read(orders.select_orders(wanted, after, limit + 1))
    return page_of(rows, limit, orders.order_of)


async def get_order(store: Store, order_id: int) -> Order:
    """Return one order.

    Raises:
        NotFound: there is none with this id.
    """
    return _found(await store.read(orders.select_order(order_id)), order_id)


def place_order(new: NewOrder, now: Milliseconds, reservation_minutes: int) -> Unit[Order]:
    """Reserve an available animal, for so many minutes or with 0 for ever; return the order.

    Raises:
        UnknownPet: there is no such animal.
        PetNotAvailable: it is not available.
    """
    while not (yield move_pet(new.petId, "pending", after="available")):
        if not (yield from free_if_lapsed(new.petId, now)):
            yield from _refuse(new.petId)
    (row,) = yield orders.insert_order(new, now, _end(now, reservation_minutes))
    return orders.order_of(row)


def update_order(
    order_id: int, patch: OrderPatch, now: Milliseconds, check: Callable[[Order], None]
) -> Unit[Order]:
    """Change an order that passes ``check``, and with it its animal; return it.

    Raises:
        NotFound: there is none with this id.
        IllegalTransition: its status cannot follow the present one.
        OrderClosed: its date cannot change any more.
        PetstoreError: what ``check`` raises.
    """
    return (yield from _change(order_id, lambda order: patched(order, patch), now, check))


def cancel_order(order_id: int, now: Milliseconds, check: Callable[[Order], None]) -> Unit[None]:
    """Cancel an order that passes ``check``; one that is cancelled stays so.

    Raises:
        NotFound: there is none with this id.
        IllegalTransition: it is delivered.
        PetstoreError: what ``check`` raises.
    """

    def cancelled(order: Order) -> Order:
        return order if order.status == "cancelled" else moved(order, "cancelled")

    yield from _change(order_id, cancelled, now, check)


def _change(
    order_id: int,
    change: Callable[[Order], Order],
    now: Milliseconds,
    check: Callable[[Order], None],
) -> Unit[Order]:
    stored = yield from _held(order_id)
    # What has lapsed and is not yet settled is cancelled all the same.
    order = as_of(stored, utc(now))
    check(order)
    changed = change(order)
    # The same moment in another offset is another text.
    if changed == stored and str(changed.shipDate) == str(stored.shipDate):
        return stored
    yield orders.update_order(changed)
    if changed.status in PET_AFTER and changed.status != stored.status:
        yield move_pet(changed.petId, PET_AFTER[changed.status])
    return changed


def _held(order_id: int) -> Unit[Order]:
    return _found((yield orders.hold_order(order_id)), order_id)


def _refuse(pet_id: int) -> Unit[None]:
    rows = yield select_pet(pet_id)
    if not rows:
        msg = f"petId: expected an animal of this store; there is no pet {pet_id}"
        raise UnknownPet(msg)
    status = pet_of(rows[0]).status or "without a status"
    if status != "available":  # if it is, it has become so in this moment
        msg = f"pet {pet_id} is {status}; only an available one can be ordered"
        raise PetNotAvailable(msg)


def _end(now: Milliseconds, minutes: int) -> Milliseconds | None:
    return now + minutes * MINUTE if minutes else None


def _found(rows: list[Row], order_id: int) -> Order:
    if not rows:
        msg = f"there is no order {order_id}"
        raise NotFound(msg)
    return orders.order_of(rows[0])
