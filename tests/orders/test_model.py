"""Orders: which bodies are one, how a status may move, and what ends with an order."""

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from petstore.domain.decoding import decode_json
from petstore.errors import IllegalTransition, InvalidBody
from petstore.orders.model import (
    EXPORTED,
    Order,
    OrderCreate,
    OrderFilter,
    OrderPatch,
    OrderStatus,
    as_of,
    check_patch,
    exported,
    moved,
    patched,
    without_personal_data,
)
from support.cases import case

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ONE = NOON + timedelta(hours=1)
LATER = NOON + timedelta(days=1)
TICK = timedelta(microseconds=1)
CHRISTMAS = datetime(2026, 12, 24, 10, tzinfo=timezone(timedelta(hours=1)))
MONEY: dict[str, Any] = {"amount": 500, "currency": "EUR"}
STATUSES: tuple[OrderStatus, ...] = get_args(OrderStatus)
MOVES: set[tuple[OrderStatus, OrderStatus]] = {
    ("placed", "approved"),
    ("placed", "cancelled"),
    ("approved", "delivered"),
    ("approved", "cancelled"),
    ("delivered", "returned"),
}
OTHERS = sorted({*product(STATUSES, STATUSES)} - MOVES)


def order(status: OrderStatus = "placed", **fields: Any) -> Order:
    """Return order 3 for pet 7, which ends at noon while it is placed.

    It was approved an hour after noon, and came to a later status at the time ``LATER``.
    """
    times: dict[OrderStatus, dict[str, datetime]] = {
        "placed": {"reserved_until": NOON},
        "approved": {"approved_at": ONE},
        "delivered": {"approved_at": ONE, "delivered_at": LATER},
        "returned": {"approved_at": ONE, "delivered_at": LATER, "returned_at": LATER},
        "cancelled": {"cancelled_at": LATER},
    }
    complete = status in ("delivered", "returned")
    return Order(3, 7, 1, status, complete=complete, placed_at=NOON, **times[status] | fields)


def changed(before: Order, now: datetime = LATER, **members: Any) -> Order:
    """Return an order changed in a store whose currency is the euro."""
    return patched(before, OrderPatch(**members), now, "EUR")


ODD_DATES: tuple[Any, ...] = (
    *(5, True, [], {}, "", "tomorrow", "2026-12-24", "2026-12-24T10:00Z"),
    *("2026-12-24T10:00:00", "2026-12-24T10:00:00+01", "2026-12-24T10:00:00+24:00"),
    *("2026-12-24T24:00:00Z", "2016-12-31T23:59:60Z", "2026-02-29T00:00:00Z"),
    *("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z"),
    *(" 2026-12-24T10:00:00Z", "2026-12-24T10:00:00Z\n", "\uff12026-12-24T10:00:00Z"),
    *("2026-12-24T10:00:00.Z", "2026-12-24T10:00:00,5Z", "9999-12-31T23:59:59.9999999Z"),
)
ODD_NAMES: tuple[Any, ...] = (7, [], "", " ", "\u3000", "a\nb", "a\0", "\u202eJane", "x" * 201)
ODD_NOTES: tuple[Any, ...] = (7, [], "", "a\0", "x" * 1001)
ODD_AMOUNTS: tuple[Any, ...] = (-1, 10**12 + 1, 1.5, "1", True, [])
ODD_QUANTITIES: tuple[Any, ...] = (None, 0, -1, 2, 2**63, 1.5, "1", True, [1])
ODD_PET_IDS: tuple[Any, ...] = (None, "1", True, 1.5, 2**63, -(2**63) - 1, [])
REFUSED: dict[type, dict[str, tuple[Any, ...]]] = {
    OrderCreate: {
        "petId": ODD_PET_IDS,
        "quantity": ODD_QUANTITIES,
        "shipDate": (None, *ODD_DATES),
        "buyer": (None, *ODD_NAMES),
        "note": (None, *ODD_NOTES),
        "amount": (None, *ODD_AMOUNTS),
        "complete": (None, 0, "true"),
    },
    OrderPatch: {
        "status": (None, "", "Placed", "shipped", 1, True, ["placed"]),
        "quantity": ODD_QUANTITIES,
        "shipDate": ODD_DATES,
        "buyer": ODD_NAMES,
        "note": ODD_NOTES,
        "amount": ODD_AMOUNTS,
        "cancelReason": (None, *ODD_NAMES),
        "returnReason": (None, *ODD_NAMES),
        "refund": (None, *ODD_AMOUNTS),
    },
}
EXPECTED = {
    "petId": "a whole number from -2",
    "quantity": "1, because every pet is unique",
    "shipDate": "a date and time as in ",
    "status": "one of 'placed', 'approved', 'delivered', 'returned', 'cancelled'",
    "buyer": "1 to 200 printable characters, not only white space",
    "note": "1 to 1000 characters",
    "amount": r"an integer from 0 to 10\^12",
    "cancelReason": "1 to 200 printable characters, not only white space",
    "returnReason": "1 to 200 printable characters, not only white space",
    "refund": "an integer from 0 to the amount",
    "complete": "true or false",
}


