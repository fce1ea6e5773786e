"""The field of a category in the forms of pets: a list, and the name of another one."""

import asyncio
import html
from typing import Any

import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Store
from petstore.pets.model import NewPet
from support.changes import create_category, create_pets
from support.page_forms import form_of, press, succeed
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio

NEW = {"name": "Bella", "status": "available"}


async def add(store: Store, *names: str) -> None:
    for name in names:
        await store.write(create_category(CategoryCreate(name)))


async def stored(service: Service, visitor: Visitor, path: str = "/v1/pets") -> Any:
    """Return what a list of the interface has."""
    return (await service.request("GET", path, visitor.token)).json()


def choices(page: str) -> list[tuple[str, str]]:
    """Return the values and the words of the list of categories on a page."""
    select = page.partition('<select id="categoryId"')[2].partition("</select>")[0]
    options = [part.partition("</option>")[0] for part in select.split("<option ")[1:]]
    return [
        (html.unescape(option.split('"')[1]), html.unescape(option.partition(">")[2]))
        for option in options
    ]


async def test_categories_are_a_list_by_name(service: Service, staff: Visitor) -> None:
    await add(service.store, "dogs", "Cats", "+", "7")
    page = (await staff.get("/pets/new")).text
    listed = [("", "Choose…"), ("3", "+"), ("4", "7"), ("2", "Cats"), ("1", "dogs")]
    assert choices(page) == [*listed, ("+", "New category…")]


async def test_a_category_beyond_the_list_is_chosen_by_its_name(
    service: Service, staff: Visitor
) -> None:
    await add(service.store, *(f"Kind {number}" for number in range(201)), "Ponies")
    await service.store.write(create_pets([NewPet("Bella", 202)]))
    assert ("202", "Ponies") in choices((await staff.get("/pets/1")).text)
    assert ("202", "Ponies") not in choices((await staff.get("/pets/new")).text)
    await staff.submit("/pets", categoryId="+", addedCategory="pONIES", **NEW)
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [202, 202]


async def test_a_number_that_is_no_category_stays_chosen(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 7)]))
    filtered = await staff.get("/pets", categoryId="7")
    assert '<option value="7" selected>7, which is no category' in filtered.text
    assert "Bella" in words(filtered)
    page = await staff.get("/pets/1")
    assert form_of(page, "Save").fields["categoryId"] == "7"
    await succeed(staff, page, "Save", name="Rex")
    assert await stored(service, staff) == [{"id": 1, "name": "Rex", "categoryId": 7}]


async def test_the_list_adds_a_category_with_the_pet(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    page = await staff.get("/pets/new")
    added = await succeed(
        staff, page, "Add the pet", name="Bella", categoryId="+", addedCategory="Cats"
    )
    assert "Added Bella (#1), in the new category Cats." in words(added)
    assert form_of(added, "Add the pet").fields["categoryId"] == "2"
    assert [each["name"] for each in await stored(service, staff, "/v1/categories")] == [
        "Dogs",
        "Cats",
    ]
    events = (await stored(service, staff, "/v1/events"))[-2:]
    assert [event["type"] for event in events] == ["category.created", "pet.created"]
    assert {event["actor"]["id"] for event in events} == {staff.key_id}


async def test_a_new_category_and_its_pet_need_a_name(service: Service, staff: Visitor) -> None:
    for name, added, said in (
        ("Bella", "", "New category: expected the name"),
        ("Bella", "x" * 101, "New category: expected 1 to 100 characters"),
        (" ", "Ferrets", "Name: expected 1 to 255 characters"),
    ):
        sent = NEW | {"name": name, "categoryId": "+", "addedCategory": added}
        refused = await staff.post("/pets", **sent)
        assert said in words(refused)
        assert '<option value="+" selected>' in refused.text
    assert await stored(service, staff) == await stored(service, staff, "/v1/categories") == []


@pytest.mark.each_database
async def test_two_people_add_the_same_category_once(service: Service, staff: Visitor) -> None:
    sent = {"categoryId": "+", "addedCategory": "Ferrets"}
    await asyncio.gather(*(staff.submit("/pets", **NEW, **sent, once=once) for once in "abcdef"))
    assert [each["name"] for each in await stored(service, staff, "/v1/categories")] == ["Ferrets"]
    assert {pet["categoryId"] for pet in await stored(service, staff)} == {1}


async def test_a_failure_after_adding_a_category_is_told(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1, "available")]))
    page = await staff.get("/pets/1")
    await succeed(await signed_in(service), page, "Save", name="Rex")
    refused = await press(staff, page, "Save", categoryId="+", addedCategory="Cats")
    assert refused.status_code == 412
    await succeed(staff, refused, "Save mine anyway")
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [2]


async def test_who_may_not_add_categories_is_not_offered_it(service: Service) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    reader = await signed_in(service, scopes=frozenset({"pets:read"}))
    assert choices((await reader.get("/pets")).text) == [("", "any"), ("1", "Dogs")]


async def test_a_pet_gets_no_number_that_is_no_category(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    page = await staff.get("/pets/1")
    for typed in ("999", "-1", "0", "Dogs", "x" * 9000):
        refused = await staff.post("/pets", categoryId=typed, **NEW)
        assert f"Category: there is no category “{typed[:99]}" in words(refused)
        refused = await press(staff, page, "Save", categoryId=typed)
        assert refused.status_code == 400
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [1]


async def test_an_undo_gives_back_a_number_that_is_no_category(
    service: Service, staff: Visitor
) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 7)]))
    changed = await succeed(staff, await staff.get("/pets/1"), "Save", categoryId="1")
    undone = await succeed(staff, changed, "Undo")
    deleted = await succeed(staff, undone, "Redo")
    deleted = await succeed(staff, await succeed(staff, deleted, "Undo"), "Delete Bella")
    await succeed(staff, deleted, "Add it again, with a new number")
    assert await stored(service, staff) == [{"id": 2, "name": "Bella", "categoryId": 7}]


async def test_a_conflict_names_the_categories(service: Service, staff: Visitor) -> None:
    name = "<script>ran=1</script>\u202e\"'"
    await add(service.store, "Dogs", name)
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    page = await staff.get("/pets/1")
    await succeed(await signed_in(service), page, "Save", categoryId="2")
    refused = await press(staff, page, "Save", name="Rex")
    assert f"Category: Dogs → {name}" in html.unescape(words(refused))
    assert "<script>ran" not in refused.text
