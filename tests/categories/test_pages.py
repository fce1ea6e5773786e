"""The pages of categories and their stock, and their field in the forms of pets."""

import html
import re
from typing import Any

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Store, Unit
from petstore.pets.model import NewPet
from support.changes import create_category, create_pets
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, conflict_of, form_of, press, succeed
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio


async def stored(service: Service, visitor: Visitor, path: str = "/v1/categories") -> Any:
    """Return what a list of the interface has."""
    return (await service.request("GET", path, visitor.token)).json()


async def added(visitor: Visitor) -> httpx.Response:
    """Add Dogs, and return their page."""
    await visitor.submit("/categories", name="Dogs", description="")
    return await visitor.get("/categories/1")


async def test_a_category_needs_a_name_that_is_free(service: Service, staff: Visitor) -> None:
    await added(staff)
    page = await staff.get("/categories")
    typed = {"name": "", "description": "Great and small."}
    refused = await press(staff, page, "Add the category", **typed)
    assert refused.status_code == 400
    assert "Name: expected 1 to 100 characters" in words(refused)
    assert form_of(refused, "Add the category").fields.items() >= typed.items()
    for _ in range(2):  # the second click tells the same
        refused = await press(staff, page, "Add the category", name="DOGS")
        assert refused.status_code == 409
        assert "category 1 already has the name" in words(refused)
    assert form_of(refused, "Add the category").fields["name"] == "DOGS"
    assert await stored(service, staff) == [{"id": 1, "name": "Dogs"}]


async def test_a_category_is_added_changed_and_deleted_each_with_an_undo(
    service: Service, staff: Visitor
) -> None:
    typed = {"name": "Dogs", "description": "Great and small."}
    page = await succeed(staff, await staff.get("/categories"), "Add the category", **typed)
    assert "Dogs is now category 1." in words(page)
    shown = '<a href="/console/categories/1"><span class="category hue-1"><bdi>Dogs</bdi>'
    assert shown in page.text
    assert "Great and small." in page.text
    assert await stored(service, staff) == [{"id": 1, **typed}]
    undone = await succeed(staff, page, "Undo")
    assert "Dogs is deleted." in words(undone)
    assert await stored(service, staff) == []
    await succeed(staff, undone, "Add the category", name="Dogs")
    opened = await staff.get("/categories/2")
    assert '<a href="/console/categories">All categories</a>' in opened.text
    assert "Nothing was changed." in words(await succeed(staff, opened, "Save"))
    for changes, said in (
        ({"name": "Hounds"}, "Hounds is changed."),
        ({"description": "All."}, "Dogs is changed."),
    ):
        page = await succeed(staff, await staff.get("/categories/2"), "Save", **changes)
        assert said in words(page)
        assert await stored(service, staff) == [{"id": 2, "name": "Dogs", **changes}]
        assert "Dogs is as it was before." in words(await succeed(staff, page, "Undo"))
        assert await stored(service, staff) == [{"id": 2, "name": "Dogs"}]
    await succeed(staff, await staff.get("/categories/2"), "Save", description="All.")
    page = await staff.get("/categories/2")
    await staff.submit("/pets", name="Bella", categoryId="2", status="available")
    refused = await press(staff, page, "Delete Dogs")
    assert refused.status_code == 409
    assert "Pets belong to this category, so it cannot be deleted." in words(refused)
    assert 'href="/console/pets?categoryId=2"' in refused.text
    await staff.submit("/pets/1/delete")
    deleted = await succeed(staff, page, "Delete Dogs")
    assert "Dogs is deleted." in words(deleted)
    await succeed(staff, deleted, "Add it again, with a new number")
    assert await stored(service, staff) == [{"id": 3, "name": "Dogs", "description": "All."}]


async def test_what_another_user_changed_or_deleted_is_told_and_the_input_stays(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Save", name="Hounds")
    changed = await other.get("/categories/1")
    refused = await press(staff, page, "Save", description="All.")
    assert refused.status_code == 412
    assert "Another user changed this category while you were looking at it." in words(refused)
    assert conflict_of(refused, "Name") == ["Dogs", "Hounds", "the same as now"]
    late = await press(staff, page, "Delete Dogs")
    assert late.status_code == 412
    assert "The page shows it as it is now." in words(late)
    await succeed(staff, refused, "Save mine anyway")
    assert await stored(service, staff) == [{"id": 1, "name": "Hounds", "description": "All."}]
    await succeed(staff, await staff.get("/categories/1"), "Delete Hounds")
    refused = await press(other, changed, "Save", name="Dogs")
    assert refused.status_code == 404
    assert "Hounds, category 1, was deleted" in words(refused)
    assert "Your changes were not saved: Name: Dogs" in words(refused)


async def rows(visitor: Visitor) -> list[str]:
    """Return the rows of the table: a category, and its pets that are available, pending, sold."""
    page = await visitor.get("/categories")
    assert page.status_code == 200
    found = re.findall(r"<tr>(.*?)</tr>", page.text.partition("<tbody")[2], re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in found]


async def test_the_numbers_are_current_and_who_may_only_read_sees_none_and_no_button(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await added(staff)
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * 3))
    await service.store.write(create_pets([NewPet("Rex", 1, "sold"), NewPet("Kim", 1)]))
    assert await rows(staff) == ["Dogs 3 0 1"]
    await staff.submit("/pets/1/reserve")
    assert await rows(staff) == ["Dogs 2 1 1"]
    reader = await signed_in(service, scopes=frozenset({"pets:read"}))
    for path in ("/categories", "/categories/1"):
        page = await reader.get(path)
        assert "Dogs" in words(page)
        assert buttons_of(page) == []
    clock.advance(24 * 60 * 60)
    assert await rows(await signed_in(service)) == ["Dogs 3 0 1"]