@pytest.mark.parametrize(
    ("struct", "field"), [(struct, field) for struct, fields in REFUSED.items() for field in fields]
)
def test_an_invalid_value_is_refused_naming_the_field(struct: type, field: str) -> None:
    for value in REFUSED[struct][field]:
        body = json.dumps({"petId": 1, field: value}).encode()
        with (
            case(value),
            pytest.raises(InvalidBody, match=rf"^{field}: expected {EXPECTED[field]}"),
        ):
            decode_json(body, struct)


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        *((f'{{"petId": 7, "quantity": {n}}}', OrderCreate(7)) for n in ("1", "1.0", "1e0")),
        ('{"petId": 7}', OrderCreate(7, complete=False)),
        ('{"petId": 7, "amount": 0, "note": "a"}', OrderCreate(7, amount=0, note="a")),
        ('{"petId": 7, "amount": 1000000000000}', OrderCreate(7, amount=10**12)),
        ("{}", OrderPatch()),
        ('{"id": 9, "petId": 9, "complete": true, "currency": null}', OrderPatch()),
        ('{"shipDate": null, "refund": 0}', OrderPatch(ship_date=None, refund=0)),
        ('{"status": "shipped", "status": "approved"}', OrderPatch(status="approved")),
    ],
)
def test_a_body_means_the_fields_that_a_client_may_set(body: str, meant: Struct) -> None:
    assert decode_json(body.encode(), type(meant)) == meant


@pytest.mark.parametrize(("present", "wanted"), sorted(MOVES))
def test_an_allowed_status_change_is_accepted(present: OrderStatus, wanted: OrderStatus) -> None:
    now = ONE if wanted == "approved" else LATER
    kept = {"approved_at": ONE} if (present, wanted) == ("approved", "cancelled") else {}
    back: dict[str, Any] = {"refund": 500} if wanted == "returned" else {}
    for before, after in (
        (order(present), order(wanted, **kept)),
        (order(present, **MONEY), order(wanted, **kept, **MONEY, **back)),
    ):
        assert moved(before, wanted, now) == after
        assert changed(before, now, status=wanted) == after


@pytest.mark.parametrize(("present", "wanted"), OTHERS)
def test_any_other_status_change_is_refused_naming_the_allowed_ones(
    present: OrderStatus, wanted: OrderStatus
) -> None:
    following = {after for before, after in MOVES if before == present}
    allowed = " or ".join(status for status in STATUSES if status in following)
    message = f"status: {present} is final; it cannot become {wanted}"
    if allowed:
        message = f"status: {present} can become {allowed}, not {wanted}"
    with pytest.raises(IllegalTransition, match=f"^{message}$"):
        changed(order(present), status=wanted)


@pytest.mark.parametrize(
    ("reserved_until", "milliseconds", "is_open"),
    [(NOON, -1, True), (NOON, 0, False), (UNSET, 1, True)],
)
def test_an_order_is_cancelled_when_its_reservation_lapses(
    reserved_until: datetime | UnsetType, milliseconds: int, *, is_open: bool
) -> None:
    placed = order(reserved_until=reserved_until, ship_date=CHRISTMAS)
    now = NOON + timedelta(milliseconds=milliseconds)
    ended = order("cancelled", cancelled_at=NOON, ship_date=CHRISTMAS)
    assert as_of(placed, now) == (placed if is_open else ended)


