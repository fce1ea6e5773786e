"""Orders as rows of the database."""

from petstore.databases.contract import Row, Value
from petstore.orders.model import Order


def order_row(
    order_id: int,
    pet_id: int,
    status: str = "placed",
    placed_at: int = 0,
    reserved_until: int | None = None,
    **others: Value,
) -> Row:
    """Return the row of an order; ``others`` are NULL by default."""
    row: dict[str, Value] = {
        "id": order_id,
        "pet_id": pet_id,
        "quantity": 1,
        "status": status,
        "complete": status == "delivered",
        "placed_at": placed_at,
        "reserved_until": reserved_until,
        **others,
    }
    assert row.keys() <= {*Order.__struct_fields__}
    return tuple(row.get(name) for name in Order.__struct_fields__)
