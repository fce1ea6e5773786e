"""What every page of the console shows of the demo store: history and usage."""

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
from petstore.clock import DAY, HOUR, MINUTE
from petstore.databases.contract import Statement
from petstore.events.store import publish_all
from petstore.keys.model import Caller
from petstore.people.store import list_people
from petstore.pets.model import NewPet
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings, is_postgres
from support.changes import create_category, create_pet
from support.manual_clock import ManualClock
from support.people import add
from support.stores import do, open_store

COUNTS = "SELECT status, count(*) FROM orders GROUP BY status"
ORDERS = {"placed": 7, "approved": 11, "delivered": 120, "cancelled": 15}
ADMINISTRATOR = 2
OWNER = Caller("demo", id=ADMINISTRATOR, environment="production", created_at=0)

pytestmark = pytest.mark.anyio


async def rows(store: Any, sql: str) -> list[Any]:
    found: list[Any] = await store.read(Statement(sql, name="test"))
    return found


async def column(store: Any, sql: str) -> list[Any]:
    return [value for (value,) in await rows(store, sql)]


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


async def test_pets_are_of_their_kind_and_whoever_works_there_has_a_password(
    address: str, clock: ManualClock
) -> None:
    sql = "SELECT c.name FROM pets p JOIN categories c ON c.id = p.category_id WHERE p.name = '{}'"
    kinds = {"Polly": "Parrots", "Tweety": "Canaries", "Koi Roy": "Fish", "Donatello": "Turtles"}
    kinds |= {"Gekko": "Lizards", "Kaa": "Snakes", "Shadowfax": "Horses"}
    async with demo(address, clock) as store:
        assert {name: (await column(store, sql.format(name)))[0] for name in kinds} == kinds
        people = (await list_people(store, "production", None, 10)).items
        found = {each.login.partition("@")[0]: each.state for each in people}
        assert found == {"demo": "invited", "amina": "active", "jonas": "active", "mei": "invited"}
        assert not any(each.last_seen_at for each in people if each.state == "invited")


@pytest.mark.each_database
async def test_the_demo_has_pets_of_the_sample_file_and_orders_in_every_state(
    address: str, clock: ManualClock
) -> None:
    text = (files("petstore.samples") / "pets.csv").read_text("utf-8")
    sample = [
        (row["name"], int(row["categoryId"]), row["status"] or None)
        for row in csv.DictReader(text.splitlines())
    ]
    async with demo(address, clock) as store:
        assert sample == await rows(store, "SELECT name, category_id, status FROM pets ORDER BY id")
        events = dict(await rows(store, "SELECT type, count(*) FROM events GROUP BY type"))
        assert (events["order.cancelled"], events["order.lapsed"]) == (9, 6)
        assert await column(store, "SELECT count(cancel_reason) FROM orders") == [9]
        (counter,) = await column(
            store, "SELECT count(*) FROM orders WHERE delivered_at = placed_at"
        )
        assert 50 <= counter <= 80
        pending = await column(store, "SELECT id FROM pets WHERE status = 'pending' ORDER BY id")
        is_open = "status IN ('placed', 'approved')"
        ordered = f"SELECT pet_id FROM orders WHERE {is_open} ORDER BY pet_id"  # noqa: S608
        assert pending == await column(store, ordered)
        sold = await column(store, "SELECT count(*) FROM pets WHERE status = 'sold'")
        assert sold == [ORDERS["delivered"] + 12]
        times = await column(store, "SELECT at FROM events ORDER BY sequence")
        assert times[0] == clock.now - 60 * DAY
        assert all(earlier <= later for earlier, later in pairwise(times))
        assert times[-1] <= clock.now
        people = await column(store, "SELECT at FROM events WHERE actor LIKE 'person/%'")
        assert all((clock.now - at) % DAY <= 9 * HOUR for at in people)  # while it is open


