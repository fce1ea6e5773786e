"""Categories, below HTTP."""

import pytest

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.categories.store import (
    ids_of_categories,
    names_of_categories,
)
from petstore.databases.contract import Duplicate, Row, Store, Unit
from petstore.domain.fields import INT64_MIN
from petstore.errors import CategoryNameTaken
from support.changes import create_category, update_category
from support.units import by_hand
from support.waiting import turns_during

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

DOGS: Row = (1, "Dogs", None)
WRITTEN: list[Row] = [(1,)]


def update(patch: CategoryPatch) -> Unit[Category]:
    return update_category(1, patch)


async def add(store: Store, *names: str) -> None:
    for name in names:
        await store.write(create_category(CategoryCreate(name)))


# On a database


async def test_a_category_can_change_the_case_of_its_own_name(store: Store) -> None:
    await add(store, "Dogs", "Cats")
    assert await store.write(update(CategoryPatch("DOGS"))) == Category(1, "DOGS")
    await store.write(update(CategoryPatch("Hounds")))
    with pytest.raises(CategoryNameTaken):
        await add(store, "HOUNDS")
    await add(store, "dogs")


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (CategoryPatch(), CategoryPatch("Dogs", None)):
        assert by_hand(update(patch), [DOGS]) == Category(1, "Dogs")


def test_a_name_that_is_taken_during_the_change_is_refused() -> None:
    unit = update(CategoryPatch("Cats"))
    next(unit)
    unit.send([DOGS])
    unit.send([])
    with pytest.raises(CategoryNameTaken, match=r"^name: another category has just got the name"):
        unit.throw(Duplicate())


def test_a_name_that_becomes_free_meanwhile_is_accepted() -> None:
    unit = create_category(CategoryCreate("Dogs"))
    assert by_hand(unit, [], [], WRITTEN, []) == Category(1, "Dogs")


# By name, for people


async def test_many_categories_are_found_by_their_names_in_any_case(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, "Dogs", "Cats", "Élans")
    monkeypatch.setattr("petstore.categories.store._NAMES_AT_ONCE", 2)
    decomposed = "E\N{COMBINING ACUTE ACCENT}LANS"
    wanted = {"DOGS", "dogs", "Birds", "élans", decomposed, "cats", "a\0b", ""}
    found = await ids_of_categories(store, wanted)
    assert found == {"DOGS": 1, "dogs": 1, "cats": 2, "élans": 3, decomposed: 3}


async def test_others_have_the_event_loop_while_many_names_are_looked_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.time_slices._SLICE_SECONDS", 0)
    assert await turns_during(ids_of_categories(store, [f"Kind {n}" for n in range(100)])) > 100


async def test_only_registered_categories_have_names(store: Store) -> None:
    await add(store, "Dogs", "Cats")
    assert await names_of_categories(store, [2, 7, INT64_MIN]) == {2: "Cats"}
    assert await names_of_categories(store, []) == {}
