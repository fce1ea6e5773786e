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


async def test_only_one_of_100_concurrent_buyers_gets_the_pet(service: Service) -> None:
    client = await with_key(service, 1)
    responses = await outcomes(
        *(client.post("/v1/store/orders", json={"petId": 1}) for _ in range(100))
    )
    assert Counter(responses) == {(201, ""): 1, (409, "pet_not_available"): 99}
    await assert_agreement(client)


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
