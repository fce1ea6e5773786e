"""Categories, below HTTP."""

import pytest
from msgspec import UNSET, UnsetType

from petstore.databases.contract import Row, Store, Unit
from petstore.domain.categories import Category, CategoryCreate, CategoryPatch
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.domain.pets import NewPet
from petstore.errors import CategoryInUse, CategoryNameTaken, NotFound, PreconditionFailed
from petstore.store.api_keys import unconditional
from petstore.store.categories import (
    first_category_names,
    get_category,
    ids_of_categories,
    list_categories,
    names_of_categories,
)
from support.changes import create_category, create_pet, delete_category, update_category
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

DOGS: Row = (1, "Dogs", None)
HOUNDS: Row = (1, "Hounds", "All.")
WRITTEN: list[Row] = [(1,)]
LOST: list[Row] = []
NONE: list[Row] = []


def refuse(_: object) -> None:
    msg = "another version"
    raise PreconditionFailed(msg)


def update(patch: CategoryPatch) -> Unit[Category]:
    return update_category(1, patch, unconditional)


async def add(store: Store, *names: str) -> None:
    for name in names:
        await store.write(create_category(CategoryCreate(name)))


# On a database


@pytest.mark.parametrize("category_id", [0, 2, INT64_MIN, INT64_MAX])
async def test_a_category_that_is_not_there_is_not_found(store: Store, category_id: int) -> None:
    await add(store, "Dogs")
    not_found = f"^there is no category {category_id}$"
    with pytest.raises(NotFound, match=not_found):
        await get_category(store, category_id)
    with pytest.raises(NotFound, match=not_found):
        await store.write(update_category(category_id, CategoryPatch("Cats"), unconditional))
    with pytest.raises(NotFound, match=not_found):
        await store.write(delete_category(category_id, unconditional))


@pytest.mark.parametrize("description", [UNSET, "", "Great and small."])
async def test_a_category_that_was_added_is_found(
    store: Store, description: str | UnsetType
) -> None:
    added = await store.write(create_category(CategoryCreate("Dogs", description)))
    assert added == Category(1, "Dogs", description) == await get_category(store, 1)


@pytest.mark.parametrize("name", ["Großtiere", "GROSSTIERE"])
async def test_a_name_is_given_once(store: Store, name: str) -> None:
    await add(store, "Großtiere", "Dogs")
    with pytest.raises(
        CategoryNameTaken, match=r"^name: category 1 already has the name 'Großtiere'$"
    ):
        await add(store, name)
    with pytest.raises(
        CategoryNameTaken, match=r"^name: category 1 already has the name 'Großtiere'$"
    ):
        await store.write(update_category(2, CategoryPatch(name), unconditional))
    assert await get_category(store, 2) == Category(2, "Dogs")


async def test_a_category_may_write_its_own_name_otherwise(store: Store) -> None:
    await add(store, "Dogs", "Cats")
    assert await store.write(update(CategoryPatch("DOGS"))) == Category(1, "DOGS")
    await store.write(update(CategoryPatch("Hounds")))
    with pytest.raises(CategoryNameTaken):
        await add(store, "HOUNDS")
    await add(store, "dogs")


async def test_a_deleted_category_leaves_its_name_and_spends_its_id(store: Store) -> None:
    await add(store, "Dogs", "Cats")
    await store.write(delete_category(2, unconditional))
    await add(store, "Cats")
    page = await list_categories(store, None, 100)
    assert page.items == [Category(1, "Dogs"), Category(3, "Cats")]


async def test_a_category_in_use_stays(store: Store) -> None:
    await add(store, "Dogs")
    await store.write(create_pet(NewPet("Bella", 1)))
    in_use = r"^pet 1, and perhaps others, belong to category 1$"
    with pytest.raises(CategoryInUse, match=in_use):
        await store.write(delete_category(1, unconditional))
    assert await get_category(store, 1) == Category(1, "Dogs")


async def test_the_check_sees_the_category_and_may_refuse_it(store: Store) -> None:
    await add(store, "Dogs")
    for unit in (update_category(1, CategoryPatch("Cats"), refuse), delete_category(1, refuse)):
        with pytest.raises(PreconditionFailed, match=r"^another version$"):
            await store.write(unit)
    seen: list[Category] = []
    await store.write(update_category(1, CategoryPatch(), seen.append))
    await store.write(delete_category(1, seen.append))
    assert seen == [Category(1, "Dogs")] * 2


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, 100])
async def test_the_pages_are_all_categories_by_id_once_each(store: Store, limit: int) -> None:
    await add(store, "e", "d", "c", "b", "a")
    after, names = None, ""
    while True:
        page = await list_categories(store, after, limit)
        names += "".join(category.name for category in page.items)
        assert len(page.items) == limit or page.next_after is None
        after = page.next_after
        if after is None:
            break
    assert names == "edcba"


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (CategoryPatch(), CategoryPatch("Dogs", None)):
        assert by_hand(update(patch), [DOGS]) == Category(1, "Dogs")


def test_a_name_that_becomes_free_meanwhile_is_given() -> None:
    unit = create_category(CategoryCreate("Dogs"))
    assert by_hand(unit, LOST, NONE, WRITTEN, []) == Category(1, "Dogs")


# By name, for people


async def test_a_category_is_found_by_its_name_in_any_case(store: Store) -> None:
    await add(store, "Cats", "Élans")
    decomposed = "E\N{COMBINING ACUTE ACCENT}LANS"
    assert await ids_of_categories(store, [decomposed]) == {decomposed: 2}
    assert await ids_of_categories(store, ["Dogs"]) == {}


async def test_the_first_names_of_categories_are_sorted_ignoring_case(store: Store) -> None:
    await add(store, "dogs", "Cats", "Elks", "birds")
    assert await first_category_names(store, 3) == ["birds", "Cats", "dogs"]


async def test_many_categories_are_found_by_their_names_in_any_case(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, "Dogs", "Cats", "Élans")
    monkeypatch.setattr("petstore.store.categories._NAMES_AT_ONCE", 2)
    wanted = {"DOGS", "dogs", "Birds", "élans", "cats", "a\0b", ""}
    found = await ids_of_categories(store, wanted)
    assert found == {"DOGS": 1, "dogs": 1, "cats": 2, "élans": 3}


async def test_only_registered_categories_have_names(store: Store) -> None:
    await add(store, "Dogs", "Cats")
    assert await names_of_categories(store, [2, 7, INT64_MIN]) == {2: "Cats"}
    assert await names_of_categories(store, []) == {}
