"""Units of work and reads on PostgreSQL take as few round trips as their statements allow."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from itertools import count
from typing import Any

import msgspec
import pytest

from petstore.databases.contract import Row, Statement, Unit
from petstore.databases.postgres import PostgresStore
from petstore.errors import Unavailable
from petstore.events.model import NewEvent
from petstore.events.store import Change, publish_all, record
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.pets.model import NewPet, Pet, PetPatch
from petstore.pets.store import create_pet, delete_pet, get_pet, update_pet
from support.history import forget_keys, read_feed
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.postgres import PostgresServer, database_name
from support.stores import open_store

pytestmark = pytest.mark.anyio

NOW = ManualClock().now


class Log:
    """The statements that a server logs, from now on."""

    def __init__(self, server: PostgresServer) -> None:
        self._file = server.folder / "log"
        self._position = self._file.stat().st_size

    def first_words(self) -> list[str]:
        text = self._file.read_bytes()[self._position :].decode()
        return re.findall(r"LOG:  (?:statement|execute [^:]*): (\w+(?: \w+)?)", text)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(f"{postgres_url}?options=-clog_statement=all") as store:
        await store.check()
        yield store


def add(name: str = "Bella") -> Unit[Pet]:
    return create_pet(Change(NOW), NewPet(name, 1, "available"))


def add_category(name: str) -> Unit[None]:
    yield Statement(
        "INSERT INTO categories (name, name_key) VALUES (?1, ?1)", (name,), deferrable=True
    )


def add_categories(store: PostgresStore, *names: str) -> asyncio.Future[list[Any]]:
    """Add categories at once: the first, which is alone, and then the others together."""
    added = (store.write(add_category(name)) for name in names)
    return asyncio.gather(*added, return_exceptions=True)


def locked_categories(postgres: PostgresServer, url: str) -> AbstractContextManager[None]:
    """Let every change of categories wait until the block ends."""
    return postgres.transaction(database_name(url), "LOCK TABLE categories")


async def turns() -> None:
    """Let everything run that waits for nothing outside this process."""
    for _ in range(10):
        await asyncio.sleep(0)


async def category_names(store: PostgresStore) -> set[str]:
    return {name for (name,) in await store.read(Statement("SELECT name FROM categories"))}


async def events(store: PostgresStore) -> list[str]:
    rows = await store.read(Statement("SELECT resource FROM events_outbox ORDER BY position"))
    return [resource for (resource,) in rows]


async def names(store: PostgresStore) -> list[str]:
    return [name for (name,) in await store.read(Statement("SELECT name FROM pets ORDER BY id"))]


async def test_a_pet_is_added_changed_and_deleted_together_with_its_event(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    log = Log(postgres)
    pet = await store.write(add())
    assert log.first_words() == ["SELECT nextval", "WITH statement_0"]  # and no transaction
    log, change = Log(postgres), Change(NOW, check=lambda _: None)
    await store.write(update_pet(change, pet.id, PetPatch(category_id=2)))
    await store.write(delete_pet(change, pet.id))
    assert log.first_words() == [
        *("BEGIN ISOLATION", "SELECT id", "SELECT id", "WITH statement_0", "COMMIT"),
        *("BEGIN ISOLATION", "SELECT id", "SELECT id", "SELECT id", "WITH statement_0", "COMMIT"),
    ]
    assert await events(store) == [f"pet/{pet.id}"] * 3
    assert await names(store) == []


async def test_pets_that_are_added_at_once_share_a_transaction_and_pets_read_at_once_a_query(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    log, numbers = Log(postgres), [f"{number}" for number in range(8)]
    pets = await asyncio.gather(*(store.write(add(number)) for number in numbers))
    words = log.first_words()
    assert words.count("SELECT nextval") == 1
    assert "COMMIT" not in words
    assert [pet.id for pet in pets] == [*range(1, 9)]
    assert await names(store) == numbers
    assert await events(store) == [f"pet/{pet.id}" for pet in pets]
    transactions = Statement("SELECT count(DISTINCT transaction) FROM events_outbox")
    assert await store.read(transactions) == [(1,)]
    log = Log(postgres)
    assert await asyncio.gather(*(get_pet(store, pet.id) for pet in pets)) == pets
    assert log.first_words().count("SELECT id") == 1


@pytest.mark.parametrize("read", ["a version", "a pet"])
async def test_connections_that_are_silent_delay_only_who_reads_there(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    pet = await store.write(add())
    fetch, silent, begun = store._fetch, asyncio.Event(), count(1)  # noqa: SLF001 - a lost message

    async def fetch_or_wait(statement: Statement) -> list[Row]:
        if next(begun) <= 2:
            await silent.wait()
        return await fetch(statement)

    async def ask() -> object:
        return await (store.version() if read == "a version" else get_pet(store, pet.id))

    monkeypatch.setattr(store, "_fetch", fetch_or_wait)
    waiting = []
    for _ in range(2):
        waiting.append(asyncio.create_task(ask()))
        await turns()
    assert await ask()
    assert not any(each.done() for each in waiting)
    silent.set()
    assert all(await asyncio.gather(*waiting))


async def test_a_unit_that_fails_fails_no_other_but_an_error_of_the_server_all_of_a_transaction(
    store: PostgresStore, postgres: PostgresServer, postgres_url: str
) -> None:
    await store.write(add_category("Dogs"))
    outcomes = await add_categories(store, "Cats", "Fish", "Dogs", "Birds")
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [Unavailable]
    assert await category_names(store) == {"Dogs", "Cats", "Fish", "Birds"}
    with locked_categories(postgres, postgres_url):
        added = add_categories(store, "Mice", "Hens", "Bees")
        await turns()
        while not added.done():
            postgres.cut_connections()
            await turns()
    assert {type(outcome) for outcome in await added} == {Unavailable}
    assert await category_names(store) == {"Dogs", "Cats", "Fish", "Birds"}


async def test_units_wait_only_for_the_same_statements_and_run_only_if_their_caller_does_so_too(
    store: PostgresStore, postgres: PostgresServer, postgres_url: str
) -> None:
    with locked_categories(postgres, postgres_url):
        waiting = add_categories(store, "Dogs", "Fish")
        await turns()
        gone = asyncio.create_task(store.write(add_category("Cats")))
        await turns()
        gone.cancel()
        await store.write(add())
        assert not waiting.done()
    await waiting
    await store.write(add_category("Birds"))
    assert await category_names(store) == {"Dogs", "Fish", "Birds"}


async def test_what_is_acknowledged_while_connections_are_lost_is_in_the_feed_once(
    postgres: PostgresServer, postgres_url: str
) -> None:
    acknowledged: dict[int, str] = {}

    async def add_some(store: PostgresStore, caller: int) -> None:
        for number in range(30):
            with suppress(Unavailable):
                pet = await store.write(add(f"{caller}: {number}"))
                acknowledged[pet.id] = pet.name

    async with open_store(postgres_url) as first, open_store(postgres_url) as second:
        stores = enumerate([first, second] * 8)
        adding = asyncio.gather(*(add_some(store, caller) for caller, store in stores))
        for _ in range(3):
            await asyncio.to_thread(postgres.cut_connections)
        await adding
        await publish_all(first)
        page = await read_feed(first, ["pet.created"], 0, None, 1_000)
        rows = await first.read(Statement("SELECT id, name FROM pets"))
    pets: dict[int, str] = dict(rows)
    followed = [msgspec.json.decode(event.data, type=Pet) for event in page.events]
    assert len(followed) == len(pets)
    assert {pet.id: pet.name for pet in followed} == pets
    assert acknowledged.items() <= pets.items()
    assert len(set(pets.values())) == len(pets)
    assert [event.sequence for event in page.events] == [*range(1, len(pets) + 1)]


async def test_a_recorded_response_is_written_with_the_pet_and_its_event(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    key = await issue_stored(store, ManualClock())
    await forget_keys(store)
    log = Log(postgres)

    def unit() -> Unit[bytes]:
        return f"{(yield from add()).id}".encode()

    attempt, retries = Attempt(key, "first", b""), SafeRetries(store, ManualClock())
    first = await retries.once(attempt, unit())
    assert log.first_words() == [
        "BEGIN ISOLATION", "INSERT INTO", "SELECT nextval", "WITH statement_0", "COMMIT"
    ]  # fmt: skip
    assert await retries.once(attempt, unit()) == (first.response, True)
    assert await events(store) == ["pet/1"]


async def test_what_waits_runs_in_order_and_before_a_statement_that_may_not(
    store: PostgresStore,
) -> None:
    def unit() -> Unit[list[Any]]:
        yield from add("first")
        before = yield Statement("SELECT name FROM pets")
        yield from add("second")
        after = yield Statement("SELECT name FROM pets ORDER BY id")
        yield from add("third")
        for number in range(4, 31):
            yield record(NOW, NewEvent("pet.updated", f"pet/{number}", {}))
        return [before, after]

    assert await store.write(unit()) == [[("first",)], [("first",), ("second",)]]
    assert await names(store) == ["first", "second", "third"]
    assert await events(store) == [f"pet/{number}" for number in range(1, 31)]


async def test_a_unit_that_raises_or_fails_leaves_nothing_of_what_waited(
    store: PostgresStore,
) -> None:
    def unit(*before: str, is_raised: bool = False) -> Unit[None]:
        for sql in before:
            yield from add()
            yield Statement(sql)
        yield from add()
        if is_raised:
            raise KeyError
        yield from add_category("Dogs")

    await store.write(unit())
    for statements in ((), ("SELECT 1",)):
        with pytest.raises(KeyError):
            await store.write(unit(*statements, is_raised=True))
        with pytest.raises(Unavailable, match="duplicate key value"):
            await store.write(unit(*statements))
    assert await names(store) == ["Bella"]
    assert await events(store) == ["pet/1"]
