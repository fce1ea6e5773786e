"""Place, list and change orders. If several buyers order the same pet, only one succeeds."""

from collections.abc import Callable
from datetime import datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from petstore.clock import MINUTE, Milliseconds, milliseconds, milliseconds_up, utc
from petstore.databases.contract import Reader, Row, Statement, Unit, Value, placeholders
from petstore.databases.pages import (
    LAST_ID,
    Below,
    Filter,
    Page,
    found,
    read_count,
    read_page,
    unplanned,
)
from petstore.domain.names import plain_key
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
    check_patch,
    lapsed,
    moved,
    patched,
    without_personal_data,
)
from petstore.pets.model import Pet, PetStatus
from petstore.pets.rows import COLUMNS as PET_COLUMNS
from petstore.pets.rows import pet_of

COLUMNS = (
    "id, pet_id, status, ship_date, placed_at, reserved_until, buyer, note, amount, currency,"
    " approved_at, delivered_at, cancelled_at, cancel_reason"
)
"""The columns of ``order_of``."""

_SELECT = f"SELECT {COLUMNS} FROM orders"  # noqa: S608 - only names
_INSERT = (
    "INSERT INTO orders"  # noqa: S608 - only names
    " (pet_id, status, ship_date, placed_at, reserved_until, buyer, buyer_key, note, amount,"
    " currency, delivered_at, category_id)"
    f" VALUES {placeholders(12)} RETURNING id"
)
# The category is that of the animal when it is sold, whatever happens to both later.
_UPDATE = (
    "UPDATE orders SET status = ?1, ship_date = ?2, buyer = ?3, buyer_key = ?4, note = ?5,"
    " amount = ?6, currency = ?7, approved_at = ?8, delivered_at = ?9, cancelled_at = ?10,"
    " cancel_reason = ?11, reserved_until = CASE WHEN ?1 = 'placed' THEN reserved_until END,"
    " category_id = CASE WHEN ?1 = 'delivered' AND status <> 'delivered'"
    " THEN (SELECT category_id FROM pets WHERE pets.id = pet_id) ELSE category_id END"
    " WHERE id = ?12"
)
_BATCH = 256
_CLOCK_SKEW = 5 * MINUTE
_EVENTS: dict[OrderStatus, ResourceEventType] = {
    "approved": "order.approved",
    "delivered": "order.delivered",
    "cancelled": "order.cancelled",
}


async def list_orders(
    store: Reader, wanted: OrderFilter, after: int | None, limit: int, *, newest_first: bool = False
) -> Page[Order]:
    """Return the first ``limit`` orders with an id above ``after``, by ascending id.

    With ``newest_first`` these are the orders with an id below ``after``, by descending id.
    """
    filters = await _filters(store, wanted)
    return await read_page(
        store, "select_orders", _SELECT, filters, after, limit, order_of, newest_first=newest_first
    )


async def count_orders(store: Reader, wanted: OrderFilter, limit: int) -> int:
    """Return how many orders there are, at most ``limit``."""
    filters = await _filters(store, wanted)
    return await read_count(store, "count_orders", "SELECT id FROM orders", filters, None, limit)


async def _filters(store: Reader, wanted: OrderFilter) -> dict[str, Filter]:
    filters: dict[str, Filter] = {"pet_id": wanted.pet_id, "status": wanted.status}
    if wanted.placed_before is not UNSET:
        filters["placed_at"] = await _placed_before(store, wanted.placed_before)
    return filters


async def _placed_before(store: Reader, moment: datetime) -> Below:
    """Return the condition of the orders placed before a moment.

    Ids ascend with the time, as far as the clocks of the processes agree. So no page looks far
    beyond the moment.
    """
    before = milliseconds_up(moment)
    later = Statement(
        "SELECT id FROM orders WHERE placed_at >= /*sqlite*/ ?1 /*end*/"  # noqa: S608
        f" /*pg {unplanned(1)} */ ORDER BY placed_at, id LIMIT 1",
        (before + _CLOCK_SKEW,),
        name="select_later_order",
    )
    rows = await store.read(later)
    return Below(before, rows[0][0] if rows else LAST_ID)


async def get_order(store: Reader, order_id: int) -> Order:
    select = Statement(f"{_SELECT} WHERE id = ?1", (order_id,), by_id=True, name="select_order")
    return found(await store.read(select), order_of, "order", order_id)


