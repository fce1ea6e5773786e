"""The inventory: right at every moment, and never counted."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.databases.contract import Statement
from petstore.databases.postgres import PostgresStore
from petstore.pets.model import CategoryCounts, NewPet
from petstore.pets.store import get_inventory_by_category
from support.changes import create_pets
from support.service import Service
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

EMPTY = {"available": 0, "pending": 0, "sold": 0}
STATUSES = (None, "available", "pending", "sold")

Send: TypeAlias = Callable[..., Awaitable[httpx.Response]]
"""Takes a method, a path under ``/v1`` and a body; expects a success."""


@pytest.fixture
async def send(service: Service) -> Send:
    key = await service.issue()

    async def send(method: str, path: str, **body: Any) -> httpx.Response:
        response = await service.request(method, f"/v1{path}", key.token, json=body)
        assert response.is_success, response.text
        return response

    return send


async def add(send: Send, *statuses: str | None) -> None:
    """Add pets with these statuses."""
    for status in statuses:
        wanted = {} if status is None else {"status": status}
        await send("POST", "/pets", name="Bella", categoryId=1, **wanted)


async def inventory(send: Send) -> dict[str, int]:
    """Return the inventory, which agrees with the list of pets."""
    counts: dict[str, int] = (await send("GET", "/store/inventory")).json()
    pets = (await send("GET", "/pets?limit=100")).json()
    assert Counter(counts) == Counter(pet["status"] for pet in pets if "status" in pet)
    by_category = (await send("GET", "/store/inventory?by=category")).json()
    found = {
        (row["categoryId"], status): row[status]
        for row in by_category["categories"]
        for status in EMPTY
    }
    counted = Counter((pet["categoryId"], pet["status"]) for pet in pets if "status" in pet)
    assert Counter(found) == counted
    assert all(any(row[status] for status in EMPTY) for row in by_category["categories"])
    return counts


async def test_pets_are_counted_by_status_and_those_without_one_are_left_out(send: Send) -> None:
    expected = EMPTY.copy()
    assert await inventory(send) == expected
    for status in (None, "available", "available", "pending", "sold", None):
        await add(send, status)
        if status is not None:
            expected[status] += 1
        assert await inventory(send) == expected


async def test_changes_and_deletions_are_counted(send: Send) -> None:
    await add(send, "available", None)
    for status in ("available", None, "sold", "available", "pending", "available"):
        await send("PATCH", "/pets/2", status=status, name="Max")
        expected = EMPTY | {"available": 1}
        if status is not None:
            expected[status] += 1
        assert await inventory(send) == expected
    await add(send, *STATUSES)
    for pet_id in (2, 3, 4, 5, 6):
        await send("DELETE", f"/pets/{pet_id}")
        await inventory(send)
    assert await inventory(send) == EMPTY | {"available": 1}


async def test_each_step_of_an_order_is_counted(send: Send) -> None:
    await add(send, "available", "available")
    steps: list[tuple[str, str, dict[str, Any], tuple[int, ...]]] = [
        ("POST", "/store/orders", {"petId": 1}, (1, 1, 0)),
        ("PATCH", "/store/orders/1", {"status": "approved"}, (1, 1, 0)),
        ("PATCH", "/store/orders/1", {"status": "cancelled"}, (2, 0, 0)),
        ("POST", "/store/orders", {"petId": 1}, (1, 1, 0)),
        ("DELETE", "/store/orders/2", {}, (2, 0, 0)),
        ("DELETE", "/store/orders/2", {}, (2, 0, 0)),
        ("POST", "/store/orders", {"petId": 2}, (1, 1, 0)),
        ("PATCH", "/store/orders/3", {"status": "approved"}, (1, 1, 0)),
        ("PATCH", "/store/orders/3", {"status": "delivered"}, (1, 0, 1)),
        ("DELETE", "/pets/2", {}, (1, 0, 0)),
    ]
    for method, path, body, expected in steps:
        await send(method, path, **body)
        assert tuple((await inventory(send)).values()) == expected


# By category


async def test_a_pet_counts_in_the_category_that_it_moves_to(send: Send) -> None:
    await add(send, "available", None, "sold")
    for category in (2, -(2**63), 2**63 - 1, 1):
        for pet_id in (1, 2, 3):
            await send("PATCH", f"/pets/{pet_id}", categoryId=category)
            await inventory(send)
    await send("PATCH", "/pets/2", categoryId=5, status="available")
    await send("PATCH", "/pets/1", categoryId=5, status=None)
    await inventory(send)
    for pet_id in (1, 2, 3):
        await send("DELETE", f"/pets/{pet_id}")
        await inventory(send)


async def test_many_changes_of_one_are_summed_up(service: Service, database_kind: str) -> None:
    store = service.store
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


async def test_rows_that_cancel_each_other_out_are_no_category(service: Service) -> None:
    """On PostgreSQL they stay until they are summed up."""
    if not isinstance(service.store, PostgresStore):
        return
    for count in (1, -1):
        await service.store.write(do(f"INSERT INTO category_inventory VALUES (4, 0, 0, {count})"))  # noqa: S608
    assert (await get_inventory_by_category(service.store)).categories == []
