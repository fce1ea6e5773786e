"""Place, read, move and cancel orders over HTTP, and see reservations lapse on time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.clock import MINUTE, rfc3339
from petstore.pets.model import NewPet
from support.buyers import Buyers, assert_agreement, assert_kept, everything
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.manual_clock import ManualClock
from support.sending import Send, sender
from support.service import SERVICE_URL, Service, running_service
from support.stores import locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio

ORDERS = "/store/orders"
NOW = "2026-12-01T12:00:00Z"
ORDER = {
    "id": 1,
    "petId": 1,
    "quantity": 1,
    "status": "placed",
    "complete": False,
    "placedAt": "2026-12-01T12:00:00Z",
    "reservedUntil": "2026-12-02T12:00:00Z",
}


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits, to a store with four available pets."""
    await service.store.write(create_pets([NewPet("Bella", 7, "available")] * 4))
    return await sender(service)


async def place_order(send: Send, pet_id: int = 1, **fields: Any) -> dict[str, Any]:
    created = await send("POST", ORDERS, json={"petId": pet_id, **fields})
    assert created.status_code == 201, created.text
    order: dict[str, Any] = created.json()
    return order


async def patch(send: Send, **fields: Any) -> httpx.Response:
    """Change the order 1."""
    return await send("PATCH", f"{ORDERS}/1", json=fields)


async def read(send: Send) -> dict[str, Any]:
    """Return the order 1."""
    order: dict[str, Any] = (await send("GET", f"{ORDERS}/1")).json()
    return order


async def pet_status(send: Send) -> str | None:
    """Return the status of the pet 1."""
    status: str | None = (await send("GET", "/pets/1")).json().get("status")
    return status


async def listed(send: Send, query: str = "") -> list[int]:
    response = await send("GET", f"{ORDERS}{query}")
    assert response.status_code == 200, response.text
    return [order["id"] for order in response.json()]


async def test_an_invalid_parameter_is_refused_naming_it(send: Send) -> None:
    for query in (
        *("status=available", "petId=+1", "sort=-placedAt", "status=placed&status="),
        *("cursor=AAAAAAAAAAB", "cursor=-AAAAAAAAAAE", "cursor=AAAAAAAAAAE.YQ"),
        *("sort=-id&cursor=AAAAAAAAAAE", "sort=-id&cursor=-AAAAAAAAAAE%0A"),
        *("buyer=", f"buyer={'x' * 101}", "buyer=a%00"),
        *("placedBefore=2026-12-01", "placedBefore=yesterday"),
    ):
        with case(query):
            response = await send("GET", f"{ORDERS}?{query}")
            message = assert_error(response, 400, "invalid_parameter")
            name = "cursor" if "cursor" in query else query.partition("=")[0]
            assert message.startswith(f"{name}: expected ")


@pytest.mark.each_database
async def test_an_order_reserves_a_pet_that_exists(send: Send) -> None:
    for pet_id in (0, 5, 2**63 - 1, -(2**63)):
        with case(pet_id):
            response = await send("POST", ORDERS, json={"petId": pet_id})
            message = assert_error(response, 400, "unknown_pet")
            assert message == f"petId: expected an existing pet; there is no pet {pet_id}"
    ignored = {"id": 9, "status": "delivered", "deliveredAt": 1, "placedAt": 1, "currency": 1}
    response = await send("POST", ORDERS, json={"petId": 1, **ignored})
    assert response.status_code == 201
    assert response.headers["Location"] == f"{SERVICE_URL}/v1/store/orders/1"
    assert response.json() == ORDER == await read(send)
    assert await pet_status(send) == "pending"
    assert (await send("GET", "/pets/2")).json()["status"] == "available"