def place_order(
    new: OrderCreate,
    now: Milliseconds,
    reservation_minutes: int,
    currency: str = "USD",
    *,
    by: Author = SERVICE,
) -> Unit[Order]:
    """Reserve an available pet, or sell it at once, and return the order.

    With 0 minutes a reservation never lapses. An amount is in the ``currency`` of the store.
    """
    take = Statement(
        f"UPDATE pets SET status = '{'sold' if new.complete else 'pending'}'"  # noqa: S608
        f" WHERE id = ?1 AND status = 'available' RETURNING {PET_COLUMNS}",
        (new.pet_id,),
        name="update_pet_status",
    )
    while not (taken := (yield take)):
        if not (yield from free_if_lapsed(new.pet_id, now)):
            yield from _refuse(new.pet_id)
    pet = pet_of(taken[0])
    lapses = reservation_minutes and not new.complete
    reserved_until = now + reservation_minutes * MINUTE if lapses else None
    order = _begun(new, now, reserved_until, currency)
    ((order_id,),) = yield Statement(
        _INSERT,
        (
            *(order.pet_id, order.status, _text(order.ship_date), now, reserved_until),
            *_personal(order),
            *(_or_null(order.amount), _or_null(order.currency)),
            *((now, pet.category_id) if new.complete else (None, None)),
        ),
        name="insert_order",
    )
    order = replace(order, id=order_id)
    kind: ResourceEventType = "order.delivered" if new.complete else "order.placed"
    yield record(now, order_event(kind, order), _moved(pet, "available"), by=by)
    return order


def _begun(
    new: OrderCreate, now: Milliseconds, reserved_until: Milliseconds | None, currency: str
) -> Order:
    placed_at = utc(now)
    # In the order of the fields: names would take as long as all the rest.
    return Order(
        0,
        new.pet_id,
        1,
        "delivered" if new.complete else "placed",
        new.complete,
        placed_at,
        new.ship_date,
        _utc(reserved_until),
        new.buyer,
        new.note,
        new.amount,
        UNSET if new.amount is UNSET else currency,
        UNSET,
        placed_at if new.complete else UNSET,
    )


def update_order(
    order_id: int,
    patch: OrderPatch,
    now: Milliseconds,
    check: Callable[[Order], None],
    currency: str = "USD",
    *,
    by: Author = SERVICE,
) -> Unit[Order]:
    """Change an order that passes ``check``, and its pet's status with it; return the order."""
    check_patch(patch)

    def changed(order: Order) -> Order:
        return patched(order, patch, utc(now), currency)

    return (yield from _change(order_id, changed, now, check, by))


def cancel_order(
    order_id: int, now: Milliseconds, check: Callable[[Order], None], *, by: Author = SERVICE
) -> Unit[None]:
    """Cancel an order that passes ``check``. Cancelling it again changes nothing."""

    def cancelled(order: Order) -> Order:
        return order if order.status == "cancelled" else moved(order, "cancelled", utc(now))

    yield from _change(order_id, cancelled, now, check, by)


def free_if_lapsed(pet_id: int, now: Milliseconds) -> Unit[bool]:
    """Free a pet if its reservation has lapsed by ``now``, and return whether it had.

    Units of work that change the pet begin with this: the lapse may not be settled yet.
    """
    rows = yield Statement(
        f"{_SELECT} WHERE pet_id = ?1 AND status = 'placed' AND reserved_until <= ?2"
        " /*pg FOR UPDATE */",
        (pet_id, now),
        name="lock_lapsed_order",
    )
    yield from _free(rows, now)
    return bool(rows)


def free_lapsed(now: Milliseconds) -> Unit[int]:
    """Free pets whose reservation has lapsed by ``now``, a batch at once; return how many.

    Processes that do so at the same time lock orders in the same order. Each order is cancelled
    once.
    """
    rows = yield Statement(
        f"{_SELECT} WHERE reserved_until <= ?1 ORDER BY reserved_until, id LIMIT ?2"
        " /*pg FOR UPDATE */",
        (now, _BATCH),
        name="lock_lapsed_orders",
    )
    yield from _free(rows, now)
    return len(rows)


def _change(
    order_id: int,
    change: Callable[[Order], Order],
    now: Milliseconds,
    check: Callable[[Order], None],
    by: Author,
) -> Unit[Order]:
    lock = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(lock, (order_id,), name="lock_order")
    stored = found(rows, order_of, "order", order_id)
    # A lapsed order counts as cancelled even before the lapse is settled.
    order = as_of(stored, utc(now))
    check(order)
    changed = change(order)
    # Equal moments may differ in their offset.
    if changed == stored and str(changed.ship_date) == str(stored.ship_date):
        return stored
    yield Statement(
        _UPDATE,
        (
            changed.status,
            _text(changed.ship_date),
            *_personal(changed),
            _or_null(changed.amount),
            _or_null(changed.currency),
            _time(changed.approved_at),
            _time(changed.delivered_at),
            _time(changed.cancelled_at),
            _or_null(changed.cancel_reason),
            order_id,
        ),
        may_wait=True,
        name="update_order",
    )
    events = [order_event(_event_type(stored, order, changed), changed, stored)]
    if changed.status in PET_AFTER and changed.status != stored.status:
        events += yield from _move_pet(changed, stored)
    # What a client has changed of an order that has lapsed is nothing but that.
    yield record(now, *events, by=SERVICE if order.status != stored.status else by)
    return changed


