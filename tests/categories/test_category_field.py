"""The field of a category in the forms of pets: a list, or a name that is typed."""

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

LISTED = 30
NEW = {"name": "Bella", "status": "available"}


@pytest.fixture
async def many(service: Service) -> None:
    """One category more than a list has."""
    names = [
        *(f"Fish of the pond {number:02}" for number in range(LISTED - 1)),
        "Dogs",
        "Shetland ponies",
    ]
    await add(service.store, *names)


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


# Up to thirty


async def test_up_to_thirty_categories_are_a_list_by_name(service: Service, staff: Visitor) -> None:
    await add(service.store, "dogs", "Cats", *(f"Kind {number:02}" for number in range(28)))
    page = (await staff.get("/pets/new")).text
    assert [words for _, words in choices(page)] == [
        "Choose…",
        "Cats",
        "dogs",
        *(f"Kind {number:02}" for number in range(28)),
        "New category…",
    ]
    await add(service.store, "One more")
    assert choices((await staff.get("/pets/new")).text) == []


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


@pytest.mark.parametrize("name", ["7", " Cats", "+"])
async def test_a_category_whose_name_cannot_be_sent_is_chosen_by_its_number(
    service: Service, staff: Visitor, name: str
) -> None:
    await add(service.store, name)
    listed = choices((await staff.get("/pets/new")).text)
    assert ("1", name) in listed
    await staff.submit("/pets", categoryId="1", **NEW)
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [1]


# A new category


async def test_the_list_adds_a_category_with_the_pet(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    page = await staff.get("/pets/new")
    added = await succeed(
        staff, page, "Add the pet", name="Bella", categoryId="+", addedCategory="Cats"
    )
    assert "Added Bella (#1), in the new category Cats." in words(added)
    assert form_of(added, "Add the pet").fields["categoryId"] == "Cats"
    assert [each["name"] for each in await stored(service, staff, "/v1/categories")] == [
        "Dogs",
        "Cats",
    ]
    events = (await stored(service, staff, "/v1/events"))[-2:]
    assert [event["type"] for event in events] == ["category.created", "pet.created"]
    assert {event["actor"]["id"] for event in events} == {staff.key_id}


async def test_a_new_category_needs_a_name(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    refused = await staff.post("/pets", categoryId="+", **NEW)
    assert "New category: expected the name" in words(refused)
    assert '<option value="+" selected>' in refused.text
    too_long = await staff.post("/pets", categoryId="+", addedCategory="x" * 101, **NEW)
    assert "New category: expected 1 to 100 characters" in words(too_long)
    assert await stored(service, staff) == []


@pytest.mark.each_database
async def test_two_people_add_the_same_category_once(service: Service, staff: Visitor) -> None:
    sent = {"categoryId": "Ferrets", "addedCategory": "Ferrets"}
    await asyncio.gather(*(staff.submit("/pets", **NEW, **sent, once=once) for once in "abcdef"))
    assert [each["name"] for each in await stored(service, staff, "/v1/categories")] == ["Ferrets"]
    assert {pet["categoryId"] for pet in await stored(service, staff)} == {1}


async def test_no_category_is_added_for_a_pet_that_is_refused(
    service: Service, staff: Visitor
) -> None:
    sent = {"name": " ", "categoryId": "Ferrets", "addedCategory": "Ferrets", "status": ""}
    refused = await staff.post("/pets", **sent)
    assert "Fix 2 fields" in words(refused)
    assert await stored(service, staff, "/v1/categories") == []


async def test_a_failure_after_adding_a_category_is_told(service: Service, staff: Visitor) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1, "available")]))
    page = await staff.get("/pets/1")
    await succeed(await signed_in(service), page, "Save", name="Rex")
    refused = await press(staff, page, "Save", categoryId="+", addedCategory="Cats")
    assert refused.status_code == 412
    assert "Cats is a category now." in words(refused)
    await succeed(staff, refused, "Save mine anyway")
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [2]


async def test_who_may_not_add_categories_is_not_offered_it(service: Service) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    reader = await signed_in(service, scopes=frozenset({"pets:read"}))
    assert choices((await reader.get("/pets")).text) == [("", "any"), ("Dogs", "Dogs")]
    refused = await reader.get("/pets", categoryId="Dog")
    assert "Use Dogs" in words(refused)
    assert "as a category" not in words(refused)


