"""Everything at once on PostgreSQL: nothing fails, and all fits together in the end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from itertools import chain
from typing import Any

import pytest

from petstore.categories.model import CategoryCreate, CategoryPatch
from petstore.databases.contract import Statement, Unit
from petstore.databases.postgres import PostgresStore
from petstore.errors import Conflict, PetstoreError
from petstore.events.store import Change
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.keys.model import Caller
from petstore.orders import store as orders
from petstore.orders.model import OrderCreate, OrderFilter, OrderPatch
from petstore.orders.store import Reservations
from petstore.pets import store as pets
from petstore.pets.model import NewPet, PetFilter, PetPatch
from support.changes import create_category, create_pet, delete_category, update_category
from support.keys import issue, stored_key
from support.manual_clock import ManualClock
from support.races import lingering
from support.stores import open_store

pytestmark = pytest.mark.anyio

PROCESSES = 3
CALLERS = 24
CALLS = 40
EVERYTHING = 100_000
NAMES = [f"category {number}" for number in range(6)]


class StressedKey:
    """Does anything the service does, to the few pets that everybody wants."""

    def __init__(self, number: int, store: PostgresStore, clock: ManualClock, key: Caller) -> None:
        self._chance = random.Random(number)  # noqa: S311 - to be the same each time
        self._store = store
        self._clock = clock
        self._key = key
        self._retries = SafeRetries(store, clock)
        self._reservations = Reservations(store, clock)

    async def call(self) -> list[Exception]:
        """Call many times, and return what was not an error of the caller's own."""
        faults: list[Exception] = []
        for _ in range(CALLS):
            try:
                await self._call_once()
            except PetstoreError as error:
                if error.status >= 500:
                    faults.append(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                faults.append(error)
        return faults

    async def _call_once(self) -> None:
        way = self._chance.randrange(8)
        if way == 0:
            attempt = Attempt(self._key, str(self._number(40)), b"request")
            await self._retries.once(attempt, self._kept(self._unit()))
        elif way == 1:
            self._clock.advance(5)
            await self._reservations.refresh()
        elif way == 2:
            await self._store.write(lingering(self._unit()))
        else:
            await self._store.write(self._unit())

    def _kept(self, unit: Unit[Any]) -> Unit[bytes]:
        try:
            yield from unit
        except Conflict:
            return b"conflict"
        return b"done"

    def _unit(self) -> Unit[Any]:
        ways: list[Callable[[], Unit[Any]]] = [
            self._create_pet,
            self._update_pet,
            self._update_pet,
            lambda: pets.delete_pet(Change(self._clock()), self._number(30)),
            self._place_order,
            self._place_order,
            self._update_order,
            self._update_order,
            lambda: orders.cancel_order(Change(0), self._number(60)),
            lambda: create_category(CategoryCreate(self._chance.choice(NAMES))),
            self._rename_category,
            lambda: delete_category(self._number(8)),
        ]
        return self._chance.choice(ways)()

    def _number(self, high: int) -> int:
        return self._chance.randint(1, high)

    def _create_pet(self) -> Unit[Any]:
        return create_pet(NewPet("Rex", self._number(8), "available"), strict_categories=True)

    def _update_pet(self) -> Unit[Any]:
        patches = [
            PetPatch(status="available"),
            PetPatch(status="pending"),
            PetPatch(status="sold"),
            PetPatch(category_id=self._number(8)),
            PetPatch(name=f"Rex {self._number(30)}"),
        ]
        patch = self._chance.choice(patches)
        return pets.update_pet(
            Change(self._clock(), strict_categories=True), self._number(30), patch
        )

    def _place_order(self) -> Unit[Any]:
        minutes = self._chance.randint(0, 1)
        return orders.place_order(
            Change(self._clock(), reservation_minutes=minutes), OrderCreate(self._number(30))
        )

    def _update_order(self) -> Unit[Any]:
        patches = [
            OrderPatch(status="approved"),
            OrderPatch(status="delivered"),
            OrderPatch(status="cancelled"),
        ]
        patch = self._chance.choice(patches)
        return orders.update_order(Change(0), self._number(60), patch)

    def _rename_category(self) -> Unit[Any]:
        patch = CategoryPatch(name=self._chance.choice(NAMES))
        return update_category(self._number(8), patch)


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as stack:
        opening = (open_store(postgres_url) for _ in range(PROCESSES))
        yield [await stack.enter_async_context(one) for one in opening]


async def test_concurrent_operations_never_fail_and_leave_the_store_consistent(
    stores: list[PostgresStore], clock: ManualClock
) -> None:
    store, *_ = stores
    for name in NAMES[:3]:
        await store.write(create_category(CategoryCreate(name)))
    for number in range(8):
        await store.write(create_pet(NewPet("Bella", number % 3 + 1, "available")))
    key = await stored_key(store, (await issue(store, clock)).id)
    callers = [StressedKey(n, stores[n % PROCESSES], clock, key) for n in range(CALLERS)]
    faults = await asyncio.gather(*(caller.call() for caller in callers))
    assert list(chain.from_iterable(faults)) == []

    found = (await pets.list_pets(store, PetFilter(), None, EVERYTHING)).items
    placed = (await orders.list_orders(store, OrderFilter(), None, EVERYTHING)).items
    held = Counter(order.pet_id for order in placed if order.status in ("placed", "approved"))
    assert set(held.values()) <= {1}
    status_of = {pet.id: pet.status for pet in found}
    assert {pet_id: status_of.get(pet_id) for pet_id in held} == dict.fromkeys(held, "pending")
    registered = {row[0] for row in await store.read(Statement("SELECT id FROM categories"))}
    assert {pet.category_id for pet in found} <= registered
    inventory = await pets.get_inventory(store)
    counted = Counter(pet.status for pet in found)
    for status in ("available", "pending", "sold"):
        assert getattr(inventory, status) == counted[status]
