"""A reservation that lapses frees the pet on time, for every request."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.clock import MINUTE
from petstore.pets.model import NewPet
from support.changes import create_pet
from support.error_body import assert_error
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.stores import locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio

ORDERS = "/v1/store/orders"


async def with_key(service: Service) -> httpx.AsyncClient:
    """Return the client of the service with a key without limits, and add an available pet."""
    service.client.headers["Authorization"] = f"Bearer {(await service.issue()).token}"
    await service.store.write(create_pet(NewPet("Bella", 7, "available")))
    return service.client


async def place_order(client: httpx.AsyncClient) -> dict[str, Any]:
    created = await client.post(ORDERS, json={"petId": 1})
    assert created.status_code == 201, created.text
    order: dict[str, Any] = created.json()
    return order


class View(NamedTuple):
    """Something that shows whether the pet 1 is held by the order 1."""

    path: str
    held: Callable[[Any], bool]


VIEWS = [
    View(f"{ORDERS}/1", lambda order: order["status"] == "placed" and "reservedUntil" in order),
    View(ORDERS, lambda orders: orders[0]["status"] == "placed"),
    View(f"{ORDERS}?status=placed", lambda orders: len(orders) == 1),
    View(f"{ORDERS}?status=cancelled", lambda orders: orders == []),
    View(f"{ORDERS}?petId=1&status=placed", lambda orders: len(orders) == 1),
    View("/v1/store/inventory", lambda counts: counts["pending"] == 1 and not counts["available"]),
    View("/v1/pets", lambda pets: pets[0]["status"] == "pending"),
    View("/v1/pets?status=available", lambda pets: pets == []),
    View("/v1/pets?status=pending&categoryId=7", lambda pets: len(pets) == 1),
    View("/v1/pets?id=1", lambda pets: pets[0]["status"] == "pending"),
    View("/v1/pets/1", lambda pet: pet["status"] == "pending"),
]


async def is_held(client: httpx.AsyncClient, view: View) -> bool:
    response = await client.get(view.path)
    assert response.status_code == 200, response.text
    return view.held(response.json())


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.path)
async def test_every_read_sees_a_lapse_at_the_exact_millisecond(
    service: Service, clock: ManualClock, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.orders.store._TIMEOUT", 30)  # as long as a busy machine takes
    client = await with_key(service)
    await place_order(client)
    clock.now += service.settings.reservation_minutes * MINUTE - 1
    assert await is_held(client, view)
    clock.now += 1
    assert not await is_held(client, view)


async def test_a_lapsed_order_is_cancelled_whatever_its_ship_date(
    service: Service, clock: ManualClock
) -> None:
    client = await with_key(service)
    order = await place_order(client)
    clock.advance(100)
    date = "2027-01-01T00:00:00Z"
    patched = await client.patch(f"{ORDERS}/1", json={"shipDate": date})
    assert patched.json() == order | {"shipDate": date}
    clock.advance(86_300)
    ended = {"status": "cancelled", "shipDate": date, "cancelledAt": order.pop("reservedUntil")}
    assert (await client.get(f"{ORDERS}/1")).json() == order | ended
    approval = await client.patch(f"{ORDERS}/1", json={"status": "approved"})
    assert_error(approval, 409, "illegal_transition")
    assert (await client.delete(f"{ORDERS}/1")).status_code == 204


async def test_a_lapse_during_downtime_takes_effect_at_the_first_request(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock) as service:
        client = await with_key(service)
        await place_order(client)
    clock.advance(86_400)
    async with running_service(address, clock) as service:
        service.client.headers = client.headers
        assert (await service.client.get("/v1/pets?status=available")).json()


async def test_while_the_database_is_locked_reads_succeed_and_the_pet_is_freed_later(
    service: Service, database: Path, clock: ManualClock
) -> None:
    client = await with_key(service)
    await place_order(client)
    clock.advance(86_400)
    with locked(database, service.store):
        for view in VIEWS:
            assert await is_held(client, view)
        order = await client.post(ORDERS, json={"petId": 1})
        assert_error(order, 503, "service_unavailable")

    async def is_freed() -> bool:
        return not any([await is_held(client, view) for view in VIEWS])

    await eventually(is_freed)
    assert (await place_order(client))["id"] == 2