@pytest.mark.parametrize("weekday", range(7))
async def test_a_demo_of_any_weekday_has_the_same_numbers(
    address: str, clock: ManualClock, weekday: int
) -> None:
    clock.now += weekday * DAY
    async with demo(address, clock) as store:
        assert dict(await rows(store, COUNTS)) == ORDERS
        sold = await column(store, "SELECT delivered_at FROM orders WHERE status = 'delivered'")
        came = dict(await rows(store, "SELECT resource, at FROM events WHERE type = 'pet.created'"))
        placed = await rows(store, "SELECT pet_id, placed_at FROM orders")
        (ends,) = await column(store, "SELECT min(reserved_until) FROM orders")
        (waits,) = await column(
            store, "SELECT min(placed_at) FROM orders WHERE status = 'approved'"
        )
    assert sum(at > clock.now - 9 * HOUR for at in sold) >= 3
    weeks = Counter((clock.now - at) // (7 * DAY) for at in sold)
    assert min(weeks[week] for week in range(7)) >= 7
    assert all(came[f"pet/{pet_id}"] < at for pet_id, at in placed)
    # One reservation ends soon, and one order waits for days.
    assert 0 < ends - clock.now < 2 * HOUR
    assert clock.now - waits > 7 * DAY


async def test_two_demos_of_one_moment_are_alike(tmp_path: Path, clock: ManualClock) -> None:
    found = []
    for name in ("one", "two"):
        async with demo(f"sqlite:///{tmp_path / name}.db", clock) as store:
            found.append(await rows(store, "SELECT * FROM orders ORDER BY id"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("environment", "minutes", "currency"),
    [("production", 0, "USD"), ("staging", 10, "JPY"), ("production", 7 * 1440, "EUR")],
)
async def test_the_demo_keeps_to_the_settings(
    address: str, clock: ManualClock, environment: Any, minutes: int, currency: str
) -> None:
    settings = {"environment": environment, "currency": currency, "reservation_minutes": minutes}
    async with demo(address, clock, **settings) as store:
        placed = await rows(
            store, "SELECT placed_at, reserved_until FROM orders WHERE status = 'placed'"
        )
        amounts = await rows(store, "SELECT currency, amount FROM orders WHERE amount IS NOT NULL")
        people = (await list_people(store, environment, None, 10)).items
        actors = set(await column(store, "SELECT actor FROM events"))
    assert len(placed) == ORDERS["placed"]
    for at, until in placed:
        assert until == (at + minutes * MINUTE if minutes else None)
        assert until is None or until > clock.now
    assert {each for each, _ in amounts} == {currency}
    assert all(amount % 500 == 0 and 1000 <= amount <= 400_000 for _, amount in amounts)
    staff = {f"person/{person.id}" for person in people if person.state == "active"}
    assert len(staff) == 2
    assert actors == {*staff, "key/1", "service", "operator"}


async def test_nobody_can_be_the_staff_of_the_demo(address: str, clock: ManualClock) -> None:
    async with demo(address, clock) as store:
        links = "SELECT login, expires_at > {} FROM invitations JOIN people ON id = person_id"
        assert dict(await rows(store, links.format(clock.now))) == {
            "demo": 1,
            "mei@petstore.example": 0,
        }


async def test_the_next_start_adds_nothing(address: str, clock: ManualClock) -> None:
    counts = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM callers)"
    async with demo(address, clock) as store:
        before = await rows(store, counts)
        clock.advance(3600)
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, counts) == before


@pytest.mark.parametrize("what", ["a pet that is gone", "a category", "a login of the demo"])
async def test_a_store_in_which_something_has_happened_is_not_filled(
    address: str, clock: ManualClock, what: str
) -> None:
    async with open_store(address) as store:
        if what == "a category":
            await store.write(create_category(CategoryCreate("Yaks")))
        elif what == "a login of the demo":
            await add(store, clock, login="jonas@petstore.example")
        else:
            await store.write(create_pet(NewPet("Rex", 1)))
            await store.write(do("DELETE FROM pets"))
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, "SELECT id FROM pets") == []


async def test_the_key_was_used_on_each_of_the_last_30_days_before_today(
    address: str, clock: ManualClock
) -> None:
    today = clock.now // DAY
    async with demo(address, clock) as store:
        select = "SELECT day, requests FROM usage WHERE key_id = 1 ORDER BY day"
        used = dict(await rows(store, select))
        select = (
            "SELECT hour / 24, sum(count) FROM counts WHERE kind = 'response' AND name < '429'"
            " GROUP BY hour"
        )
        responses = dict(await rows(store, select))
        refused = await column(store, "SELECT count FROM counts WHERE kind = 'refused'")
        too_many = "SELECT count FROM counts WHERE kind = 'response' AND name = '429'"
        assert refused == await column(store, too_many)
        select = "SELECT hour / 24 FROM counts WHERE kind = 'deprecated' ORDER BY hour"
        calls = await column(store, select)
    assert list(used) == list(range(today - 29, today)) == calls
    assert all(0.98 * count <= responses[day] <= count for day, count in used.items())