async def test_the_category_with_fewest_pets_comes_first(service: Service, staff: Visitor) -> None:
    for name in ("Dogs", "Cats", "Ants"):
        await service.store.write(create_category(CategoryCreate(name)))
    pets = [NewPet("Rex", 1, "available")] * 2 + [NewPet("Mia", 2, "sold")]
    await service.store.write(create_pets([*pets, NewPet("Kim", 9, "available")]))
    assert await rows(staff) == ["Ants 0 0 0", "Cats 0 0 1", "category 9 1 0 0", "Dogs 2 0 0"]
    html = (await staff.get("/categories")).text
    assert 'href="/console/pets?categoryId=1&amp;status=available"' in html
    assert 'href="/console/pets?categoryId=9"' in html
    assert 'rect width="50.0%"' in html


# The field of a category in the forms of pets

NEW = {"name": "Bella", "status": "available"}


async def add(store: Store, *names: str) -> None:
    def each() -> Unit[None]:
        for name in names:
            yield from create_category(CategoryCreate(name))

    await store.write(each())


def choices(page: str) -> list[tuple[str, str]]:
    """Return the values and the words of the list of categories on a page."""
    select = page.partition('<select id="categoryId"')[2].partition("</select>")[0]
    options = [part.partition("</option>")[0] for part in select.split("<option ")[1:]]
    return [
        (html.unescape(option.split('"')[1]), html.unescape(option.partition(">")[2]))
        for option in options
    ]


async def test_categories_are_a_list_by_name_of_a_thousand_and_that_of_the_pet(
    service: Service, staff: Visitor
) -> None:
    await add(service.store, "dogs", "Cats", "7")
    listed = [("3", "7"), ("2", "Cats"), ("1", "dogs")]
    assert choices((await staff.get("/pets/new")).text) == [("", "Choose…"), *listed]
    assert choices((await staff.get("/pets")).text) == [("", "any"), *listed]
    await add(service.store, *(f"Kind {number}" for number in range(997)), "Ponies")
    await service.store.write(create_pets([NewPet("Bella", 1001)]))
    assert ("1001", "Ponies") in choices((await staff.get("/pets/1")).text)
    new = choices((await staff.get("/pets/new")).text)
    assert len(new) == 1001
    assert ("1001", "Ponies") not in new


async def test_a_pet_keeps_a_category_that_is_not_registered(
    service: Service, staff: Visitor
) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 7)]))
    filtered = await staff.get("/pets", categoryId="7")
    assert '<option value="7" selected>7, which is no category' in filtered.text
    assert "Bella" in words(filtered)
    page = await staff.get("/pets/1")
    assert form_of(page, "Save").fields["categoryId"] == "7"
    page = await succeed(staff, page, "Save", name="Rex")
    changed = await succeed(staff, page, "Save", categoryId="1")
    undone = await succeed(staff, await succeed(staff, changed, "Undo"), "Redo")
    deleted = await succeed(staff, await succeed(staff, undone, "Undo"), "Delete Rex")
    await succeed(staff, deleted, "Add it again, with a new number")
    assert await stored(service, staff, "/v1/pets") == [{"id": 2, "name": "Rex", "categoryId": 7}]


async def test_a_conflict_names_the_categories(service: Service, staff: Visitor) -> None:
    name = "<script>ran=1</script>\u202e\"'"
    await add(service.store, "Dogs", name, "Cats")
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    page = await staff.get("/pets/1")
    await succeed(await signed_in(service), page, "Save", categoryId="2")
    refused = await press(staff, page, "Save", categoryId="3")
    assert refused.status_code == 412
    assert f"Category: Dogs → {name}" in html.unescape(words(refused))
    assert "<script>ran" not in refused.text
    await succeed(staff, refused, "Save mine anyway")
    assert [pet["categoryId"] for pet in await stored(service, staff, "/v1/pets")] == [3]
