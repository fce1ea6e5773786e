"""Many buyers on real connections: each pet has one, whatever happens to the service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import apsw
import httpx
import pytest

from support.buyers import Buyers, assert_agreement, assert_kept
from support.exploration import DEPTH
from support.process import ServerProcess, StartServer
from support.waiting import eventually

pytestmark = pytest.mark.anyio

PETS = range(1, 101)
BUYERS = 150 * DEPTH


@asynccontextmanager
async def customers_of(server: ServerProcess, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=60, trust_env=False
    ) as client:
        yield client


def let_some_lapse(folder: Path) -> set[int]:
    """End every third reservation while the service is down; return the ids of the orders."""
    with closing(apsw.Connection(str(folder / "petstore.db"))) as connection:
        ended = connection.execute(
            "UPDATE orders SET reserved_until = placed_at"
            " WHERE reserved_until IS NOT NULL AND id % 3 = 0 RETURNING id"
        ).fetchall()
    return {int(str(order_id)) for (order_id,) in ended}


@pytest.mark.explores
async def test_hundreds_of_buyers_and_a_power_cut_leave_the_store_consistent(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--database-timeout", "30")
    token = server.issue()
    async with customers_of(server, token) as client:
        for number in PETS:
            pet = {"name": f"Pet {number}", "categoryId": 1, "status": "available"}
            assert (await client.post("/v1/pets", json=pet)).json()["id"] == number
        first = Buyers(client, PETS, seed=1)
        shopping = asyncio.create_task(first.shop(BUYERS))
        await eventually(lambda: len(first.told) > 30)
        await asyncio.to_thread(server.kill)
        await shopping
    lapsed = let_some_lapse(tmp_path)
    assert lapsed

    server = start("--database-timeout", "30")
    async with customers_of(server, token) as client:
        orders = await assert_agreement(client)
        assert_kept(first, orders, lapsed)
        assert {orders[order_id]["status"] for order_id in lapsed} == {"cancelled"}
        second = Buyers(client, PETS, seed=2)
        await second.shop(BUYERS)
        assert second.codes <= {"pet_not_available"}
        assert second.asked == {}
        orders = await assert_agreement(client)
        assert_kept(first, orders, lapsed)
        assert_kept(second, orders, set())
        assert {order["status"] for order in orders.values()} == {
            *("placed", "approved", "delivered", "cancelled")
        }
