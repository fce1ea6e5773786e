"""Concurrent buyers that order random pets and record their responses."""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx

AT_ONCE = 50
_AFTER = {"approved": ("delivered", "cancelled", None), "placed": ("approved", "cancelled", None)}


class Buyers:
    """Customers of a service, which may end at any moment: then they go home.

    ``told`` has each order as it was last acknowledged; ``asked`` the status that somebody asked
    for without getting a response. At most ``AT_ONCE`` are in the shop at a time.
    """

    def __init__(self, client: httpx.AsyncClient, pet_ids: range, seed: int) -> None:
        self.told: dict[int, dict[str, Any]] = {}
        self.asked: dict[int, str] = {}
        self.responses = 0
        self.codes: set[str] = set()
        self._door = asyncio.Semaphore(AT_ONCE)
        self._client = client
        self._pet_ids = pet_ids
        self._random = Random(seed)  # noqa: S311 - what is drawn is no secret

    async def shop(self, count: int) -> None:
        """Let so many buyers in, and wait until all have gone."""
        await asyncio.gather(*(self._enter() for _ in range(count)))

    async def _enter(self) -> None:
        async with self._door:
            await self._buy()

    async def _buy(self) -> None:
        """Order a pet; approve it, have it delivered, cancel it, or leave it at any point."""
        try:
            response = await self._client.post(
                "/v1/store/orders", json={"petId": self._random.choice(self._pet_ids)}
            )
            while response.status_code in (200, 201):
                order = response.json()
                self.responses += 1
                self.told[order["id"]] = order
                wanted = self._random.choice(_AFTER.get(order["status"], (None,)))
                if wanted is None:
                    return
                response = await self._move(order, wanted)
        except httpx.TransportError:
            return
        if response.status_code != 204:
            self.codes.add(response.json()["code"])

    async def _move(self, order: dict[str, Any], status: str) -> httpx.Response:
        path = f"/v1/store/orders/{order['id']}"
        self.asked[order["id"]] = status
        if status == "cancelled" and self._random.random() < 0.5:
            response = await self._client.delete(path)
            assert response.status_code in (204, 409), response.text
            if response.status_code == 204:
                self.told[order["id"]] = order | {"status": "cancelled"}
        else:
            response = await self._client.patch(path, json={"status": status})
        del self.asked[order["id"]]
        return response


async def everything(client: httpx.AsyncClient, path: str) -> AsyncIterator[dict[str, Any]]:
    following: str | None = f"{path}{'&' if '?' in path else '?'}limit=100"
    while following is not None:
        response = await client.get(following)
        assert response.status_code == 200, response.text
        for item in response.json():
            yield item
        following = response.links.get("next", {}).get("url")


async def assert_agreement(client: httpx.AsyncClient) -> dict[int, dict[str, Any]]:
    """Check that pets, orders and inventory agree; return the orders by id.

    Every pet must have been available at first, and moved by orders alone.
    """
    orders = {order["id"]: order async for order in everything(client, "/v1/store/orders")}
    pets = [pet async for pet in everything(client, "/v1/pets")]
    for pet in pets:
        statuses = [order["status"] for order in orders.values() if order["petId"] == pet["id"]]
        holding = [status for status in statuses if status != "cancelled"]
        assert len(holding) <= 1, (pet, statuses)
        expected = {"delivered": "sold", "placed": "pending", "approved": "pending"}
        assert pet["status"] == (expected[holding[0]] if holding else "available"), (pet, statuses)
    counts = dict.fromkeys(("available", "pending", "sold"), 0)
    for pet in pets:
        counts[pet["status"]] += 1
    assert (await client.get("/v1/store/inventory")).json() == counts
    return orders


def assert_kept(buyers: Buyers, orders: dict[int, dict[str, Any]], lapsed: set[int]) -> None:
    """Check that each order is as it was last acknowledged, or as requested without a response.

    Those of ``lapsed`` may have been cancelled by nobody while they were placed.
    """
    for order_id, told in buyers.told.items():
        possible = {told["status"], buyers.asked.get(order_id)}
        if order_id in lapsed and told["status"] == "placed":
            possible.add("cancelled")
        assert orders[order_id]["status"] in possible, (told, orders[order_id])
        assert orders[order_id]["petId"] == told["petId"]
        assert orders[order_id]["placedAt"] == told["placedAt"]
