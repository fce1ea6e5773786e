"""Orders as rows of the database."""

from petstore.databases.contract import Row, Value

_OTHERS = (
    *("buyer", "note", "amount", "currency"),
    *("approved_at", "delivered_at", "cancelled_at", "cancel_reason"),
)


def order_row(
    order_id: int,
    pet_id: int,
    status: str = "placed",
    placed_at: int = 0,
    reserved_until: int | None = None,
    **others: Value,
) -> Row:
    """Return the row of an order without a ship date; ``others`` are NULL by default."""
    assert others.keys() <= {*_OTHERS}
    first = (order_id, pet_id, status, None, placed_at, reserved_until)
    return (*first, *(others.get(name) for name in _OTHERS))
