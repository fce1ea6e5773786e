"""Place, list and change orders. If several buyers order the same pet, only one succeeds."""

from collections.abc import Callable
from datetime import datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from petstore.clock import MINUTE, Milliseconds, utc
from petstore.databases.contract import Reader, Row, Statement, Unit, placeholders
from petstore.databases.pages import Page, found, read_page
from petstore.errors import PetNotAvailable, UnknownPet
from petstore.events.model import SERVICE, Author, NewEvent, ResourceEventType, resource_event
from petstore.events.store import record
from petstore.orders.model import (
    PET_AFTER,
    Order,
    OrderCreate,
    OrderFilter,
    OrderPatch,
    OrderStatus,
    as_of,
    moved,
    patched,
)
from petstore.pets.model import Pet, PetStatus
from petstore.pets.rows import COLUMNS as PET_COLUMNS
from petstore.pets.rows import pet_of

_COLUMNS = "id, pet_id, status, ship_date, placed_at, reserved_until"
_SELECT = f"SELECT {_COLUMNS} FROM orders"  # noqa: S608 - only names
_BATCH = 256
_EVENTS: dict[OrderStatus, ResourceEventType] = {
    "approved": "order.approved",
    "delivered": "order.delivered",
    "cancelled": "order.cancelled",
}