@pytest.mark.each_database
async def test_a_date_keeps_its_offset_to_the_microsecond(send: Send) -> None:
    await place_order(send)
    for given, kept in {
        "2026-12-24T10:00:00Z": "2026-12-24T10:00:00Z",
        "2026-12-24t11:00:00+01:00": "2026-12-24T11:00:00+01:00",  # the same time
        "2026-12-24T10:00:00-23:59": "2026-12-24T10:00:00-23:59",
        "2026-12-24T10:00:00-00:00": "2026-12-24T10:00:00Z",
        "2026-12-24T10:00:00.1234564+05:30": "2026-12-24T10:00:00.123456+05:30",
        "0001-01-01T00:00:00+01:00": "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.999999-01:00": "9999-12-31T23:59:59.999999-01:00",
        "1970-01-01T00:00:00Z": "1970-01-01T00:00:00Z",
        "2024-02-29T23:59:59.9999999Z": "2024-03-01T00:00:00Z",
    }.items():
        with case(given):
            placed = await place_order(send, 2, shipDate=given)
            assert placed["shipDate"] == kept
            assert (await send("GET", f"{ORDERS}/{placed['id']}")).json() == placed
            assert (await send("DELETE", f"{ORDERS}/{placed['id']}")).status_code == 204
            changed = await patch(send, shipDate=given)
            assert changed.json() == ORDER | {"shipDate": kept} == await read(send)
    assert (await patch(send, shipDate=None)).json() == ORDER == await read(send)


@pytest.mark.each_database
async def test_an_order_is_approved_and_delivered_and_its_pet_sold_again(send: Send) -> None:
    await place_order(send)
    date = "2026-12-24T10:00:00Z"
    refused = await patch(send, status="delivered", shipDate=date)
    assert_error(refused, 409, "illegal_transition")
    assert await read(send) == ORDER
    order = {name: value for name, value in ORDER.items() if name != "reservedUntil"}
    order |= {"status": "approved", "approvedAt": NOW}
    assert (await patch(send, status="approved")).json() == order == await read(send)
    assert await pet_status(send) == "pending"
    order |= {"status": "delivered", "complete": True, "shipDate": date, "deliveredAt": NOW}
    assert (await patch(send, status="delivered", shipDate=date)).json() == order
    assert (await send("GET", ORDERS)).json() == [order]
    assert await pet_status(send) == "sold"
    await send("PATCH", "/pets/1", json={"status": "available"})
    assert await place_order(send) == ORDER | {"id": 2}
    assert (await read(send))["status"] == "delivered"


async def test_deleting_an_order_cancels_it_and_it_can_still_be_read(send: Send) -> None:
    order = await place_order(send, shipDate="2026-12-24T10:00:00Z")
    assert_error(await send("POST", ORDERS, json={"petId": 1}), 409, "pet_not_available")
    for _ in range(2):
        response = await send("DELETE", f"{ORDERS}/1")
        assert (response.status_code, response.content) == (204, b"")
    del order["reservedUntil"]
    assert await read(send) == order | {"status": "cancelled", "cancelledAt": NOW}
    assert await pet_status(send) == "available"
    assert (await place_order(send))["id"] == 2  # the refusal used no id


@pytest.mark.each_database
async def test_lists_are_filtered(send: Send) -> None:
    await place_order(send, buyer="Zoë")
    await patch(send, status="cancelled")
    await place_order(send, 2, buyer="zoe Doe")
    await send("PATCH", f"{ORDERS}/2", json={"status": "approved"})
    await place_order(send, 1, buyer="Ann")
    await place_order(send, 3, buyer="ZOE")
    for query, ids in {
        "": [1, 2, 3, 4],
        "?status=placed": [3, 4],
        "?status=approved": [2],
        "?status=cancelled": [1],
        "?status=delivered": [],
        "?petId=1": [1, 3],
        "?petId=1&status=placed": [3],
        "?petId=2&status=cancelled": [],
        "?petId=9223372036854775807": [],
        "?buyer=zo%C3%A9": [1, 2, 4],
        "?buyer=doe%20z": [2],
        "?buyer=zoe&petId=3": [4],
        "?petId=-1": [],
        "?limit=1": [1],
        "?sort=id": [1, 2, 3, 4],
        "?sort=-id": [4, 3, 2, 1],
        "?sort=-id&status=placed&limit=1": [4],
        "?sort=-id&petId=1": [3, 1],
        "?quantity=7&complete=true": [1, 2, 3, 4],
        "?placedBefore=2026-12-01T12:00:00Z": [],
        "?placedBefore=2026-12-01T12:00:00.0001Z&limit=1": [1],
        "?placedBefore=2026-12-01T13:00:01%2B01:00": [1, 2, 3, 4],
    }.items():
        with case(query):
            assert await listed(send, query) == ids
    for query, last in (("petId=1&limit=1", [3]), ("buyer=zo&limit=2", [4])):
        response = await send("GET", f"{ORDERS}?{query}&other=x")
        url = response.links["next"]["url"]
        assert url.startswith(f"{SERVICE_URL}/v1/store/orders?{query}&cursor=")
        rest = await send("GET", url.removeprefix(f"{SERVICE_URL}/v1"))
        assert ([order["id"] for order in rest.json()], "next" in rest.links) == (last, False)


