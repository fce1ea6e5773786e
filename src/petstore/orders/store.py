"""Orders in the database, and the pets of those that lapse."""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias, cast

from msgspec import UNSET
from msgspec.structs import replace

from petstore.clock import MINUTE, Clock, Milliseconds, milliseconds, milliseconds_up, utc
from petstore.databases.contract import Reader, Row, Statement, Store, Unit, found, placeholders
from petstore.databases.pages import (
    LAST_ID,
    SHORT,
    Below,
    Filter,
    Page,
    limited_subquery,
    opaque_parameter,
    read_count,
    read_page,
)
from petstore.databases.words import WordIndex
from petstore.errors import PetNotAvailable, Unavailable, UnknownPet
from petstore.events.model import SERVICE, NewEvent, ResourceEventType, resource_event
from petstore.events.store import Change, record
from petstore.orders.model import (
    ORDERS,
    PET_AFTER,
    Order,
    OrderCreate,
    OrderFilter,
    OrderPatch,
    as_of,
    check_patch,
    lapsed,
    moved,
    patched,
    without_personal_data,
)
from petstore.periodic_tasks import PeriodicTask
from petstore.pets.model import PETS, Pet, PetStatus

_SELECT = f"SELECT {ORDERS.columns} FROM orders"  # noqa: S608 - only names
# What a client gives, and what becomes of an order.
_PLACED = ("pet_id", "placed_at", "reserved_until")
_CHANGING = (
    *("status", "ship_date", "buyer", "note", "amount", "currency"),
    *("approved_at", "delivered_at", "cancelled_at", "cancel_reason"),
    *("returned_at", "return_reason", "refund"),
)
_BY_DELIVERY = (
    f"{_SELECT} WHERE delivered_at IS NOT NULL"
    f" AND delivered_at >= /*sqlite*/ ?1 /*end*/ /*pg {opaque_parameter(1)} */"
    f" AND (delivered_at, id) < (/*sqlite*/ ?2 /*end*/ /*pg {opaque_parameter(2)} */, ?3)"
    " ORDER BY delivered_at DESC, id DESC"
)
_SELECT_DELIVERED = f"{limited_subquery(_BY_DELIVERY)} LIMIT {SHORT + 1}"
_WIDTH = len(_CHANGING)
_INSERT = (
    f"INSERT INTO orders ({', '.join((*_CHANGING, *_PLACED))}, category_id)"  # noqa: S608
    f" VALUES {placeholders(_WIDTH + len(_PLACED) + 1)} RETURNING id"
)
# The category is the pet's when it is sold, whatever happens to both later.
_UPDATE = (
    f"UPDATE orders SET {', '.join(f'{name} = ?{n}' for n, name in enumerate(_CHANGING, 1))},"  # noqa: S608
    " reserved_until = CASE WHEN ?1 = 'placed' THEN reserved_until END,"
    " category_id = CASE WHEN ?1 = 'delivered' AND status = 'approved'"
    " THEN (SELECT category_id FROM pets WHERE pets.id = pet_id) ELSE category_id END"
    f" WHERE id = ?{_WIDTH + 1}"
)
_BATCH = 256
_MOST_READS = 20
Delivery: TypeAlias = tuple[Milliseconds, int]
"""The position of an order in a list by delivery: its time, and the id."""
_CLOCK_SKEW = 5 * MINUTE


async def list_orders(
    store: Reader, wanted: OrderFilter, after: int | None, limit: int, *, newest_first: bool = False
) -> Page[Order]:
    """Return ``limit`` orders with an id above ``after``; with ``newest_first``, below it."""
    filters = await _filters(store, wanted)
    return await read_page(
        store,
        "select_orders",
        _SELECT,
        filters,
        after,
        limit,
        ORDERS.read,
        newest_first=newest_first,
    )


async def list_delivered(
    store: Reader, wanted: OrderFilter, after: Delivery | None, limit: int
) -> tuple[list[Order], Delivery | None]:
    """Return the latest deliveries before ``after``, and the position if there are more."""
    since = 0 if wanted.delivered_since is UNSET else milliseconds_up(wanted.delivered_since)
    if after is None:
        before = wanted.delivered_before
        after = LAST_ID if before is UNSET else milliseconds_up(before), 0
    orders: list[Order] = []
    for _ in range(_MOST_READS):
        parameters = since, *after
        select = Statement(_SELECT_DELIVERED, parameters, name="select_delivered_orders")
        rows = await store.read(select)
        for order in map(ORDERS.read, rows):
            if wanted.admits(order):
                if len(orders) == limit:
                    return orders, after
                orders.append(order)
            assert order.delivered_at is not UNSET  # noqa: S101 - it is in the index
            after = milliseconds(order.delivered_at), order.id
        if len(rows) <= SHORT:
            return orders, None
    return orders, after


async def count_orders(store: Reader, wanted: OrderFilter, limit: int) -> int:
    filters = await _filters(store, wanted)
    return await read_count(store, "count_orders", "SELECT id FROM orders", filters, limit)