SET: dict[str, dict[str, Any]] = {
    "buyer": {"buyer": "Jane"},
    "note": {"note": "Paid.\nTwice."},
    "amount": {"amount": 500, "currency": "EUR"},
    "ship_date": {"ship_date": CHRISTMAS},
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("field", SET)
def test_what_a_sale_leaves_can_be_changed_and_removed_at_any_time(
    status: OrderStatus, field: str
) -> None:
    given = {field: SET[field][field]}
    removed: dict[str, Any] = {field: None}
    filled = order(status, **SET[field])
    assert changed(filled) == filled
    assert changed(order(status), **given) == filled
    assert changed(filled, **removed) == order(status)


def test_an_amount_keeps_the_currency_in_which_it_was_set() -> None:
    dated = changed(order("approved"), status="delivered", ship_date=CHRISTMAS)
    assert dated == order("delivered", ship_date=CHRISTMAS)
    dollars = order(amount=5, currency="USD")
    assert changed(dollars, note="Hi") == order(amount=5, currency="USD", note="Hi")
    assert changed(dollars, amount=5) == order(amount=5, currency="USD")
    assert changed(order(), amount=5) == order(amount=5, currency="EUR")


def test_a_reason_and_a_refund_come_with_their_status_alone() -> None:
    check_patch(OrderPatch(status="cancelled", cancel_reason="Too late"))
    for right in (OrderPatch(refund=5), OrderPatch(status="returned", return_reason="Sad")):
        check_patch(right)
    message = "^cancelReason: expected only together with the status 'cancelled'$"
    for status in (UNSET, "approved", "delivered"):
        with pytest.raises(InvalidBody, match=message):
            check_patch(OrderPatch(status=status, cancel_reason="Too late"))
    for patch in (OrderPatch(refund=5), OrderPatch(return_reason="Sad")):
        with pytest.raises(InvalidBody, match=r": expected only for an order that is returned$"):
            check_patch(replace(patch, status="delivered"))
    cancelled = changed(order("approved"), status="cancelled", cancel_reason="Too late")
    assert cancelled == order("cancelled", approved_at=ONE, cancel_reason="Too late")


NOT_RETURNED = "refund: expected only for an order that is returned"


@pytest.mark.parametrize(
    ("before", "members", "message"),
    [
        (order("approved"), {"refund": 5}, NOT_RETURNED),
        (order("approved"), {"status": "delivered", "refund": 5}, NOT_RETURNED),
        (order("delivered"), {"return_reason": "Sad"}, "returnReason: expected only for an order"),
        *(
            (order("delivered", **MONEY), {"status": "returned", "refund": 5} | members, message)
            for members, message in (
                ({"refund": 501}, "refund: expected at most the amount, 500"),
                ({"amount": None}, "refund: expected none, because the order has no amount"),
            )
        ),
        *(
            (order("returned", **MONEY, refund=400), members, message)
            for members, message in (
                ({"amount": 399}, "amount: expected at least the refund, 400"),
                ({"amount": None}, "amount: expected at least the refund, 400"),
                ({"refund": 501}, "refund: expected at most the amount, 500"),
            )
        ),
    ],
)
def test_a_refund_is_part_of_the_amount_of_a_returned_order(
    before: Order, members: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidBody, match=f"^{message}"):
        changed(before, **members)


@pytest.mark.parametrize(
    ("amount", "given", "refund"),
    [
        (MONEY, {}, 500),
        (MONEY, {"refund": 0}, 0),
        (MONEY, {"refund": 500, "return_reason": "Allergic"}, 500),
        ({}, {}, UNSET),
    ],
)
def test_a_return_refunds_the_whole_amount_by_default(
    amount: dict[str, Any], given: dict[str, Any], refund: int | UnsetType
) -> None:
    sold = order("delivered", **amount)
    returned = changed(sold, status="returned", **given)
    assert returned == order("returned", **amount, **{**given, "refund": refund})
    corrected = changed(returned, return_reason="Sad")
    assert corrected == replace(returned, return_reason="Sad")


def test_what_is_recorded_of_an_order_has_no_personal_data() -> None:
    assert without_personal_data(order(buyer="Jane")) == order()
    assert without_personal_data(order(note="Hi", amount=5)) == order(amount=5)


@pytest.mark.parametrize(
    ("wanted", "status", "is_admitted"),
    [
        (OrderFilter(), "placed", True),
        (OrderFilter("placed", 7, ONE), "placed", True),
        (OrderFilter("approved"), "placed", False),
        (OrderFilter(pet_id=8), "placed", False),
        (OrderFilter(placed_before=NOON), "placed", False),
        (OrderFilter(delivered_since=NOON), "placed", False),
        (OrderFilter(delivered_before=LATER), "placed", False),
        (OrderFilter(delivered_since=LATER), "delivered", True),
        (OrderFilter(delivered_since=LATER + TICK), "delivered", False),
        (OrderFilter(delivered_before=LATER), "delivered", False),
        (OrderFilter(delivered_since=ONE, delivered_before=LATER + TICK), "returned", True),
    ],
)
def test_an_order_is_admitted_if_it_passes_all_filters(
    wanted: OrderFilter, status: OrderStatus, *, is_admitted: bool
) -> None:
    assert wanted.admits(order(status)) == is_admitted


def test_any_end_of_a_time_of_delivery_lists_by_delivery() -> None:
    assert OrderFilter(delivered_since=NOON).is_by_delivery
    assert OrderFilter(delivered_before=NOON).is_by_delivery
    assert not OrderFilter("delivered", 7, NOON).is_by_delivery


def test_a_row_of_a_file_has_the_times_of_the_shop_and_amounts_in_words() -> None:
    noon, told = "2026-12-01T12:00:00Z", "2026-12-01 13:00:00"
    amounts, others = {"amount": "5 EUR", "refund": "4 EUR"}, dict.fromkeys(("id", "status"), "x")
    texts = ("petId", "buyer", "note", "cancelReason", "returnReason")
    times = ("placedAt", "shipDate", "approvedAt", "deliveredAt", "returnedAt", "cancelledAt")
    others |= {"currency": "EUR", **dict.fromkeys(texts, "x")}
    names = {"pet": "Bella", "category": "Dogs", "soldBy": "Ada"}
    order = {**others, "amount": 5, "refund": 4, **dict.fromkeys(times, noon)}
    berlin = ZoneInfo("Europe/Berlin")
    row = exported(order, berlin, "{} {}".format, **names)
    assert row == {**others, **amounts, **names, **dict.fromkeys(times, told)}
    assert row.keys() == {*EXPORTED}
    assert exported({"id": 1}, berlin, "{} {}".format) == {"id": 1}
