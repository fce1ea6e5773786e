"""Categories, below HTTP."""

import pytest

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.categories.store import (
    ids_of_categories,
)
from petstore.databases.contract import Duplicate, Row, Store
from petstore.errors import CategoryNameTaken
from support.changes import create_category, update_category
from support.units import by_hand

pytestmark = pytest.mark.anyio

DOGS: Row = (1, "Dogs", None)
WRITTEN: list[Row] = [(1,)]


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_name_that_is_taken_during_the_change_is_refused() -> None:
    unit = update_category(1, CategoryPatch("Cats"))
    next(unit)
    unit.send([DOGS])
    unit.send([])
    with pytest.raises(CategoryNameTaken, match=r"^name: another category has just got the name"):
        unit.throw(Duplicate())


def test_a_name_that_becomes_free_meanwhile_is_accepted() -> None:
    unit = create_category(CategoryCreate("Dogs"))
    assert by_hand(unit, [], [], WRITTEN, []) == Category(1, "Dogs")


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (CategoryPatch(), CategoryPatch("Dogs", None)):
        assert by_hand(update_category(1, patch), [DOGS]) == Category(1, "Dogs")


@pytest.mark.each_database
async def test_many_categories_are_found_by_their_names_in_any_case(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Dogs", "Cats", "Élans"):
        await store.write(create_category(CategoryCreate(name)))
    monkeypatch.setattr("petstore.categories.store._NAMES_AT_ONCE", 2)
    decomposed = "E\N{COMBINING ACUTE ACCENT}LANS"
    wanted = {"DOGS", "dogs", "Birds", "élans", decomposed, "cats", "a\0b", ""}
    found = await ids_of_categories(store, wanted)
    assert found == {"DOGS": 1, "dogs": 1, "cats": 2, "élans": 3, decomposed: 3}