async def _filters(store: Reader, wanted: OrderFilter) -> dict[str, Filter]:
    filters: dict[str, Filter] = {"pet_id": wanted.pet_id, "status": wanted.status}
    if wanted.placed_before is not UNSET:
        # Ids ascend with the time, as far as clocks agree: so no page looks far beyond the moment.
        before = milliseconds_up(wanted.placed_before)
        later = Statement(
            "SELECT id FROM orders WHERE placed_at >= /*sqlite*/ ?1 /*end*/"  # noqa: S608
            f" /*pg {opaque_parameter(1)} */ ORDER BY placed_at, id LIMIT 1",
            (before + _CLOCK_SKEW,),
            name="select_later_order",
        )
        rows = await store.read(later)
        filters["placed_at"] = Below(before, rows[0][0] if rows else LAST_ID)
    return filters


async def get_order(store: Reader, order_id: int) -> Order:
    select = Statement(f"{_SELECT} WHERE id = ?1", (order_id,), by_id=True, name="select_order")
    return found(await store.read(select), ORDERS.read, "order", order_id)


def place_order(change: Change, new: OrderCreate) -> Unit[Order]:
    """Reserve an available pet, or sell it at once. With 0 minutes a reservation never lapses."""
    take = Statement(
        f"UPDATE pets SET status = '{'sold' if new.complete else 'pending'}'"  # noqa: S608
        f" WHERE id = ?1 AND status = 'available' RETURNING {PETS.columns}",
        (new.pet_id,),
        name="update_pet_status",
    )
    while not (taken := (yield take)):
        if not (yield from free_if_lapsed(new.pet_id, change.now)):
            yield from _refuse(new.pet_id)
    pet = PETS.read(taken[0])
    order = _begun(change, new)
    category = pet.category_id if new.complete else None
    ((order_id,),) = yield Statement(
        _INSERT, (*ORDERS.values(order, (*_CHANGING, *_PLACED)), category), name="insert_order"
    )
    order = replace(order, id=order_id)
    yield from ORDERS_BY_WORD.replace(order_id, "", _text(order))
    kind: ResourceEventType = "order.delivered" if new.complete else "order.placed"
    yield change.record(order_event(kind, order), _moved(pet, "available"))
    return order


def _begun(change: Change, new: OrderCreate) -> Order:
    placed_at, minutes = utc(change.now), change.reservation_minutes
    lapses = minutes and not new.complete
    # In the order of the fields: names would take as long as all the rest.
    return Order(
        0,
        new.pet_id,
        1,
        "delivered" if new.complete else "placed",
        new.complete,
        placed_at,
        new.ship_date,
        utc(change.now + minutes * MINUTE) if lapses else UNSET,
        new.buyer,
        new.note,
        new.amount,
        UNSET if new.amount is UNSET else change.currency,
        UNSET,
        placed_at if new.complete else UNSET,
    )


def update_order(change: Change, order_id: int, patch: OrderPatch) -> Unit[Order]:
    check_patch(patch)

    def changed(order: Order) -> Order:
        return patched(order, patch, utc(change.now), change.currency)

    return (yield from _change(change, order_id, changed))


def cancel_order(change: Change, order_id: int) -> Unit[None]:
    def cancelled(order: Order) -> Order:
        return order if order.status == "cancelled" else moved(order, "cancelled", utc(change.now))

    yield from _change(change, order_id, cancelled)


def free_if_lapsed(pet_id: int, now: Milliseconds) -> Unit[bool]:
    """Free a pet if its reservation has lapsed and that is not settled; return whether it had."""
    rows = yield Statement(
        f"{_SELECT} WHERE pet_id = ?1 AND status = 'placed' AND reserved_until <= ?2"
        " /*pg FOR UPDATE */",
        (pet_id, now),
        name="lock_lapsed_order",
    )
    yield from _free(rows, now)
    return bool(rows)


def free_lapsed(now: Milliseconds) -> Unit[int]:
    """Cancel a batch of reservations that lapsed by ``now``, and return how many."""
    rows = yield Statement(
        f"{_SELECT} WHERE reserved_until <= ?1 ORDER BY reserved_until, id LIMIT ?2"
        " /*pg FOR UPDATE */",
        (now, _BATCH),
        name="lock_lapsed_orders",
    )
    yield from _free(rows, now)
    return len(rows)


def _change(change: Change, order_id: int, changed_from: Callable[[Order], Order]) -> Unit[Order]:
    lock = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(lock, (order_id,), name="lock_order")
    stored = found(rows, ORDERS.read, "order", order_id)
    # A lapsed order counts as cancelled even before the lapse is settled.
    order = as_of(stored, utc(change.now))
    change.check(order)
    changed = changed_from(order)
    # Equal moments may differ in their offset.
    if changed == stored and str(changed.ship_date) == str(stored.ship_date):
        return stored
    yield Statement(
        _UPDATE,
        (*ORDERS.values(changed, _CHANGING), order_id),
        deferrable=True,
        name="update_order",
    )
    if _text(changed) != _text(stored):
        yield from ORDERS_BY_WORD.replace(order_id, _text(stored), _text(changed))
    events = [order_event(_event_type(stored, order, changed), changed, stored)]
    if changed.status in PET_AFTER and changed.status != stored.status:
        events += yield from _move_pet(changed)
    # What a client has changed of an order that has lapsed is nothing but that.
    yield record(change.now, *events, by=change.by if order.status == stored.status else SERVICE)
    return changed