async def list_orders(
    store: Reader,
    wanted: OrderFilter,
    after: int | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> Page[Order]:
    """Return the first ``limit`` orders with an id above ``after``, by ascending id.

    With ``newest_first`` these are the orders with an id below ``after``, by descending id.
    """
    filters = {"pet_id": wanted.pet_id, "status": wanted.status}
    return await read_page(
        store, "select_orders", _SELECT, filters, after, limit, _order_of, newest_first=newest_first
    )


async def get_order(store: Reader, order_id: int) -> Order:
    """Return one order, or raise ``NotFound``."""
    select = Statement(f"{_SELECT} WHERE id = ?1", (order_id,), name="select_order")
    return found(await store.read(select), _order_of, "order", order_id)


def place_order(
    new: OrderCreate, now: Milliseconds, reservation_minutes: int, *, by: Author = SERVICE
) -> Unit[Order]:
    """Reserve an available pet and return the order. With 0 minutes it never lapses.

    Raises:
        UnknownPet: no such pet exists.
        PetNotAvailable: the pet is not available.
    """
    reserve = Statement(
        "UPDATE pets SET status = 'pending' WHERE id = ?1 AND status = 'available'"  # noqa: S608
        f" RETURNING {PET_COLUMNS}",
        (new.pet_id,),
        name="update_pet_status",
    )
    while not (reserved := (yield reserve)):
        if not (yield from free_if_lapsed(new.pet_id, now)):
            yield from _refuse(new.pet_id)
    reserved_until = now + reservation_minutes * MINUTE if reservation_minutes else None
    (row,) = yield Statement(
        "INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)"  # noqa: S608
        f" VALUES (?1, 'placed', ?2, ?3, ?4) RETURNING {_COLUMNS}",
        (new.pet_id, _text(new.ship_date), now, reserved_until),
        name="insert_order",
    )
    order, pet = _order_of(row), pet_of(reserved[0])
    yield record(now, resource_event("order.placed", order), _moved(pet, "available"), by=by)
    return order


def update_order(
    order_id: int,
    patch: OrderPatch,
    now: Milliseconds,
    check: Callable[[Order], None],
    *,
    by: Author = SERVICE,
) -> Unit[Order]:
    """Change an order that passes ``check``, and its pet's status with it; return the order.

    Raises:
        NotFound: no order has this id.
        IllegalTransition: the new status cannot follow the present one.
        OrderClosed: the order is closed, and its date can no longer change.
    """
    return (yield from _change(order_id, lambda order: patched(order, patch), now, check, by))


def cancel_order(
    order_id: int, now: Milliseconds, check: Callable[[Order], None], *, by: Author = SERVICE
) -> Unit[None]:
    """Cancel an order that passes ``check``. Cancelling it again changes nothing.

    Raises:
        NotFound: no order has this id.
        IllegalTransition: the order is delivered.
    """

    def cancelled(order: Order) -> Order:
        return order if order.status == "cancelled" else moved(order, "cancelled")

    yield from _change(order_id, cancelled, now, check, by)


def free_if_lapsed(pet_id: int, now: Milliseconds) -> Unit[bool]:
    """Free a pet if its reservation has lapsed by ``now``, and return whether it had.

    Units of work that change the pet begin with this: the lapse may not be settled yet.
    """
    lapsed = yield Statement(
        f"{_SELECT} WHERE pet_id = ?1 AND status = 'placed' AND reserved_until <= ?2"
        " /*pg FOR UPDATE */",
        (pet_id, now),
        name="lock_lapsed_order",
    )
    yield from _free(lapsed, now)
    return bool(lapsed)


def free_lapsed(now: Milliseconds) -> Unit[int]:
    """Free pets whose reservation has lapsed by ``now``, a batch at once; return how many.

    Processes that do so at the same time lock orders in the same order. Each order is cancelled
    once.
    """
    lapsed = yield Statement(
        f"{_SELECT} WHERE reserved_until <= ?1 ORDER BY reserved_until, id LIMIT ?2"
        " /*pg FOR UPDATE */",
        (now, _BATCH),
        name="lock_lapsed_orders",
    )
    yield from _free(lapsed, now)
    return len(lapsed)


def _change(
    order_id: int,
    change: Callable[[Order], Order],
    now: Milliseconds,
    check: Callable[[Order], None],
    by: Author,
) -> Unit[Order]:
    lock = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(lock, (order_id,), name="lock_order")
    stored = found(rows, _order_of, "order", order_id)
    # A lapsed order counts as cancelled even before the lapse is settled.
    order = as_of(stored, utc(now))
    check(order)
    changed = change(order)
    # Equal moments may differ in their offset.
    if changed == stored and str(changed.ship_date) == str(stored.ship_date):
        return stored
    yield Statement(
        "UPDATE orders SET status = ?1, ship_date = ?2,"
        " reserved_until = CASE WHEN ?1 = 'placed' THEN reserved_until END WHERE id = ?3",
        (changed.status, _text(changed.ship_date), order_id),
        name="update_order",
    )
    events = [resource_event(_event_type(stored, order, changed), changed, stored)]
    if changed.status in PET_AFTER and changed.status != stored.status:
        rows = yield Statement(
            f"UPDATE pets SET status = ?1 WHERE id = ?2 RETURNING {PET_COLUMNS}",  # noqa: S608
            (PET_AFTER[changed.status], changed.pet_id),
            name="update_pet_status",
        )
        events += [_moved(pet_of(row), "pending") for row in rows]
    # What a client has changed of an order that has lapsed is nothing but that.
    yield record(now, *events, by=SERVICE if order.status != stored.status else by)
    return changed


def _event_type(stored: Order, order: Order, changed: Order) -> ResourceEventType:
    """Return what happened to a ``stored`` order, which had become ``order`` before the change."""
    if order.status != stored.status:
        return "order.lapsed"
    if changed.status == order.status:
        return "order.updated"
    return _EVENTS[changed.status]


def _free(lapsed: list[Row], now: Milliseconds) -> Unit[None]:
    """Cancel lapsed orders, whose rows are locked, and free their pets."""
    if not lapsed:
        return
    ids = placeholders(len(lapsed))
    yield Statement(
        f"UPDATE orders SET status = 'cancelled', reserved_until = NULL WHERE id IN {ids}",  # noqa: S608
        [row[0] for row in lapsed],
        name="cancel_lapsed_orders",
    )
    orders = [_order_of(row) for row in lapsed]
    rows = yield Statement(
        f"UPDATE pets SET status = 'available' WHERE id IN {ids} RETURNING {PET_COLUMNS}",  # noqa: S608
        [order.pet_id for order in orders],
        name="release_pets",
    )
    pets = {row[0]: _moved(pet_of(row), "pending") for row in rows}
    events: list[NewEvent] = []
    for order in orders:
        cancelled = replace(order, status="cancelled", reserved_until=UNSET)
        events += [resource_event("order.lapsed", cancelled, order), pets[order.pet_id]]
    yield record(now, *events)


def _moved(pet: Pet, before: PetStatus) -> NewEvent:
    """Return the event that an order has changed the status of a pet."""
    return NewEvent("pet.updated", f"pet/{pet.id}", pet, {"status": before})


def _refuse(pet_id: int) -> Unit[None]:
    sql = "SELECT status FROM pets WHERE id = ?1"
    rows = yield Statement(sql, (pet_id,), name="select_pet_status")
    if not rows:
        msg = f"petId: expected an existing animal; there is no pet {pet_id}"
        raise UnknownPet(msg)
    ((status,),) = rows
    if status != "available":  # otherwise it has just become available
        shown = status or "without a status"
        msg = f"pet {pet_id} is {shown}; only an available one can be ordered"
        raise PetNotAvailable(msg)


def _order_of(row: Row) -> Order:
    order_id, pet_id, status, ship_date, placed_at, reserved_until = row
    return Order(
        id=order_id,
        pet_id=pet_id,
        quantity=1,
        status=status,
        complete=status == "delivered",
        placed_at=utc(placed_at),
        ship_date=UNSET if ship_date is None else datetime.fromisoformat(ship_date),
        reserved_until=UNSET if reserved_until is None else utc(reserved_until),
    )


def _text(moment: datetime | UnsetType) -> str | None:
    return None if moment is UNSET else moment.isoformat()
