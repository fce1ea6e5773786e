"""The inventory: right at every moment, and never counted."""

from collections import Counter
from typing import Any

import pytest

from petstore.databases.contract import Statement
from petstore.pets.model import CategoryCounts, NewPet
from petstore.pets.store import get_inventory_by_category
from support.cases import case
from support.changes import create_pets
from support.sending import Send, sender
from support.service import Service
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

STATUSES = ("available", "pending", "sold")
BELLA = {"name": "Bella", "categoryId": 1}
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("POST", "/pets", BELLA | {"status": status}) for status in ("available", *STATUSES)),
    *(("POST", "/pets", BELLA) for _ in range(2)),
    # A pet moves from status to status.
    *(("PATCH", "/pets/5", {"status": status}) for status in ("available", None, "sold")),
    *(("PATCH", "/pets/5", {"status": status}) for status in ("available", "pending")),
    # An order moves it.
    ("POST", "/store/orders", {"petId": 1}),
    ("PATCH", "/store/orders/1", {"status": "approved"}),
    ("PATCH", "/store/orders/1", {"status": "cancelled"}),
    ("POST", "/store/orders", {"petId": 1}),
    *(("DELETE", "/store/orders/2", {}) for _ in range(2)),
    ("POST", "/store/orders", {"petId": 2}),
    ("PATCH", "/store/orders/3", {"status": "approved"}),
    ("PATCH", "/store/orders/3", {"status": "delivered"}),
    # Pets move from category to category: with a status, without one, and with a change of it.
    *(
        ("PATCH", f"/pets/{pet_id}", {"categoryId": category})
        for category in (2, -(2**63), 2**63 - 1, 1)
        for pet_id in (1, 4, 6)
    ),
    ("PATCH", "/pets/6", {"categoryId": 5, "status": "available"}),
    ("PATCH", "/pets/1", {"categoryId": 5, "status": None}),
    *(("DELETE", f"/pets/{pet_id}", {}) for pet_id in range(1, 7)),
)


async def check(send: Send) -> None:
    """Check that the inventory agrees with the list of pets."""
    counts: dict[str, int] = (await send("GET", "/store/inventory")).json()
    listed = (await send("GET", "/pets?limit=100")).json()
    pets = [(pet["categoryId"], pet["status"]) for pet in listed if "status" in pet]
    expected = Counter(status for _, status in pets)
    assert counts == {status: expected[status] for status in STATUSES}
    rows = (await send("GET", "/store/inventory?by=category")).json()["categories"]
    found = {(row["categoryId"], status): row[status] for row in rows for status in STATUSES}
    assert Counter(found) == Counter(pets)
    assert all(any(row[status] for status in STATUSES) for row in rows)


async def test_each_change_of_a_pet_and_of_its_order_is_counted(service: Service) -> None:
    send = await sender(service)
    await check(send)
    for method, path, body in STEPS:
        with case(method, path, body):
            response = await send(method, path, json=body)
            assert response.is_success, response.text
            await check(send)


async def test_many_changes_of_one_are_summed_up(service: Service, database_kind: str) -> None:
    store = service.store
    if database_kind == "postgresql":  # rows that cancel each other out stay until then
        for count in (1, -1):
            await store.write(do(f"INSERT INTO category_inventory VALUES (4, 0, 0, {count})"))  # noqa: S608
    await store.write(create_pets([NewPet("Bella", 1, "available")] * 1500))
    for status in ("sold", "available", "pending"):
        await store.write(do(f"UPDATE pets SET status = '{status}'"))  # noqa: S608
    found = await get_inventory_by_category(store)
    assert found.categories == [CategoryCounts(pending=1500, category_id=1)]
    ((rows,),) = await store.read(Statement("SELECT count(*) FROM category_inventory"))
    assert rows <= (1 if database_kind == "sqlite" else 2000)


@pytest.mark.parametrize("beyond", [0, 1, 3])
async def test_more_than_a_thousand_share_a_row(service: Service, beyond: int) -> None:
    store = service.store
    await store.write(create_pets(NewPet("Bella", n, "sold") for n in range(1000 + beyond)))
    for row in (0, 1):
        for status in ("available", "pending"):
            await store.write(
                create_pets(NewPet("Bella", n, status) for n in range(row * 500, row * 500 + 400))
            )
    found = await get_inventory_by_category(store)
    assert found.categories
    others = found.categories[1000:]
    assert [row.category_id for row in found.categories[:1000]] == [*range(1000)]
    assert others == ([CategoryCounts(sold=beyond)] if beyond else [])
