"""Units of work on PostgreSQL take as few round trips as their statements allow."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from petstore.databases.contract import Statement, Unit
from petstore.databases.postgres import PostgresStore
from petstore.events.model import NewEvent
from petstore.events.store import record
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.pets.model import NewPet, Pet
from petstore.pets.store import create_pet
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.postgres import PostgresServer
from support.postgres_stores import open_postgres_store

pytestmark = pytest.mark.anyio

NOW = ManualClock().now


class Log:
    """The statements that a server logs, from now on."""

    def __init__(self, server: PostgresServer) -> None:
        self._file = server.folder / "log"
        self._position = self._file.stat().st_size

    def first_words(self) -> list[str]:
        """Return the first words of each statement that was logged since."""
        text = self._file.read_bytes()[self._position :].decode()
        return re.findall(r"LOG:  (?:statement|execute [^:]*): (\w+(?: \w+)?)", text)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_postgres_store(f"{postgres_url}?log_statement=all") as store:
        await store.check()
        yield store


def add(name: str = "Bella") -> Unit[Pet]:
    return create_pet(NewPet(name, 1, "available"), now=NOW)


async def events(store: PostgresStore) -> list[str]:
    rows = await store.read(Statement("SELECT resource FROM events_outbox ORDER BY position"))
    return [resource for (resource,) in rows]


async def names(store: PostgresStore) -> list[str]:
    return [name for (name,) in await store.read(Statement("SELECT name FROM pets ORDER BY id"))]


async def test_an_animal_and_its_event_are_one_statement_without_a_transaction_around_it(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    log = Log(postgres)
    pet = await store.write(add())
    assert log.first_words() == ["SELECT nextval", "WITH statement_0"]
    assert await events(store) == [f"pet/{pet.id}"]


async def test_animals_that_are_added_at_once_take_their_ids_together(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    log = Log(postgres)
    pets = await asyncio.gather(*(store.write(add(f"{number}")) for number in range(8)))
    assert [pet.id for pet in pets] == [*range(1, 9)]
    assert await names(store) == [f"{number}" for number in range(8)]
    assert log.first_words().count("SELECT nextval") == 1


async def test_a_recorded_response_is_written_with_the_animal_and_its_event(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    key = await issue_stored(store, ManualClock())
    log = Log(postgres)

    def unit() -> Unit[bytes]:
        return f"{(yield from add()).id}".encode()

    attempt = Attempt(key, "first", b"")
    retries = SafeRetries(store, ManualClock())
    first = await retries.once(attempt, unit())
    assert log.first_words() == [
        "BEGIN ISOLATION", "INSERT INTO", "SELECT nextval", "WITH statement_0", "COMMIT"
    ]  # fmt: skip
    assert await retries.once(attempt, unit()) == (first.response, True)
    assert await events(store) == ["pet/1"]


async def test_what_waits_runs_before_a_statement_that_may_not(store: PostgresStore) -> None:
    def unit() -> Unit[list[Any]]:
        yield from add("first")
        before = yield Statement("SELECT name FROM pets")
        yield from add("second")
        after = yield Statement("SELECT name FROM pets ORDER BY id")
        yield from add("third")
        return [before, after]

    assert await store.write(unit()) == [[("first",)], [("first",), ("second",)]]
    assert await names(store) == ["first", "second", "third"]
    assert await events(store) == ["pet/1", "pet/2", "pet/3"]


async def test_events_of_one_unit_stay_in_order(store: PostgresStore) -> None:
    def unit() -> Unit[None]:
        for number in range(1, 31):
            yield record(NOW, NewEvent("pet.updated", f"pet/{number}", {}))

    await store.write(unit())
    assert await events(store) == [f"pet/{number}" for number in range(1, 31)]


async def test_a_unit_that_raises_leaves_nothing_of_what_waited(store: PostgresStore) -> None:
    def refused_at_once() -> Unit[None]:
        yield from add()
        raise KeyError

    def refused_later() -> Unit[None]:
        yield from add()
        yield Statement("SELECT 1")
        yield from add()
        raise KeyError

    for unit in (refused_at_once, refused_later):
        with pytest.raises(KeyError):
            await store.write(unit())
    assert await names(store) == []
    assert await events(store) == []


async def test_a_statement_that_waited_and_fails_undoes_its_unit(store: PostgresStore) -> None:
    def unit(*before: str) -> Unit[None]:
        for sql in before:
            yield Statement(sql)
        yield from add()
        yield Statement(
            "INSERT INTO categories (name, name_key) VALUES (?1, ?1)", ("Dogs",), may_wait=True
        )

    await store.write(unit())
    for statements in ((), ("SELECT 1",)):
        with pytest.raises(asyncpg.UniqueViolationError):
            await store.write(unit(*statements))
    assert await names(store) == ["Bella"]
    assert await events(store) == ["pet/1"]
