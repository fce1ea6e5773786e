"""Buyers and staff at the same time: each pet has one buyer, each order one way."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from petstore.clock import rfc3339
from petstore.pets.model import NewPet
from support.buyers import Buyers, assert_agreement, assert_kept, everything
from support.changes import create_pets
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

in_turn = pytest.mark.usefixtures("database")
"""For SQLite only: it handles concurrent requests in the order of their arrival."""

ROUNDS = 25


@pytest.fixture
async def client(service: Service) -> httpx.AsyncClient:
    """The client of the service, with a key without limits."""
    return await with_key(service)


async def with_key(service: Service) -> httpx.AsyncClient:
    """Return the client of the service, with a key without limits."""
    service.client.headers["Authorization"] = f"Bearer {(await service.issue()).token}"
    return service.client


async def stock(service: Service, count: int) -> None:
    """Add so many available pets."""
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * count))


async def outcomes(*sent: Any) -> list[tuple[int, str]]:
    """Wait for responses, and return their statuses and codes, sorted."""
    responses = await asyncio.gather(*sent)
    return sorted(
        (response.status_code, response.json().get("code", "") if response.content else "")
        for response in responses
    )


async def test_only_one_of_100_concurrent_buyers_gets_the_pet(
    service: Service, client: httpx.AsyncClient
) -> None:
    await stock(service, 1)
    responses = await outcomes(
        *(client.post("/v1/store/orders", json={"petId": 1}) for _ in range(100))
    )
    assert Counter(responses) == {(201, ""): 1, (409, "pet_not_available"): 99}
    (order,) = (await client.get("/v1/store/orders")).json()
    assert (order["petId"], order["status"]) == (1, "placed")
    (pet,) = (await client.get("/v1/pets")).json()
    assert pet["status"] == "pending"


async def place_many(service: Service, client: httpx.AsyncClient) -> None:
    """Place the orders 1 to ``ROUNDS``, each for the pet of the same number."""
    await stock(service, ROUNDS)
    for number in range(1, ROUNDS + 1):
        created = await client.post("/v1/store/orders", json={"petId": number})
        assert created.json()["id"] == number


async def test_one_of_two_approvals_succeeds(service: Service, client: httpx.AsyncClient) -> None:
    await place_many(service, client)
    for number in range(1, ROUNDS + 1):
        path, approve = f"/v1/store/orders/{number}", {"status": "approved"}
        both = (client.patch(path, json=approve) for _ in range(2))
        assert await outcomes(*both) == [(200, ""), (409, "illegal_transition")]
    await assert_agreement(client)


@in_turn
@pytest.mark.parametrize("other", ["delivered", "approved"])
async def test_of_a_cancellation_and_another_change_the_first_one_decides(
    service: Service, client: httpx.AsyncClient, other: str
) -> None:
    """A cancellation may follow an approval, and nothing may follow it."""
    await place_many(service, client)
    for number in range(1, ROUNDS + 1):
        path, is_cancelled_first = f"/v1/store/orders/{number}", bool(number % 2)
        if other == "delivered":
            await client.patch(path, json={"status": "approved"})
        moves = [client.patch(path, json={"status": each}) for each in (other, "cancelled")]
        if is_cancelled_first:
            moves.reverse()
        refused = (409, "illegal_transition")
        first_alone = is_cancelled_first or other == "delivered"
        assert await outcomes(*moves) == [(200, ""), refused if first_alone else (200, "")]
        status = (await client.get(path)).json()["status"]
        assert status == (other if other == "delivered" and not is_cancelled_first else "cancelled")
    await assert_agreement(client)


@in_turn
async def test_either_the_order_or_the_deletion_of_the_pet_succeeds(
    service: Service, client: httpx.AsyncClient
) -> None:
    await stock(service, ROUNDS)
    for number in range(1, ROUNDS + 1):
        moves = [
            client.post("/v1/store/orders", json={"petId": number}),
            client.delete(f"/v1/pets/{number}"),
        ]
        if number % 2:
            moves.reverse()
            assert await outcomes(*moves) == [(204, ""), (400, "unknown_pet")]
        else:
            assert await outcomes(*moves) == [(201, ""), (409, "pet_reserved")]
    await assert_agreement(client)


async def shop_while_time_passes(buyers: Buyers, count: int, clock: ManualClock) -> None:
    """Let buyers in, and reservations of a minute lapse now and then while they are about."""
    shopping = asyncio.create_task(buyers.shop(count))
    seen = 0
    while not shopping.done():
        await asyncio.sleep(0)
        if buyers.responses > seen + 5:
            seen = buyers.responses
            clock.advance(5)
    await shopping


async def settled(client: httpx.AsyncClient, clock: ManualClock) -> dict[int, dict[str, Any]]:
    """Return all orders once none that has lapsed is placed; a busy disk may hold that up."""

    async def none_is_overdue() -> bool:
        overdue = [
            order
            async for order in everything(client, "/v1/store/orders?status=placed")
            if order["reservedUntil"] <= rfc3339(clock())
        ]
        return not overdue

    await eventually(none_is_overdue)
    return await assert_agreement(client)


async def test_a_thousand_buyers_with_lapsing_reservations_leave_the_store_consistent(
    address: str, clock: ManualClock
) -> None:
    async with running_service(
        address, clock, reservation_minutes=1, database_timeout=30
    ) as service:
        client = await with_key(service)
        await stock(service, 100)
        buyers = Buyers(client, range(1, 101), seed=3)
        await shop_while_time_passes(buyers, 1000, clock)
        assert buyers.codes <= {"pet_not_available", "illegal_transition"}
        orders = await settled(client, clock)
        assert set(orders) == set(buyers.told)
        lapsed = {
            order_id
            for order_id, told in buyers.told.items()
            if "reservedUntil" in told and told["reservedUntil"] <= rfc3339(clock())
        }
        assert lapsed
        assert_kept(buyers, orders, lapsed)
        assert {orders[order_id]["status"] for order_id in lapsed} == {"cancelled"}
        clock.advance(60)
        orders = await settled(client, clock)
        assert {order["status"] for order in orders.values()} == {
            *("approved", "delivered", "cancelled")
        }
