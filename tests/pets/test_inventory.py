"""The inventory: right at every moment, and never counted."""

from collections import Counter
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.pets.files import open_import_file
from petstore.pets.imports import ImportRun, import_pets
from support.service import Service

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
    """Add animals with these statuses."""
    for status in statuses:
        wanted = {} if status is None else {"status": status}
        await send("POST", "/pets", name="Bella", categoryId=1, **wanted)


async def inventory(send: Send) -> dict[str, int]:
    """Return the inventory, which agrees with the list of animals."""
    counts: dict[str, int] = (await send("GET", "/store/inventory")).json()
    pets = (await send("GET", "/pets?limit=100")).json()
    assert Counter(counts) == Counter(pet["status"] for pet in pets if "status" in pet)
    return counts


async def test_animals_are_counted_by_status_and_those_without_one_are_left_out(send: Send) -> None:
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


async def test_a_lapsed_reservation_is_counted(service: Service, send: Send) -> None:
    await add(send, "available")
    await send("POST", "/store/orders", petId=1)
    service.clock.advance(86_400)
    assert await inventory(send) == EMPTY | {"available": 1}


async def test_a_refused_change_is_not_counted(service: Service, send: Send) -> None:
    await add(send, "sold")
    key = await service.issue()
    for method, path, body in [
        ("PATCH", "/v1/pets/1", {"status": "pending"}),
        ("POST", "/v1/store/orders", {"petId": 1}),
        ("POST", "/v1/pets", {"name": "", "categoryId": 1, "status": "sold"}),
    ]:
        assert (await service.request(method, path, key.token, json=body)).is_client_error
    assert await inventory(send) == EMPTY | {"sold": 1}


async def test_an_import_is_counted(service: Service, send: Send) -> None:
    statuses = ["available"] * 40 + ["pending"] * 30 + ["sold"] * 20 + [""] * 5 + ["lost"]
    rows = [f"Bella,1,{status}" for status in statuses]
    content = "\n".join(["name,categoryId,status", *rows]).encode()
    run = ImportRun(open_import_file(BytesIO(content)))
    await import_pets(service.store, run, service.clock)
    assert (run.added, run.refused) == (95, 1)
    assert await inventory(send) == {"available": 40, "pending": 30, "sold": 20}
