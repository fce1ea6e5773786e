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
    fields: dict[str, Value] = dict(others)
    fields |= {"id": order_id, "pet_id": pet_id, "quantity": 1, "status": status}
    fields |= {"complete": status == "delivered", "placed_at": placed_at}
    fields["reserved_until"] = reserved_until
    assert fields.keys() <= {*Order.__struct_fields__}
    return tuple(fields.get(name) for name in Order.__struct_fields__)