def _move_pet(order: Order, before: Order) -> Unit[list[NewEvent]]:
    """Give the pet of an order its status after the order; return its event, if it still exists."""
    if before.status == "delivered":
        return (yield from _take_back(order))
    rows = yield Statement(
        f"UPDATE pets SET status = ?1 WHERE id = ?2 RETURNING {PET_COLUMNS}",  # noqa: S608
        (PET_AFTER[order.status], order.pet_id),
        name="update_pet_status",
    )
    return [_moved(pet_of(row), "pending") for row in rows]


def _take_back(order: Order) -> Unit[list[NewEvent]]:
    """Make the pet of a cancelled sale available, unless somebody has done more with it since."""
    # The next statement sees every order that was placed before the lock.
    yield Statement(
        "SELECT id FROM pets WHERE id = ?1 /*pg FOR UPDATE */",
        (order.pet_id,),
        name="lock_sold_pet",
    )
    rows = yield Statement(
        "UPDATE pets SET status = 'available' WHERE id = ?1 AND status = 'sold'"  # noqa: S608
        " AND NOT EXISTS (SELECT 1 FROM orders WHERE pet_id = ?1 AND orders.id > ?2)"
        f" RETURNING {PET_COLUMNS}",
        (order.pet_id, order.id),
        name="take_pet_back",
    )
    return [_moved(pet_of(row), "sold") for row in rows]


def _event_type(stored: Order, order: Order, changed: Order) -> ResourceEventType:
    """Return what happened to a ``stored`` order, which had become ``order`` before the change."""
    if order.status != stored.status:
        return "order.lapsed"
    if changed.status == order.status:
        return "order.updated"
    return _EVENTS[changed.status]


def _free(rows: list[Row], now: Milliseconds) -> Unit[None]:
    if not rows:
        return
    ids = placeholders(len(rows))
    yield Statement(
        "UPDATE orders SET status = 'cancelled', cancelled_at = reserved_until,"  # noqa: S608
        f" reserved_until = NULL WHERE id IN {ids}",
        [row[0] for row in rows],
        name="cancel_lapsed_orders",
    )
    orders = [order_of(row) for row in rows]
    freed = yield Statement(
        f"UPDATE pets SET status = 'available' WHERE id IN {ids} RETURNING {PET_COLUMNS}",  # noqa: S608
        [order.pet_id for order in orders],
        name="release_pets",
    )
    pets = {row[0]: _moved(pet_of(row), "pending") for row in freed}
    events: list[NewEvent] = []
    for order in orders:
        events += [order_event("order.lapsed", lapsed(order), order), pets[order.pet_id]]
    yield record(now, *events)


def order_event(kind: ResourceEventType, order: Order, before: Order | None = None) -> NewEvent:
    """Return the event of an order: without its personal data, whatever changed."""
    was = None if before is None else without_personal_data(before)
    return resource_event(kind, without_personal_data(order), was)


def _moved(pet: Pet, before: PetStatus) -> NewEvent:
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


def order_of(row: Row) -> Order:
    order_id, pet_id, status, ship_date, placed_at, reserved_until, *others = row
    buyer, note, amount, currency, approved_at, delivered_at, cancelled_at, cancel_reason = others
    return Order(
        id=order_id,
        pet_id=pet_id,
        quantity=1,
        status=status,
        complete=status == "delivered",
        placed_at=utc(placed_at),
        ship_date=UNSET if ship_date is None else datetime.fromisoformat(ship_date),
        reserved_until=_utc(reserved_until),
        buyer=UNSET if buyer is None else buyer,
        note=UNSET if note is None else note,
        amount=UNSET if amount is None else amount,
        currency=UNSET if currency is None else currency,
        approved_at=_utc(approved_at),
        delivered_at=_utc(delivered_at),
        cancelled_at=_utc(cancelled_at),
        cancel_reason=UNSET if cancel_reason is None else cancel_reason,
    )


def _personal(order: Order) -> tuple[Value, Value, Value]:
    """Return the columns of the buyer and the note, with the key that buyers are found by."""
    key = None if order.buyer is UNSET else plain_key(order.buyer)
    return _or_null(order.buyer), key, _or_null(order.note)


def _or_null(value: int | str | UnsetType) -> Value:
    return None if value is UNSET else value


def _time(moment: datetime | UnsetType) -> Milliseconds | None:
    return None if moment is UNSET else milliseconds(moment)


def _utc(moment: Milliseconds | None) -> datetime | UnsetType:
    return UNSET if moment is None else utc(moment)


def _text(moment: datetime | UnsetType) -> str | None:
    return None if moment is UNSET else moment.isoformat()
