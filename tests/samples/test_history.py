"""The history of the demo store: what every page of the console shows of it."""

import csv
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from petstore.categories.model import CategoryCreate
from petstore.categories.store import create_category
from petstore.clock import DAY, HOUR, MINUTE
from petstore.databases.contract import Statement
from petstore.events.store import Change, publish_all
from petstore.people.accounts import find_account
from petstore.people.store import list_people
from petstore.pets.model import NewPet
from petstore.pets.store import create_pet, delete_pet
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings, is_postgres
from support.manual_clock import ManualClock
from support.people import add, alter
from support.stores import open_store

COUNTS = "SELECT status, count(*) FROM orders GROUP BY status"
ORDERS = {"placed": 7, "approved": 11, "delivered": 120, "cancelled": 15}

pytestmark = pytest.mark.anyio


async def rows(store: Any, sql: str) -> list[Any]:
    found: list[Any] = await store.read(Statement(sql, name="test"))
    return found


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def demo(address: str, clock: ManualClock, **settings: Any) -> AsyncIterator[Any]:
    """A demo store, whose events can all be read."""
    async with open_store(address) as store:
        await prepare_demo(store, Settings(database=address, **settings), clock)
        if is_postgres(address):
            await publish_all(store)
        yield store


@pytest.mark.each_database
async def test_animals_have_the_status_of_the_sample_file(address: str, clock: ManualClock) -> None:
    text = (files("petstore.samples") / "animals.csv").read_text("utf-8")
    sample = [
        (row["name"], int(row["categoryId"]), row["status"] or None)
        for row in csv.DictReader(text.splitlines())
    ]
    async with demo(address, clock) as store:
        assert sample == await rows(store, "SELECT name, category_id, status FROM pets ORDER BY id")


@pytest.mark.each_database
async def test_the_demo_has_orders_in_every_state(address: str, clock: ManualClock) -> None:
    async with demo(address, clock) as store:
        assert dict(await rows(store, COUNTS)) == ORDERS
        events = dict(await rows(store, "SELECT type, count(*) FROM events GROUP BY type"))
        ends = "SELECT count(cancel_reason) FROM orders WHERE status = 'cancelled'"
        counter = "SELECT count(*) FROM orders WHERE delivered_at = placed_at"
        assert await rows(store, ends) == [(9,)]
        assert 50 <= (await rows(store, counter))[0][0] <= 80
    assert (events["order.cancelled"], events["order.lapsed"]) == (9, 6)


@pytest.mark.each_database
async def test_events_are_in_the_order_of_their_times(address: str, clock: ManualClock) -> None:
    async with demo(address, clock) as store:
        times = [at for (at,) in await rows(store, "SELECT at FROM events ORDER BY sequence")]
    assert times[0] == clock.now - 60 * DAY
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert times[-1] <= clock.now


