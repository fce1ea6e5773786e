"""The inventory: right at every moment, and never counted."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import httpx
import pytest

from petstore.databases.contract import Statement
from petstore.databases.sqlite import SqliteStore
from petstore.domain.pets import NewPet
from petstore.store.api_keys import unconditional
from petstore.store.orders import free_lapsed
from petstore.store.pet_imports import ImportCallbacks, import_pets
from petstore.store.pets import delete_pet, get_inventory
from petstore.store.reservations import Reservations
from support.changes import create_pets
from support.manual_clock import ManualClock
from support.service import Service
from support.statements import statements_of

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


async def test_an_empty_store_has_none(send: Send) -> None:
    assert await inventory(send) == EMPTY


async def test_each_status_is_counted_and_an_animal_without_one_is_not(send: Send) -> None:
    expected = EMPTY.copy()
    for status in (None, "available", "available", "pending", "sold", None):
        await add(send, status)
        if status is not None:
            expected[status] += 1
        assert await inventory(send) == expected


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        *((None, status) for status in STATUSES),
        *(("available", status) for status in STATUSES),
        *(("pending", status) for status in ("pending", "available", "sold")),
        *(("sold", status) for status in ("sold", "available")),
    ],
)
async def test_a_change_is_counted(send: Send, present: str | None, wanted: str | None) -> None:
    await add(send, "available", present)
    await send("PATCH", "/pets/2", status=wanted, name="Max")
    expected = EMPTY | {"available": 1}
    if wanted is not None:
        expected[wanted] += 1
    assert await inventory(send) == expected


@pytest.mark.parametrize("status", STATUSES)
async def test_a_deleted_animal_is_not_counted(send: Send, status: str | None) -> None:
    await add(send, "sold", status)
    await send("DELETE", "/pets/2")
    assert await inventory(send) == EMPTY | {"sold": 1}


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


async def test_a_lapse_is_counted(service: Service, send: Send) -> None:
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


async def test_an_import_is_counted(service: Service, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "pets.csv"
    statuses = ["available"] * 40 + ["pending"] * 30 + ["sold"] * 20 + [""] * 5 + ["lost"]
    rows = [f"Bella,1,{status}" for status in statuses]
    file.write_text("\n".join(["name,categoryId,status", *rows]))
    done = await import_pets(
        service.store,
        file,
        "csv",
        service.clock,
        callbacks=ImportCallbacks(lambda _: None, lambda *_: None),
    )
    assert (done.added, done.refused) == (95, 1)
    assert await inventory(send) == {"available": 40, "pending": 30, "sold": 20}


async def test_many_animals_are_counted_right(service: Service, send: Send) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1, "sold")] * 3_000))
    assert (await send("GET", "/store/inventory")).json() == EMPTY | {"sold": 3_000}


# What it costs


def plan(connection: apsw.Connection, statement: Statement) -> list[str]:
    rows = connection.execute("EXPLAIN QUERY PLAN " + statement.sql, statement.parameters)
    return [str(detail) for *_, detail in rows]


def test_the_animals_are_not_looked_at(database: Path) -> None:
    SqliteStore(database).migrate()
    with closing(apsw.Connection(str(database))) as connection:
        assert plan(connection, *statements_of(get_inventory)) == ["SCAN inventory"]
        ((rows,),) = connection.execute("SELECT count(*) FROM inventory")
        assert rows == 3


@pytest.mark.parametrize(
    "statement",
    [
        *statements_of(lambda store: Reservations(store, ManualClock()).refresh()),
        *statements_of(lambda store: store.write(free_lapsed(0))),
        statements_of(
            lambda store: store.write(delete_pet(1, 0, unconditional)),
            {"lock_pet": [(1, "Bella", 1, None)]},
        )[2],
    ],
    ids=["select_next_lapse", "cancel_lapsed_orders", "select_open_order"],
)
def test_statements_about_animals_use_an_index(database: Path, statement: Statement) -> None:
    SqliteStore(database).migrate()
    with closing(apsw.Connection(str(database))) as connection:
        details = plan(connection, statement)
    assert any("USING INDEX" in detail or "COVERING INDEX" in detail for detail in details)
    assert "SCAN orders" not in details
    assert not any("TEMP B-TREE" in detail for detail in details)
