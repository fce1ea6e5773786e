"""Personal data of orders: forgotten when it is old, or when somebody asks for it."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import UNSET

from petstore.clock import DAY
from petstore.databases.contract import Statement, Store
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.orders.buyers import Forgotten, forget_buyer, forget_old_buyers
from petstore.orders.model import OrderCreate, OrderFilter, OrderPatch
from petstore.orders.store import list_orders, place_order, update_order
from petstore.pets.model import NewPet
from support.changes import NOW, create_pets
from support.history import events_after, plain
from support.manual_clock import ManualClock
from support.service import running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BY = "key/7"


async def sell(store: Store, *buyers: str, complete: bool = True, **others: Any) -> None:
    """Sell a pet to each buyer, over the counter; or place an order."""
    pets = await store.write(create_pets([NewPet("Bella", 1, "available")] * len(buyers)))
    for pet, buyer in zip(pets, buyers, strict=True):
        new = OrderCreate(pet.id, buyer=buyer, complete=complete, **others)
        await store.write(place_order(Change(NOW), new))


async def personal(store: Store) -> dict[int, tuple[object, object]]:
    """Return buyer and note of the orders that have one, or a reason."""
    page = await list_orders(store, OrderFilter(), None, 1000)
    known = (one for one in page.items if one.buyer or one.note or one.cancel_reason)
    return {one.id: (one.buyer, one.note) for one in known}


async def forget(store: Store, buyer: str, clock: ManualClock) -> Forgotten:
    return await forget_buyer(store, buyer, clock, Author(BY))


async def test_a_buyer_is_forgotten_in_closed_orders_in_any_case(
    store: Store, clock: ManualClock
) -> None:
    await sell(store, "Jane Doe", "JANE DOE", "Jäne Doe", "Jane Doe Smith", note="Hi")
    await sell(store, "Jane Doe", "Jane Doe", complete=False)
    await store.write(update_order(Change(NOW), 6, OrderPatch(status="cancelled")))
    assert await forget(store, "jane doe", clock) == (3, 1)
    kept = {3: ("Jäne Doe", "Hi"), 4: ("Jane Doe Smith", "Hi"), 5: ("Jane Doe", UNSET)}
    assert await personal(store) == kept
    await sell(store, *["Jane Doe"] * 201)
    assert await forget(store, "JANE DOE", clock) == (201, 1)
    assert await personal(store) == kept


async def test_forgetting_is_recorded_without_the_data(store: Store, clock: ManualClock) -> None:
    await sell(store, "Jane", note="Hi")
    await forget(store, "Jane", clock)
    sold, *_, event = [plain(event) for event in await events_after(store)][1:]
    assert (event["type"], event["resource"], event["previous"]) == ("order.updated", "order/1", {})
    assert event["actor"] == {"type": "key", "id": 7}
    assert event["data"] == sold["data"]
    assert not event["data"].keys() & {"buyer", "note"}


async def test_a_forgotten_buyer_is_nowhere_in_the_database(
    address: str, tmp_path: Path, clock: ManualClock
) -> None:
    sale = {"petId": 1, "buyer": "Jane Doe", "note": "Elm Street 9, " * 70, "complete": True}
    reason = {"status": "returned", "returnReason": "Jane Doe moved to Elm Street"}
    async with running_service(address, clock) as service:
        token = (await service.issue()).token
        await service.store.write(create_pets([NewPet("Bella", 1, "available")] * 2))

        async def place(order: dict[str, Any], key: str) -> httpx.Response:
            path, headers = "/v1/store/orders", {"Idempotency-Key": key}
            return await service.request("POST", path, token, json=order, headers=headers)

        placed = await place(sale, "a")
        await place({"petId": 2, "buyer": "Anna"}, "b")
        returned = await service.request("PATCH", "/v1/store/orders/1", token, json=reason)
        assert returned.status_code == 200
        assert (await place(sale, "a")).text == placed.text
        assert await forget(service.store, "Jane Doe", clock) == (1, 0)
        replay = await place(sale, "a")
        assert replay.headers["Idempotent-Replayed"] == "true"
        assert placed.json() == replay.json() | {name: sale[name] for name in ("buyer", "note")}
        tables = ("orders", "events", "idempotency_records", "webhook_deliveries")
        selects = [Statement(f"SELECT * FROM {table}") for table in tables]  # noqa: S608
        rows = [await service.store.read(select) for select in selects]
    files = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    content = b"".join((str(rows).encode(), *files))
    assert [text for text in (b"Jane", b"jane doe", b"Elm Street", b"Anna") if text in content] == [
        b"Anna"
    ]


@pytest.mark.parametrize("days", [0, 30])
async def test_old_buyers_are_forgotten_after_the_days_of_the_setting(
    store: Store, clock: ManualClock, days: int
) -> None:
    await sell(store, "Jane")
    await sell(store, "Anna", complete=False, note="Hi")
    await sell(store, "Zoe", complete=False)
    clock.now = NOW + DAY
    cancel = OrderPatch(status="cancelled", cancel_reason="Moved")
    await store.write(update_order(Change(clock()), 2, cancel))
    clock.now = NOW + 30 * DAY
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == [1, 2, 3]
    clock.now += 1
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == ([2, 3] if days else [1, 2, 3])
    clock.now += 300 * DAY
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == ([3] if days else [1, 2, 3])
