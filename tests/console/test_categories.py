"""The pages of categories."""

from typing import Any

import httpx
import pytest

from petstore.domain.api_keys import Scope
from support.page_forms import buttons_of, form_of, press, succeed
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio


@pytest.fixture
async def other(service: Service) -> Visitor:
    """Somebody else who works in the shop."""
    return await signed_in(service)


async def stored(service: Service, visitor: Visitor, path: str = "/v1/categories") -> Any:
    """Return what a list of the interface has."""
    return (await service.request("GET", path, visitor.token)).json()


async def added(visitor: Visitor, name: str = "Dogs", description: str = "") -> httpx.Response:
    """Add a category, and return the page of the first one."""
    page = await visitor.get("/categories")
    await succeed(visitor, page, "Add the category", name=name, description=description)
    return await visitor.get("/categories/1")


def now(page: httpx.Response, field: str) -> list[str]:
    """Return what a conflict says about a field: as it was opened, as it is now, as wanted."""
    item = page.text.partition(f"<li>{field}: ")[2].partition("</li>")[0]
    told = [value.partition("</bdi>")[0] for value in item.split("<bdi>")[1:]]
    return [*told, "the same as now"][:3]


async def test_a_category_without_a_name_is_not_added(service: Service, staff: Visitor) -> None:
    page = await staff.get("/categories")
    refused = await press(staff, page, "Add the category", description="Great and small.")
    assert refused.status_code == 400
    assert "Name: expected 1 to 100 characters" in words(refused)
    assert form_of(refused, "Add the category").fields["description"] == "Great and small."
    assert await stored(service, staff) == []


async def test_a_name_is_taken_in_any_case(staff: Visitor) -> None:
    await added(staff)
    page = await staff.get("/categories")
    for _ in range(2):  # the second click tells the same
        refused = await press(staff, page, "Add the category", name="DOGS")
        assert refused.status_code == 409
        assert "category 1 already has the name" in words(refused)
    assert form_of(refused, "Add the category").fields["name"] == "DOGS"


async def test_a_category_that_is_not_there_is_not_found(staff: Visitor) -> None:
    for response in (
        await staff.get("/categories/7"),
        await staff.post("/categories/7", name="Dogs"),
        await staff.post("/categories/7/delete", version="x"),
    ):
        assert response.status_code == 404
        assert "There is no category 7; somebody may have deleted it" in words(response)


async def test_an_invalid_cursor_says_so(staff: Visitor) -> None:
    page = await staff.get("/categories", cursor="x")
    assert page.status_code == 400
    assert "Cursor: expected the cursor" in words(page)


@pytest.mark.parametrize("scopes", [["pets:read"], ["pets:write"]])
async def test_nobody_does_more_than_the_key_may(
    service: Service, staff: Visitor, scopes: list[Scope]
) -> None:
    await added(staff)
    visitor = await signed_in(service, scopes=frozenset(scopes))
    may_read = scopes == ["pets:read"]
    for path in ("/categories", "/categories/1"):
        page = await visitor.get(path)
        assert page.status_code == (200 if may_read else 403)
        assert buttons_of(page) == []
    if may_read:
        for path in ("/categories", "/categories/1", "/categories/1/delete"):
            assert (await visitor.post(path, name="Cats")).status_code == 403


async def test_an_added_category_is_in_the_list(service: Service, staff: Visitor) -> None:
    assert "There are no categories here." in (await staff.get("/categories")).text
    await added(staff, "Dogs", "Great and small.")
    page = (await staff.get("/categories")).text
    assert '<a href="/console/categories/1"><bdi>Dogs</bdi></a>' in page
    assert "Great and small." in page
    assert await stored(service, staff) == [
        {"id": 1, "name": "Dogs", "description": "Great and small."}
    ]


async def test_the_list_has_pages(staff: Visitor) -> None:
    for number in range(51):
        await staff.post("/categories", name=f"Category {number:02}")
    first = (await staff.get("/categories")).text
    target = first.partition('" rel="next"')[0].rpartition('href="/console')[2]
    assert "Category 49" in first
    assert "Category 50" not in first
    assert "Category 50" in (await staff.get(target)).text


async def test_a_category_that_was_added_by_mistake_is_deleted_with_undo(
    service: Service, staff: Visitor
) -> None:
    page = await succeed(staff, await staff.get("/categories"), "Add the category", name="Dogs")
    assert "Dogs is now category 1." in words(page)
    assert "Dogs is deleted." in words(await succeed(staff, page, "Undo"))
    assert await stored(service, staff) == []