# Beyond thirty, and names that no category has


@pytest.mark.usefixtures("many")
async def test_more_categories_than_a_list_has_are_typed(service: Service, staff: Visitor) -> None:
    page = (await staff.get("/pets/new")).text
    assert '<datalist id="categoryId-options"><option value="Dogs">' in page
    assert 'list="categoryId-options"' in page
    await staff.submit("/pets", categoryId="shetland pONIES", **NEW)
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [LISTED + 1]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("dog", "Dogs"),
        ("SHETLAND", "Shetland ponies"),
    ],
)
async def test_a_name_that_no_category_has_is_answered_with_what_it_may_mean(
    service: Service, staff: Visitor, typed: str, meant: str
) -> None:
    refused = await staff.post("/pets", categoryId=typed, **NEW)
    assert refused.status_code == 400
    assert f"There is no category “{typed}”. Did you mean {meant}?" in words(refused)
    assert form_of(refused, "Add the pet").fields.items() >= {"name": "Bella"}.items()
    assert f'name="instead_categoryId" value="{meant}"' in refused.text
    await succeed(staff, refused, "Add the pet", instead_categoryId=meant)
    names = {each["id"]: each["name"] for each in await stored(service, staff, "/v1/categories")}
    (pet,) = await stored(service, staff)
    assert names.get(pet["categoryId"], meant) == meant


@pytest.mark.usefixtures("many")
async def test_a_name_that_no_category_has_can_be_added(staff: Visitor) -> None:
    refused = await staff.post("/pets", categoryId="Ferrets", **NEW)
    assert "There is no category “Ferrets”" in words(refused)
    assert "Did you mean" not in words(refused)
    assert 'name="addedCategory" value="Ferrets">Add “' in refused.text
    added = await succeed(staff, refused, "Add the pet", addedCategory="Ferrets")
    assert "in the new category Ferrets" in words(added)


@pytest.mark.parametrize("typed", ["999", "-1", "0"])
async def test_an_unknown_number_is_refused(service: Service, staff: Visitor, typed: str) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    refused = await staff.post("/pets", categoryId=typed, **NEW)
    assert f"Category: there is no category “{typed}”" in words(refused)
    page = await staff.get("/pets/1")
    refused = await press(staff, page, "Save", categoryId=typed)
    assert refused.status_code == 400
    assert [pet["categoryId"] for pet in await stored(service, staff)] == [1]


async def test_an_undo_gives_back_a_number_that_is_no_category(
    service: Service, staff: Visitor
) -> None:
    await add(service.store, "Dogs")
    await service.store.write(create_pets([NewPet("Bella", 7)]))
    changed = await succeed(staff, await staff.get("/pets/1"), "Save", categoryId="Dogs")
    undone = await succeed(staff, changed, "Undo")
    deleted = await succeed(staff, undone, "Redo")
    deleted = await succeed(staff, await succeed(staff, deleted, "Undo"), "Delete Bella")
    await succeed(staff, deleted, "Add it again, with a new number")
    assert await stored(service, staff) == [{"id": 2, "name": "Bella", "categoryId": 7}]


async def test_a_hostile_name_is_shown_as_text(service: Service, staff: Visitor) -> None:
    name = "<script>ran=1</script>\u202e\"'"
    await add(service.store, name, *(f"Kind {number}" for number in range(LISTED)))
    refused = await staff.post("/pets", categoryId="<script>ran=1", **NEW)
    assert "<script>ran" not in refused.text
    await succeed(staff, refused, "Add the pet", instead_categoryId=name)
    shown = await staff.post("/pets", categoryId="x" * 9000, **NEW)
    assert "x" * 99 + "…" in words(shown)
    assert "as a category" not in words(shown)


# Suggestions


@pytest.mark.usefixtures("many")
async def test_names_that_begin_with_what_is_typed_are_suggested(staff: Visitor) -> None:
    assert (await staff.get("/categories/names", name="fi")).json()[0] == "Fish of the pond 00"
    assert (await staff.get("/categories/names", name="SHET")).json() == ["Shetland ponies"]
    assert (await staff.get("/categories/names", name="x")).json() == []
    assert len((await staff.get("/categories/names", name="")).json()) == LISTED + 1