async def test_a_sale_over_the_counter_is_delivered(send: Send) -> None:
    given: dict[str, Any] = {"complete": True, "buyer": "Jane", "note": "Paid.", "amount": 500}
    sold = await place_order(send, **given, currency="EUR")
    times = {"placedAt": NOW, "deliveredAt": NOW}
    ids = {"id": 1, "petId": 1, "quantity": 1}
    assert sold == {**ids, "status": "delivered", **given, "currency": "USD", **times}
    assert (await patch(send, currency="EUR")).json() == sold
    assert sold == await read(send)
    assert await pet_status(send) == "sold"
    assert_error(await send("DELETE", f"{ORDERS}/1"), 409, "illegal_transition")
    assert_error(await patch(send, status="cancelled"), 409, "illegal_transition")
    assert_error(await patch(send, status="returned", refund=501), 400, "invalid_body")
    corrected = (await patch(send, amount=400, buyer="Anna")).json()
    assert corrected == sold | {"amount": 400, "buyer": "Anna"}
    returned = (await patch(send, status="returned", returnReason="Allergic")).json()
    back = {"status": "returned", "returnedAt": NOW, "returnReason": "Allergic", "refund": 400}
    assert returned == corrected | back
    assert await pet_status(send) == "available"


async def with_a_pet(service: Service) -> Send:
    await service.store.write(create_pets([NewPet("Bella", 7, "available")]))
    return await sender(service)


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
    View("/store/inventory", lambda counts: counts["pending"] == 1 and not counts["available"]),
    View("/pets", lambda pets: pets[0]["status"] == "pending"),
    View("/pets?status=available", lambda pets: pets == []),
    View("/pets?status=pending&categoryId=7", lambda pets: len(pets) == 1),
    View("/pets?id=1", lambda pets: pets[0]["status"] == "pending"),
    View("/pets/1", lambda pet: pet["status"] == "pending"),
]


async def is_held(send: Send, view: View) -> bool:
    response = await send("GET", view.path)
    assert response.status_code == 200, response.text
    return view.held(response.json())


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.path)
async def test_every_read_sees_a_lapse_at_the_exact_millisecond(
    service: Service, clock: ManualClock, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.orders.store._TIMEOUT", 30)  # as long as a busy machine takes
    send = await with_a_pet(service)
    await place_order(send)
    clock.now += service.settings.reservation_minutes * MINUTE - 1
    assert await is_held(send, view)
    clock.now += 1
    assert not await is_held(send, view)


async def test_a_lapse_during_downtime_takes_effect_at_the_first_request(
    address: str, clock: ManualClock
) -> None:
    async with running_service(address, clock) as service:
        send = await with_a_pet(service)
        await place_order(send)
    clock.advance(86_400)
    async with running_service(address, clock) as service:
        send = await sender(service)
        assert (await send("GET", "/pets?status=available")).json()


async def test_while_the_database_is_locked_reads_succeed_and_the_pet_is_freed_later(
    service: Service, database: Path, clock: ManualClock
) -> None:
    send = await with_a_pet(service)
    await place_order(send)
    clock.advance(86_400)
    with locked(database, service.store):
        for view in VIEWS:
            assert await is_held(send, view)
        order = await send("POST", ORDERS, json={"petId": 1})
        assert_error(order, 503, "service_unavailable")

    async def is_freed() -> bool:
        return not any([await is_held(send, view) for view in VIEWS])

    await eventually(is_freed)
    assert (await place_order(send))["id"] == 2


# Buyers and staff at the same time: each pet has one buyer, each order one way


ROUNDS = 25


async def with_key(service: Service, pets: int) -> httpx.AsyncClient:
    """Return the client of the service, with a key without limits and so many available pets."""
    service.client.headers["Authorization"] = f"Bearer {(await service.issue()).token}"
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * pets))
    return service.client


