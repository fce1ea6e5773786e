"""A reservation that lapses frees the animal on time, for every request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.clock import MINUTE
from petstore.domain.pets import NewPet
from support.changes import create_pets
from support.error_body import assert_error
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.stores import locked
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ORDERS = "/v1/store/orders"
MANY = 300  # more than a batch


async def with_key(service: Service, pets: int = 1) -> httpx.AsyncClient:
    """Return the client of the service with a key without limits, and add available animals."""
    service.client.headers["Authorization"] = f"Bearer {(await service.issue()).token}"
    await service.store.write(create_pets([NewPet("Bella", 7, "available")] * pets))
    return service.client


async def place_order(client: httpx.AsyncClient, pet_id: int = 1) -> dict[str, Any]:
    created = await client.post(ORDERS, json={"petId": pet_id})
    assert created.status_code == 201, created.text
    order: dict[str, Any] = created.json()
    return order


@pytest.fixture
async def client(service: Service) -> httpx.AsyncClient:
    return await with_key(service)


class View(NamedTuple):
    """Something that shows whether the animal 1 is held by the order 1."""

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
async def test_every_read_sees_a_lapse_at_its_very_moment(
    service: Service, client: httpx.AsyncClient, clock: ManualClock, view: View
) -> None:
    order = await place_order(client)
    assert order["placedAt"] == "2026-12-01T12:00:00Z"
    assert order["reservedUntil"] == "2026-12-02T12:00:00Z"
    assert await is_held(client, view)
    clock.now += service.settings.reservation_minutes * MINUTE - 1
    assert await is_held(client, view)
    clock.now += 1
    assert not await is_held(client, view)


async def test_a_lapsed_order_is_a_cancelled_one(
    client: httpx.AsyncClient, clock: ManualClock
) -> None:
    order = await place_order(client)
    clock.advance(86_400)
    order = {name: value for name, value in order.items() if name != "reservedUntil"}
    assert (await client.get(f"{ORDERS}/1")).json() == order | {"status": "cancelled"}
    approval = await client.patch(f"{ORDERS}/1", json={"status": "approved"})
    assert_error(approval, 409, "illegal_transition")
    date = await client.patch(f"{ORDERS}/1", json={"shipDate": None})
    assert_error(date, 409, "order_closed")
    assert (await client.delete(f"{ORDERS}/1")).status_code == 204


async def test_another_buyer_gets_the_animal_at_that_moment_and_no_sooner(
    client: httpx.AsyncClient, clock: ManualClock
) -> None:
    await place_order(client)
    clock.now += 86_400_000 - 1
    assert_error(await client.post(ORDERS, json={"petId": 1}), 409, "pet_not_available")
    clock.now += 1
    assert (await place_order(client))["id"] == 2
    assert (await client.get(f"{ORDERS}/1")).json()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("early", "status"), [(1, 200), (0, 409)], ids=["a-millisecond-early", "on-time"]
)
async def test_an_approval_counts_before_that_moment_and_not_at_it(
    client: httpx.AsyncClient, clock: ManualClock, early: int, status: int
) -> None:
    await place_order(client)
    clock.now += 86_400_000 - early
    approval = await client.patch(f"{ORDERS}/1", json={"status": "approved"})
    assert approval.status_code == status


async def test_an_approved_order_does_not_lapse(
    client: httpx.AsyncClient, clock: ManualClock
) -> None:
    await place_order(client)
    approved = (await client.patch(f"{ORDERS}/1", json={"status": "approved"})).json()
    assert "reservedUntil" not in approved
    clock.advance(10 * 365 * 86_400)
    assert (await client.get(f"{ORDERS}/1")).json() == approved
    assert_error(await client.post(ORDERS, json={"petId": 1}), 409, "pet_not_available")


async def test_a_new_date_does_not_prolong_the_reservation(
    client: httpx.AsyncClient, clock: ManualClock
) -> None:
    order = await place_order(client)
    clock.advance(100)
    date = "2027-01-01T00:00:00Z"
    patched = await client.patch(f"{ORDERS}/1", json={"shipDate": date})
    assert patched.json() == order | {"shipDate": date}
    clock.advance(86_300)
    assert (await client.get(f"{ORDERS}/1")).json()["status"] == "cancelled"


async def test_without_minutes_a_reservation_never_lapses(address: str, clock: ManualClock) -> None:
    async with running_service(address, clock, reservation_minutes=0) as service:
        client = await with_key(service)
        order = await place_order(client)
        assert "reservedUntil" not in order
        clock.advance(1000 * 365 * 86_400)
        assert (await client.get(f"{ORDERS}/1")).json() == order


async def test_a_reservation_keeps_its_end_when_the_setting_changes(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock, reservation_minutes=1) as service:
        client = await with_key(service, 2)
        order = await place_order(client, 1)
    async with running_service(address, clock, reservation_minutes=0) as service:
        service.client.headers = client.headers
        assert (await service.client.get(f"{ORDERS}/1")).json() == order
        await place_order(service.client, 2)
        clock.advance(60)
        statuses = [found["status"] for found in (await service.client.get(ORDERS)).json()]
        assert statuses == ["cancelled", "placed"]


@pytest.mark.parametrize("view", VIEWS[:7], ids=lambda view: view.path)
async def test_a_reservation_that_lapsed_during_downtime_is_free_at_the_first_request(
    address: str, clock: ManualClock, view: View
) -> None:
    async with running_service(address, clock) as service:
        client = await with_key(service)
        await place_order(client)
        assert await is_held(client, view)
    clock.advance(86_400)
    async with running_service(address, clock) as service:
        service.client.headers = client.headers
        assert not await is_held(service.client, view)


async def test_many_lapse_at_once_before_the_first_response(
    address: str, clock: ManualClock
) -> None:
    async with running_service(
        address, clock, reservation_minutes=1, database_timeout=30
    ) as service:
        client = await with_key(service, MANY)
        await asyncio.gather(*(place_order(client, pet_id) for pet_id in range(1, MANY + 1)))
        clock.advance(60)
        counts, listed, placed = await asyncio.gather(
            client.get("/v1/store/inventory"),
            client.get(f"{ORDERS}?status=placed"),
            client.post(ORDERS, json={"petId": MANY}),
        )
        assert counts.json() in (
            {"available": MANY, "pending": 0, "sold": 0},
            {"available": MANY - 1, "pending": 1, "sold": 0},
        )
        assert [order["id"] for order in listed.json()] in ([], [MANY + 1])
        assert placed.status_code == 201


async def test_a_reservation_made_by_another_service_lapses_here(
    address: str, clock: ManualClock
) -> None:
    async with (
        running_service(address, clock) as here,
        running_service(address, clock) as there,
    ):
        client = await with_key(there)
        here.client.headers = client.headers
        await place_order(client)
        clock.advance(86_400)

        async def is_free_here() -> bool:
            return not await is_held(here.client, VIEWS[0])

        await eventually(is_free_here)
        assert (await place_order(here.client))["id"] == 2
        assert (await client.get("/v1/store/inventory")).json()["pending"] == 1


# The database does not take the change


def freed(client: httpx.AsyncClient) -> Callable[[], Awaitable[bool]]:
    async def is_freed() -> bool:
        return not any([await is_held(client, view) for view in VIEWS])

    return is_freed


async def test_reads_go_on_while_the_database_is_locked_and_the_animal_is_free_later(
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
    await eventually(freed(client))
    assert (await place_order(client))["id"] == 2


async def test_an_unsettled_reservation_does_not_block_changes_to_the_animal(
    service: Service, database: Path, clock: ManualClock
) -> None:
    client = await with_key(service, 3)
    for pet_id in (1, 2, 3):
        await place_order(client, pet_id)
    clock.advance(86_400)
    with locked(database, service.store):
        assert await is_held(client, VIEWS[0])
    assert (await place_order(client, 1))["id"] == 4
    changed = await client.patch("/v1/pets/2", json={"status": "sold"})
    assert changed.json()["status"] == "sold"
    assert (await client.delete("/v1/pets/3")).status_code == 204


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow or change in this process."""
    soft, hard = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("database")
async def test_reads_go_on_while_the_disk_is_full_and_the_animal_is_free_later(
    service: Service, clock: ManualClock
) -> None:
    client = await with_key(service)
    await place_order(client)
    clock.advance(86_400)
    with full_disk():
        for view in VIEWS:
            assert await is_held(client, view)
    await eventually(freed(client))
    assert (await place_order(client))["id"] == 2
