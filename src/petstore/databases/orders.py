"""Orders in SQL."""

from datetime import datetime

from msgspec import UNSET

from petstore.clock import Milliseconds, utc
from petstore.databases.contract import Row, Statement
from petstore.databases.pages import select_page
from petstore.domain.orders import NewOrder, Order, OrderFilter

_SELECT = "SELECT id, pet_id, status, ship_date, placed_at, reserved_until FROM orders"

SELECT_NEXT_LAPSE = Statement(
    "SELECT reserved_until FROM orders WHERE reserved_until IS NOT NULL"
    " ORDER BY reserved_until LIMIT 1",
    name="select_next_lapse",
)


def insert_order(
    new: NewOrder, placed_at: Milliseconds, reserved_until: Milliseconds | None
) -> Statement:
    """Return the INSERT of an order; its row is that of ``order_of``."""
    return Statement(
        "INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)"
        " VALUES (?1, 'placed', ?2, ?3, ?4)"
        " RETURNING id, pet_id, status, ship_date, placed_at, reserved_until",
        (new.petId, _text(new.shipDate), placed_at, reserved_until),
        name="insert_order",
    )


def select_order(order_id: int) -> Statement:
    """Return the SELECT of one order."""
    return Statement(f"{_SELECT} WHERE id = ?1", (order_id,), name="select_order")


def hold_order(order_id: int) -> Statement:
    """Return the SELECT of one order that nobody else changes until the unit of work ends."""
    return Statement(f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */", (order_id,), name="lock_order")


def select_orders(wanted: OrderFilter, after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` orders with an id above ``after``, by id."""
    filters = {"status": wanted.status, "pet_id": wanted.pet_id}
    return select_page("select_orders", _SELECT, filters, after, count)


def select_open_order(pet_id: int) -> Statement:
    """Return the SELECT of the order that holds an animal, if there is one."""
    return Statement(
        f"{_SELECT} WHERE pet_id = ?1 AND status IN ('placed', 'approved')",
        (pet_id,),
        name="select_open_order",
    )


def update_order(order: Order) -> Statement:
    """Return the UPDATE that makes an order what ``order`` is.

    An order that leaves the status ``placed`` is no longer held to a time.
    """
    return Statement(
        "UPDATE orders SET status = ?1, ship_date = ?2,"
        " reserved_until = CASE WHEN ?1 = 'placed' THEN reserved_until END WHERE id = ?3",
        (order.status, _text(order.shipDate), order.id),
        name="update_order",
    )


def cancel_lapsed(now: Milliseconds, count: int) -> Statement:
    """Return the UPDATE that cancels up to ``count`` orders lapsed by ``now``; rows: pet ids.

    Processes that do so at once lock orders in the same order, and each is cancelled once.
    """
    return Statement(
        "UPDATE orders SET status = 'cancelled', reserved_until = NULL"
        " WHERE reserved_until <= ?1 AND id IN"
        " (SELECT id FROM orders WHERE reserved_until <= ?1 ORDER BY reserved_until, id LIMIT ?2"
        " /*pg FOR UPDATE */) RETURNING pet_id",
        (now, count),
        name="cancel_lapsed_orders",
    )


def cancel_if_lapsed(pet_id: int, now: Milliseconds) -> Statement:
    """Return the UPDATE that cancels the order that holds an animal, if it has lapsed by ``now``.

    It gives a row if there is one.
    """
    return Statement(
        "UPDATE orders SET status = 'cancelled', reserved_until = NULL"
        " WHERE pet_id = ?1 AND status = 'placed' AND reserved_until <= ?2 RETURNING id",
        (pet_id, now),
        name="cancel_lapsed_order",
    )


def order_of(row: Row) -> Order:
    """Return the order in a row of the statements above."""
    order_id, pet_id, status, ship_date, placed_at, reserved_until = row
    return Order(
        id=order_id,
        petId=pet_id,
        quantity=1,
        status=status,
        complete=status == "delivered",
        placedAt=utc(placed_at),
        shipDate=UNSET if ship_date is None else datetime.fromisoformat(ship_date),
        reservedUntil=UNSET if reserved_until is None else utc(reserved_until),
    )


def _text(moment: object) -> str | None:
    return moment.isoformat() if isinstance(moment, datetime) else None