async def outcomes(*sent: Any) -> list[tuple[int, str]]:
    """Wait for responses, and return their statuses and codes, sorted."""
    responses = await asyncio.gather(*sent)
    return sorted(
        (response.status_code, response.json().get("code", "") if response.content else "")
        for response in responses
    )


@pytest.mark.each_database
async def test_only_one_of_100_concurrent_buyers_gets_the_pet(service: Service) -> None:
    client = await with_key(service, 1)
    responses = await outcomes(
        *(client.post("/v1/store/orders", json={"petId": 1}) for _ in range(100))
    )
    assert Counter(responses) == {(201, ""): 1, (409, "pet_not_available"): 99}
    await assert_agreement(client)


@pytest.mark.each_database
@pytest.mark.parametrize("moves", [("approved", "approved"), ("delivered", "cancelled")])
async def test_of_two_moves_at_once_that_exclude_each_other_one_succeeds(
    service: Service, moves: tuple[str, str]
) -> None:
    client = await with_key(service, ROUNDS)
    for number in range(1, ROUNDS + 1):
        path = f"/v1/store/orders/{number}"
        await client.post("/v1/store/orders", json={"petId": number})
        if "delivered" in moves:
            await client.patch(path, json={"status": "approved"})
        both = [client.patch(path, json={"status": status}) for status in moves]
        assert await outcomes(*both) == [(200, ""), (409, "illegal_transition")]
        assert (await client.get(path)).json()["status"] in moves
    await assert_agreement(client)


async def settled(client: httpx.AsyncClient, clock: ManualClock) -> dict[int, dict[str, Any]]:
    """Return all orders once none that has lapsed is placed; a busy disk may hold that up."""

    async def none_is_overdue() -> bool:
        placed = everything(client, "/v1/store/orders?status=placed")
        return not [order async for order in placed if order["reservedUntil"] <= rfc3339(clock())]

    await eventually(none_is_overdue)
    return await assert_agreement(client)


@pytest.mark.each_database
async def test_a_thousand_buyers_with_lapsing_reservations_leave_the_store_consistent(
    address: str, clock: ManualClock
) -> None:
    async with running_service(
        address, clock, reservation_minutes=1, database_timeout=30
    ) as service:
        client = await with_key(service, 100)
        buyers = Buyers(client, range(1, 101), seed=3)
        shopping, seen = asyncio.create_task(buyers.shop(1000)), 0
        while not shopping.done():
            await asyncio.sleep(0)
            if buyers.responses > seen + 5:
                seen = buyers.responses
                clock.advance(5)
        await shopping
        assert buyers.codes <= {"pet_not_available", "illegal_transition"}
        orders = await settled(client, clock)
        assert set(orders) == set(buyers.told)
        lapsed = {
            order_id
            for order_id, told in buyers.told.items()
            if told.get("reservedUntil", "Z") <= rfc3339(clock())
        }
        assert lapsed
        assert_kept(buyers, orders, lapsed)
        assert {orders[order_id]["status"] for order_id in lapsed} == {"cancelled"}
        clock.advance(60)
        statuses = {order["status"] for order in (await settled(client, clock)).values()}
        assert statuses == {"approved", "delivered", "cancelled"}