def _move_pet(order: Order) -> Unit[list[NewEvent]]:
    """Give the pet of an order its status after the order; return its event, if it still exists."""
    if order.status == "returned":
        return (yield from _take_back(order))
    rows = yield Statement(
        f"UPDATE pets SET status = ?1 WHERE id = ?2 RETURNING {PETS.columns}",  # noqa: S608
        (PET_AFTER[order.status], order.pet_id),
        name="update_pet_status",
    )
    return [_moved(PETS.read(row), "pending") for row in rows]


def _take_back(order: Order) -> Unit[list[NewEvent]]:
    """Make the pet of a returned order available, unless it was sold once more since."""
    # The next statement sees every order that was placed before the lock.
    yield Statement(
        "SELECT id FROM pets WHERE id = ?1 /*pg FOR UPDATE */",
        (order.pet_id,),
        name="lock_sold_pet",
    )
    rows = yield Statement(
        "UPDATE pets SET status = 'available' WHERE id = ?1 AND status = 'sold'"  # noqa: S608
        " AND NOT EXISTS (SELECT 1 FROM orders"
        " WHERE pet_id = ?1 AND status = 'delivered' AND orders.id > ?2)"
        f" RETURNING {PETS.columns}",
        (order.pet_id, order.id),
        name="take_pet_back",
    )
    return [_moved(PETS.read(row), "sold") for row in rows]


def _event_type(stored: Order, order: Order, changed: Order) -> ResourceEventType:
    if order.status != stored.status:
        return "order.lapsed"
    if changed.status == order.status:
        return "order.updated"
    return cast("ResourceEventType", f"order.{changed.status}")


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
    orders = [ORDERS.read(row) for row in rows]
    freed = yield Statement(
        f"UPDATE pets SET status = 'available' WHERE id IN {ids} RETURNING {PETS.columns}",  # noqa: S608
        [order.pet_id for order in orders],
        name="release_pets",
    )
    pets = {row[0]: _moved(PETS.read(row), "pending") for row in freed}
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
        raise UnknownPet(f"petId: expected an existing pet; there is no pet {pet_id}")
    ((status,),) = rows
    if status != "available":  # otherwise it has just become available
        shown = status or "without a status"
        raise PetNotAvailable(f"pet {pet_id} is {shown}; only an available one can be ordered")


def _text(order: Order) -> str:
    return order.buyer or ""


ORDERS_BY_WORD = WordIndex("order_words", "orders", ORDERS, _text)


async def search_orders(
    store: Reader, text: str, wanted: OrderFilter, after: int | None, limit: int
) -> Page[Order]:
    admits = None if wanted == OrderFilter() else wanted.admits
    return await ORDERS_BY_WORD.search(store, text, after, limit, admits)


_LOG = logging.getLogger(__name__)
_TIMEOUT = 0.25
_NEVER: Milliseconds = 2**63


class Reservations:
    """It knows the next lapse in time: any is a minute away, and ``refresh`` runs each second."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next = _NEVER
        self._noted = _NEVER  # the earliest since the database was last read
        self._settling = asyncio.Lock()
        self.periodic_task = PeriodicTask(
            self.refresh, 1, "lapsed reservations were not released", at_start=True
        )

    def note(self, until: Milliseconds) -> None:
        self._next = min(until, self._next)
        self._noted = min(until, self._noted)

    def are_due(self) -> bool:
        return self._clock() >= self._next

    async def settle(self) -> None:
        """Release the pets that are due. If the database is slow or unreachable, do nothing."""
        try:
            # The caller gets its response in time, whatever happens here.
            async with asyncio.timeout(_TIMEOUT), self._settling:
                if self.are_due():
                    await self._free()
        except (Unavailable, TimeoutError) as error:
            # From now on only ``refresh`` tries, and no request waits for it.
            self._next = _NEVER
            reason = str(error) or "the database did not take it soon enough"
            _LOG.warning("lapsed reservations were not released: %s", reason)

    async def refresh(self) -> None:
        async with self._settling:
            try:
                await self._free()
            except Unavailable:
                self._next = _NEVER  # the next refresh tries again; no request waits for it
                raise

    async def _free(self) -> None:
        due = await self._read_next()
        while self._clock() >= due:
            await self._store.write(free_lapsed(self._clock()))
            due = await self._read_next()
        # The read may have begun before a reservation that was made during it.
        self._next = min(self._noted, due)

    async def _read_next(self) -> Milliseconds:
        select = Statement(
            "SELECT reserved_until FROM orders WHERE reserved_until IS NOT NULL"
            " ORDER BY reserved_until LIMIT 1",
            name="select_next_lapse",
        )
        self._noted = _NEVER
        rows = await self._store.read(select)
        return rows[0][0] if rows else _NEVER