async def test_a_renamed_category_gets_its_name_back_with_undo(
    service: Service, staff: Visitor
) -> None:
    opened = await added(staff)
    assert '<a href="/console/categories">All categories</a>' in opened.text
    page = await succeed(staff, opened, "Save", name="Hounds")
    assert "Dogs is now called Hounds." in words(page)
    page = await succeed(staff, page, "Undo")
    assert "Dogs is as it was before." in words(page)
    assert await stored(service, staff) == [{"id": 1, "name": "Dogs"}]


async def test_a_description_is_added_and_removed(service: Service, staff: Visitor) -> None:
    page = await succeed(staff, await added(staff), "Save", description="All.")
    assert "Dogs is changed." in words(page)
    assert await stored(service, staff) == [{"id": 1, "name": "Dogs", "description": "All."}]
    await succeed(staff, page, "Undo")
    assert await stored(service, staff) == [{"id": 1, "name": "Dogs"}]


async def test_a_form_in_which_nothing_was_changed_changes_nothing(staff: Visitor) -> None:
    page = await succeed(staff, await added(staff), "Save")
    assert "Nothing was changed." in words(page)


async def test_a_new_name_that_is_taken_or_missing_is_refused(staff: Visitor) -> None:
    await added(staff)
    await added(staff, "Cats")
    page = await staff.get("/categories/2")
    for name, status, said in (
        ("dogs", 409, "category 1 already has the name"),
        ("", 400, "Name: expected 1 to 100 characters"),
    ):
        refused = await press(staff, page, "Save", name=name)
        assert refused.status_code == status
        assert said in words(refused)
        assert form_of(refused, "Save").fields["name"] == name


async def test_a_category_with_animals_is_not_deleted(staff: Visitor) -> None:
    page = await added(staff)
    await staff.submit("/pets", name="Bella", categoryId="1", status="available")
    refused = await press(staff, page, "Delete Dogs")
    assert refused.status_code == 409
    assert "Animals belong to this category, so it cannot be deleted." in words(refused)
    assert 'href="/console/pets?categoryId=1"' in refused.text


async def test_a_deleted_category_is_added_again_with_a_new_number(
    service: Service, staff: Visitor
) -> None:
    page = await succeed(staff, await added(staff, "Dogs", "All."), "Delete Dogs")
    assert "Dogs is deleted." in words(page)
    await succeed(staff, page, "Add it again, with a new number")
    assert await stored(service, staff) == [{"id": 2, "name": "Dogs", "description": "All."}]


async def test_changes_are_recorded_as_those_of_any_client(
    service: Service, staff: Visitor
) -> None:
    page = await succeed(staff, await added(staff), "Save", name="Hounds")
    await succeed(staff, page, "Undo")
    await succeed(staff, await staff.get("/categories/1"), "Delete Dogs")
    types = [event["type"] for event in await stored(service, staff, "/v1/events")]
    assert types == [
        "category.created",
        "category.updated",
        "category.updated",
        "category.deleted",
    ]


async def test_a_conflict_tells_what_the_other_did_and_keeps_what_was_typed(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Save", name="Hounds")
    refused = await press(staff, page, "Save", description="All.")
    assert refused.status_code == 412
    assert "Somebody else changed this category while you were looking at it." in words(refused)
    assert now(refused, "Name") == ["Dogs", "Hounds", "the same as now"]
    await succeed(staff, refused, "Save mine anyway")
    assert await stored(service, staff) == [{"id": 1, "name": "Hounds", "description": "All."}]


async def test_a_deletion_of_what_somebody_changed_is_a_conflict(
    staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Save", name="Hounds")
    refused = await press(staff, page, "Delete Dogs")
    assert refused.status_code == 412
    assert now(refused, "Name") == ["Dogs", "Hounds", "the same as now"]
    assert "The page shows it as it is now." in words(refused)


async def test_a_category_that_was_deleted_meanwhile_can_be_added_again_as_typed(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Delete Dogs")
    refused = await press(staff, page, "Save", name="Hounds")
    assert refused.status_code == 404
    assert "Somebody else deleted this category" in words(refused)
    await succeed(staff, refused, "Add the category")
    assert await stored(service, staff) == [{"id": 2, "name": "Hounds"}]