@pytest.mark.parametrize("weekday", range(7))
async def test_a_demo_of_any_weekday_has_the_same_numbers(
    address: str, clock: ManualClock, weekday: int
) -> None:
    clock.now += weekday * DAY
    async with demo(address, clock) as store:
        assert dict(await rows(store, COUNTS)) == ORDERS
        sold = [
            at
            for (at,) in await rows(
                store, "SELECT delivered_at FROM orders WHERE status = 'delivered'"
            )
        ]
        came = dict(await rows(store, "SELECT resource, at FROM events WHERE type = 'pet.created'"))
        placed = await rows(store, "SELECT pet_id, placed_at FROM orders")
        enabled = await rows(store, "SELECT enabled, disabled_reason FROM webhooks")
    assert sum(at > clock.now - 9 * HOUR for at in sold) >= 3
    weeks = Counter((clock.now - at) // (7 * DAY) for at in sold)
    assert min(weeks[week] for week in range(7)) >= 7
    assert all(came[f"pet/{pet_id}"] < at for pet_id, at in placed)
    assert enabled == [(0, "failing")]


async def test_two_demos_of_one_moment_are_alike(tmp_path: Path, clock: ManualClock) -> None:
    found = []
    for name in ("one", "two"):
        async with demo(f"sqlite:///{tmp_path / name}.db", clock) as store:
            found.append(await rows(store, "SELECT * FROM orders ORDER BY id"))
    assert found[0] == found[1]


@pytest.mark.each_database
async def test_a_pending_animal_has_its_open_order(address: str, clock: ManualClock) -> None:
    open_orders = "SELECT pet_id FROM orders WHERE status IN ('placed', 'approved') ORDER BY pet_id"
    async with demo(address, clock) as store:
        pending = await rows(store, "SELECT id FROM pets WHERE status = 'pending' ORDER BY id")
        assert pending == await rows(store, open_orders)
        sold = "SELECT count(*) FROM pets WHERE status = 'sold'"
        assert await rows(store, sold) == [(ORDERS["delivered"] + 12,)]


async def test_one_reservation_ends_soon_and_one_order_waits_for_days(
    address: str, clock: ManualClock
) -> None:
    async with demo(address, clock) as store:
        ((ends,),) = await rows(store, "SELECT min(reserved_until) FROM orders")
        ((waits,),) = await rows(
            store, "SELECT min(placed_at) FROM orders WHERE status = 'approved'"
        )
    assert 0 < ends - clock.now < 2 * HOUR
    assert clock.now - waits > 7 * DAY


@pytest.mark.parametrize("minutes", [0, 10, 7 * 1440])
async def test_placed_orders_keep_to_the_reservation_time(
    address: str, clock: ManualClock, minutes: int
) -> None:
    async with demo(address, clock, reservation_minutes=minutes) as store:
        placed = await rows(
            store, "SELECT placed_at, reserved_until FROM orders WHERE status = 'placed'"
        )
    assert len(placed) == ORDERS["placed"]
    for at, until in placed:
        assert until == (at + minutes * MINUTE if minutes else None)
        assert until is None or until > clock.now


async def test_amounts_are_in_the_currency_of_the_store(address: str, clock: ManualClock) -> None:
    async with demo(address, clock, currency="JPY") as store:
        amounts = await rows(store, "SELECT currency, amount FROM orders WHERE amount IS NOT NULL")
    assert {currency for currency, _ in amounts} == {"JPY"}
    assert all(amount % 500 == 0 and 1000 <= amount <= 100_000 for _, amount in amounts)


@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_changes_are_those_of_people_and_the_key(
    address: str, clock: ManualClock, environment: Any
) -> None:
    async with demo(address, clock, environment=environment) as store:
        people = (await list_people(store, environment, None, 10)).items
        actors = {actor for (actor,) in await rows(store, "SELECT actor FROM events")}
    staff = {f"person/{person.id}" for person in people if person.role in ("manager", "clerk")}
    assert len(staff) == 2
    assert actors == {*staff, "key/1", "service", "operator"}


async def test_nobody_can_be_the_staff_of_the_demo(address: str, clock: ManualClock) -> None:
    async with demo(address, clock) as store:
        for login in ("amina@petstore.example", "jonas@petstore.example"):
            account = await find_account(store, login, "production")
            assert account is not None
            assert account.password is None
            links = "SELECT expires_at FROM console_links WHERE key_id = {}"
            ((ends,),) = await rows(store, links.format(account.caller.id))
            assert ends < clock.now
            await alter(store, clock, account.caller.id, state="disabled")


async def test_the_next_start_adds_nothing(address: str, clock: ManualClock) -> None:
    counts = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM callers)"
    async with demo(address, clock) as store:
        before = await rows(store, counts)
        clock.advance(3600)
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, counts) == before


async def test_a_store_in_which_something_has_happened_is_not_filled(
    address: str, clock: ManualClock
) -> None:
    async with open_store(address) as store:
        pet = await store.write(create_pet(Change(clock()), NewPet("Rex", 1)))
        await store.write(delete_pet(Change(clock()), pet.id))
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, "SELECT id FROM pets") == []


async def test_a_store_with_categories_of_its_own_is_not_filled(
    address: str, clock: ManualClock
) -> None:
    async with open_store(address) as store:
        await store.write(create_category(Change(clock()), CategoryCreate("Yaks")))
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, "SELECT name FROM categories") == [("Yaks",)]


async def test_a_store_whose_people_have_a_login_of_the_demo_is_not_filled(
    address: str, clock: ManualClock
) -> None:
    async with open_store(address) as store:
        await add(store, clock, login="jonas@petstore.example")
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, "SELECT id FROM pets") == []
        assert await rows(store, "SELECT id FROM webhooks") == []


async def test_people_work_while_the_store_is_open(address: str, clock: ManualClock) -> None:
    async with demo(address, clock) as store:
        times = await rows(store, "SELECT at FROM events WHERE actor LIKE 'person/%'")
    assert all((clock.now - at) % DAY <= 9 * HOUR for (at,) in times)
