"""The contract of every store. A new back end is one more item in ``OPENERS``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from itertools import product
from pathlib import Path
from typing import TypeAlias

import pytest

from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import Conflict, PetstoreError
from petstore.observability.hooks import End, watch
from petstore.pets.model import PETS, NewPet, Pet
from petstore.pets.store import get_pet
from support.changes import create_pet, create_pets
from support.rows import select_pet, select_pets
from support.stores import do, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
OPENERS = {"sqlite": "database", "postgresql": "postgres_url", "pooler": "pooled_url"}
"""The fixture with the address or the file of each kind of database."""

BELLA = NewPet("Bella", 1, "available")


@pytest.fixture(params=OPENERS)
def open_one(request: pytest.FixtureRequest) -> Open:
    """Opens the same database each time it is called."""
    address: str | Path = request.getfixturevalue(OPENERS[request.param])
    return lambda: open_store(address)


@pytest.fixture
async def store(open_one: Open) -> AsyncIterator[Store]:
    async with open_one() as store:
        yield store


@pytest.fixture
async def other(open_one: Open, store: Store) -> AsyncIterator[Store]:
    """Another process's view of the database of ``store``."""
    del store
    async with open_one() as other:
        yield other


async def all_pets(store: Store) -> list[Pet]:
    return [PETS.read(row) for row in await store.read(select_pets(1_000))]


def add_and_refuse(error: BaseException) -> Unit[Pet]:
    yield from create_pet(BELLA)
    raise error


async def test_each_of_those_who_read_at_once_gets_the_pet_of_its_own_id(store: Store) -> None:
    bella, rex = await store.write(create_pets([BELLA, NewPet("Rex", 2)]))
    ids = rex.id, INT64_MAX, bella.id, rex.id
    found = await asyncio.gather(*(get_pet(store, each) for each in ids), return_exceptions=True)
    assert [rex, "there is no pet 9223372036854775807", bella, rex] == [
        getattr(each, "message", each) for each in found
    ]


class Stop(BaseException):
    """Such as a cancellation."""


async def test_a_unit_that_raises_changes_nothing_and_affects_no_other(store: Store) -> None:
    raised = [Conflict("taken"), ZeroDivisionError(), RuntimeError("bug"), Stop()]
    for error in raised:
        with pytest.raises(type(error)) as alone:
            await store.write(add_and_refuse(error))
        assert alone.value is error
        assert await all_pets(store) == []
    eaten = "INSERT INTO pets (name, category_id, status) VALUES ('Bella', 1, 'eaten')"
    first, *failed, constrained, last = await asyncio.gather(
        store.write(create_pet(NewPet("first", 1))),
        *(store.write(add_and_refuse(error)) for error in raised[:-1]),
        store.write(do(eaten)),
        store.write(create_pet(NewPet("last", 1))),
        return_exceptions=True,
    )
    assert failed == raised[:-1]
    assert isinstance(constrained, Exception)
    assert sorted(await all_pets(store), key=lambda pet: pet.name) == [first, last]


async def test_text_and_numbers_are_read_as_written_and_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(PetstoreError):
        await store.read(Statement("DELETE FROM pets"))
    texts = ("'; DROP TABLE pets; --", "\N{DOG FACE}\u0301", "a\nb\\", "?1")
    for text, number in product(texts, (INT64_MIN, -1, 0, 2**53 + 1, INT64_MAX)):
        added = await store.write(create_pet(NewPet(text, number)))
        assert [PETS.read(row) for row in await store.read(select_pet(added.id))] == [
            Pet(added.id, text, number)
        ]


async def test_a_statement_with_rows_runs_once_for_each_or_not_at_all(store: Store) -> None:
    def insert(*rows: Row) -> Unit[list[Row]]:
        sql = "INSERT INTO categories (name, name_key) VALUES (?1, ?2) RETURNING name_key"
        return (yield Statement(sql, rows=rows))

    assert await store.write(insert()) == []
    assert await store.write(insert(("Dogs", "dogs"), ("Cats", "cats"))) == [("dogs",), ("cats",)]
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(insert(("Birds", "birds"), ("Cats", "cats")))
    assert await store.read(Statement("SELECT count(*) FROM categories")) == [(2,)]


async def test_a_unit_gets_the_rows_of_each_statement_and_may_have_none(store: Store) -> None:
    def unit() -> Unit[list[int]]:
        first = yield from create_pet(BELLA)
        second = yield from create_pet(BELLA)
        rows = yield Statement("SELECT id FROM pets ORDER BY id")
        nothing = yield Statement("UPDATE pets SET name = ?1", ("Oskar",))
        assert [first.id, second.id] == [row[0] for row in rows]
        assert nothing == []
        return [first.id, second.id]

    def empty() -> Unit[str]:
        yield from ()
        return "done"

    assert await store.write(unit()) == [1, 2]
    assert {pet.name for pet in await all_pets(store)} == {"Oskar"}
    assert await store.write(empty()) == "done"
    assert (await asyncio.gather(store.write(create_pet(BELLA)), store.write(empty())))[1] == "done"


async def test_many_pets_are_added_in_order_in_few_round_trips(store: Store) -> None:
    names: list[str] = []

    def note(statement: Statement) -> End:
        names.append(statement.name)
        return lambda _: None

    adding = create_pets(NewPet(f"pet {number}", number) for number in range(1, 251))
    await store.write(watch(adding, note))
    added = [(pet.id, pet.category_id, pet.name) for pet in await all_pets(store)]
    assert added == [(number, number, f"pet {number}") for number in range(1, 251)]
    assert names == ["insert_pets", "queue_pet_words", "insert_events"] * 3


async def test_other_stores_see_a_change_and_another_version_once_its_write_returns(
    store: Store, other: Store
) -> None:
    async def versions() -> list[object]:
        return [await store.version(), await other.version()]

    async def stay() -> bool:
        return await versions() == await versions()

    for writer, reader in ((store, other), (other, store)) * 10:
        await eventually(stay)  # PostgreSQL commits by itself, too
        before = await versions()
        pet = await writer.write(create_pet(BELLA))
        changes = zip(before, await versions(), strict=True)
        assert all(old != new or old is None for old, new in changes)
        assert await reader.read(select_pet(pet.id)) != []
    added = await asyncio.gather(
        *(writer.write(create_pet(BELLA)) for _ in range(40) for writer in (store, other))
    )
    assert sorted(pet.id for pet in added) == list(range(21, 101))
    assert await all_pets(store) == await all_pets(other)


async def test_closing_waits_for_units_which_survive_it_and_ids_are_never_reused(
    open_one: Open,
) -> None:
    async with open_one() as store:
        assert [(await store.write(create_pet(BELLA))).id for _ in range(3)] == [1, 2, 3]
        await store.write(do("DELETE FROM pets WHERE id = 3"))
        assert (await store.write(create_pet(BELLA))).id == 4
        writing = asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(200)))
        await asyncio.sleep(0)
    assert {pet.id for pet in await writing} == {*range(5, 205)}
    async with open_one() as store:
        await store.check()
        assert [pet.id for pet in await all_pets(store)] == [1, 2, *range(4, 205)]
        await store.write(do("DELETE FROM pets"))
        assert (await store.write(create_pet(BELLA))).id == 205


async def test_a_change_that_is_cancelled_before_it_begins_is_not_made(store: Store) -> None:
    leaving = asyncio.create_task(store.write(create_pet(BELLA)))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await store.write(create_pet(NewPet("Oskar", 1)))
    assert [pet.name for pet in await all_pets(store)] == ["Oskar"]
