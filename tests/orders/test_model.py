"""Orders: which bodies are one, how a status may move, and what ends with an order."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from petstore.domain.decoding import decode_json
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import IllegalTransition, InvalidBody, OrderClosed
from petstore.orders.model import (
    OPEN_STATUSES,
    PET_AFTER,
    Order,
    OrderCreate,
    OrderPatch,
    OrderStatus,
    as_of,
    moved,
    patched,
)
from support.exploration import explored
from support.strategies import json_values

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
CHRISTMAS = datetime(2026, 12, 24, 10, tzinfo=timezone(timedelta(hours=1)))
STATUSES: tuple[OrderStatus, ...] = get_args(OrderStatus)
MOVES: set[tuple[OrderStatus, OrderStatus]] = {
    ("placed", "approved"),
    ("placed", "cancelled"),
    ("approved", "delivered"),
    ("approved", "cancelled"),
}
OTHERS = sorted({*product(STATUSES, STATUSES)} - MOVES)


def order(status: OrderStatus = "placed", **fields: Any) -> Order:
    """Return order 3 for animal 7, which ends at noon while it is placed."""
    if status == "placed":
        fields = {"reserved_until": NOON} | fields
    complete = status == "delivered"
    return Order(3, 7, 1, status, complete=complete, placed_at=NOON, **fields)


# What is refused

ODD_DATES: list[Any] = [
    *(None, 5, True, [], {}, "", "tomorrow", "2026-12-24", "2026-12-24T10:00Z"),
    *("2026-12-24T10:00:00", "2026-12-24T10:00:00+01", "2026-12-24T10:00:00+24:00"),
    *("2026-12-24T24:00:00Z", "2016-12-31T23:59:60Z", "2026-02-29T00:00:00Z"),
    *("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z"),
    *(" 2026-12-24T10:00:00Z", "2026-12-24T10:00:00Z\n", "\uff12026-12-24T10:00:00Z"),
    *("2026-12-24T10:00:00.Z", "2026-12-24T10:00:00,5Z", "9999-12-31T23:59:59.9999999Z"),
]
EXPECTED = {
    "petId": "an integer from ",
    "quantity": "1, because every animal is unique",
    "shipDate": "a date and time as in ",
    "status": "one of 'placed', 'approved', 'delivered', 'cancelled'",
}
ODD_PET_IDS: tuple[Any, ...] = (None, "1", True, 1.5, INT64_MAX + 1, INT64_MIN - 1, [])
ODD_QUANTITIES: tuple[Any, ...] = (None, 0, -1, 2, 2**63, 1.5, "1", True, [1])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("petId", value) for value in ODD_PET_IDS),
        *(("quantity", value) for value in ODD_QUANTITIES),
        *(("shipDate", value) for value in ODD_DATES),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_value_of_a_new_order_is_refused_naming_the_field(
    field: str, value: Any
) -> None:
    with pytest.raises(InvalidBody, match=rf"^{field}: expected {EXPECTED[field]}"):
        decode_json(json.dumps({"petId": 1, field: value}).encode(), OrderCreate)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("status", value) for value in (None, "", "Placed", "shipped", 1, True, ["placed"])),
        *(("quantity", value) for value in ODD_QUANTITIES),
        *(("shipDate", value) for value in ODD_DATES if value is not None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_value_of_a_change_is_refused_naming_the_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidBody, match=rf"^{field}: expected {EXPECTED[field]}"):
        decode_json(json.dumps({field: value}).encode(), OrderPatch)


def test_an_order_needs_an_animal() -> None:
    with pytest.raises(InvalidBody, match=r"^petId: required; expected an integer"):
        decode_json(b"{}", OrderCreate)


@pytest.mark.parametrize("body", [b"null", b"[]", b'"placed"', b"7", b"", b" "])
@pytest.mark.parametrize("struct", [OrderCreate, OrderPatch])
def test_only_an_object_is_accepted(body: bytes, struct: type) -> None:
    with pytest.raises(InvalidBody, match=r"^the body: expected a JSON object"):
        decode_json(body, struct)


# What is taken


@pytest.mark.parametrize("quantity", ["1", "1.0", "1e0", "10e-1"])
def test_a_quantity_of_one_is_accepted_in_any_notation(quantity: str) -> None:
    body = f'{{"petId": 7, "quantity": {quantity}}}'
    assert decode_json(body.encode(), OrderCreate) == OrderCreate(7)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-24T10:00:00+01:00", CHRISTMAS),
        ("2026-12-24T10:00:00Z", datetime(2026, 12, 24, 10, tzinfo=UTC)),
        ("2026-12-24t10:00:00z", datetime(2026, 12, 24, 10, tzinfo=UTC)),
        ("2026-12-24T10:00:00-00:00", datetime(2026, 12, 24, 10, tzinfo=UTC)),
        ("2026-12-24T10:00:00.5Z", datetime(2026, 12, 24, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-12-24T10:00:00.1234564Z", datetime(2026, 12, 24, 10, 0, 0, 123_456, tzinfo=UTC)),
        ("2026-12-24T23:59:59.9999999Z", datetime(2026, 12, 25, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_ship_date_is_a_time_with_an_offset(text: str, moment: datetime) -> None:
    taken = decode_json(json.dumps({"petId": 7, "shipDate": text}).encode(), OrderCreate).ship_date
    assert isinstance(taken, datetime)
    assert (taken, taken.utcoffset()) == (moment, moment.utcoffset())


@pytest.mark.parametrize(
    ("body", "patch"),
    [
        (b"{}", OrderPatch()),
        (b'{"id": 9, "petId": 9, "complete": true, "note": null}', OrderPatch()),
        (b'{"shipDate": null}', OrderPatch(ship_date=None)),
        (b'{"status": "shipped", "status": "approved"}', OrderPatch(status="approved")),
    ],
)
def test_an_absent_and_a_null_date_differ(body: bytes, patch: OrderPatch) -> None:
    assert decode_json(body, OrderPatch) == patch


@explored(50)
@given(st.dictionaries(st.sampled_from(["petId", "quantity", "shipDate", "x"]), json_values))
def test_every_accepted_order_is_valid(value: dict[str, Any]) -> None:
    try:
        new = decode_json(json.dumps(value).encode(), OrderCreate)
    except InvalidBody:
        return
    assert INT64_MIN <= new.pet_id == value["petId"] <= INT64_MAX
    assert new.quantity == 1


# How an order moves


@pytest.mark.parametrize(("present", "wanted"), sorted(MOVES))
def test_an_allowed_status_change_is_accepted(present: OrderStatus, wanted: OrderStatus) -> None:
    assert moved(order(present), wanted) == order(wanted)
    assert patched(order(present), OrderPatch(status=wanted)) == order(wanted)


@pytest.mark.parametrize(("present", "wanted"), OTHERS)
def test_any_other_status_change_is_refused(present: OrderStatus, wanted: OrderStatus) -> None:
    message = rf"^status: {present} can become .*, not {wanted}$"
    with pytest.raises(IllegalTransition, match=message):
        patched(order(present), OrderPatch(status=wanted))


@pytest.mark.parametrize(
    ("present", "wanted", "message"),
    [
        ("placed", "delivered", "status: placed can become approved or cancelled, not delivered"),
        ("approved", "placed", "status: approved can become delivered or cancelled, not placed"),
        ("delivered", "cancelled", "status: delivered can become nothing else, not cancelled"),
    ],
)
def test_a_refused_status_change_names_the_allowed_ones(
    present: OrderStatus, wanted: OrderStatus, message: str
) -> None:
    with pytest.raises(IllegalTransition, match=f"^{re.escape(message)}$"):
        moved(order(present), wanted)


def test_only_a_final_status_changes_the_animal() -> None:
    ends = {status for status in STATUSES if status not in {present for present, _ in MOVES}}
    assert PET_AFTER.keys() == ends == {*STATUSES} - {*OPEN_STATUSES}
    assert PET_AFTER == {"delivered": "sold", "cancelled": "available"}


@pytest.mark.parametrize(
    ("reserved_until", "milliseconds", "is_open"),
    [(NOON, -1, True), (NOON, 0, False), (UNSET, 1, True)],
)
def test_an_order_is_cancelled_when_its_reservation_lapses(
    reserved_until: datetime | UnsetType, milliseconds: int, *, is_open: bool
) -> None:
    placed = order(reserved_until=reserved_until)
    now = NOON + timedelta(milliseconds=milliseconds)
    assert as_of(placed, now) == (placed if is_open else order("cancelled"))


# How an order changes otherwise


@pytest.mark.parametrize("status", STATUSES)
def test_an_empty_patch_changes_nothing(status: OrderStatus) -> None:
    assert patched(order(status), OrderPatch()) == order(status)


@pytest.mark.parametrize("status", ["placed", "approved"])
def test_the_date_of_an_open_order_can_be_changed_and_removed(status: OrderStatus) -> None:
    dated = order(status, ship_date=CHRISTMAS)
    assert patched(order(status), OrderPatch(ship_date=CHRISTMAS)) == dated
    assert patched(dated, OrderPatch(ship_date=NOON)).ship_date == NOON
    assert patched(dated, OrderPatch(ship_date=None)).ship_date is UNSET


@pytest.mark.parametrize("status", ["delivered", "cancelled"])
@pytest.mark.parametrize("date", [None, CHRISTMAS, NOON])
def test_the_date_of_a_closed_order_cannot_change(
    status: OrderStatus, date: datetime | None
) -> None:
    message = f"^order 3 is {status}: its shipDate can no longer change$"
    with pytest.raises(OrderClosed, match=message):
        patched(order(status, ship_date=CHRISTMAS), OrderPatch(ship_date=date))


def test_a_date_can_be_set_with_the_final_status_change() -> None:
    patch = OrderPatch(status="delivered", ship_date=CHRISTMAS)
    assert patched(order("approved"), patch) == order("delivered", ship_date=CHRISTMAS)
