"""Several pets changed or deleted at once, and that taken back."""

import asyncio
import re

import httpx
import pytest

from petstore.databases.contract import Statement
from petstore.pets.model import NewPet
from petstore.pets.pages import MAX_SELECTED
from support.cases import case
from support.changes import create_pets
from support.history import published
from support.page_forms import buttons_of, form_of, form_to, press, succeed
from support.service import Service
from support.stores import do
from support.visitor import Visitor, signed_in_person, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

PATH, DELETE, UNDO = "/pets/selection", "/pets/selection/delete", "/pets/selection/undo"
AGAIN = "Add them again, with new numbers"


async def added(visitor: Visitor, *statuses: str) -> None:
    """Add a pet with each status, named by its number."""
    for number, status in enumerate(statuses, 1):
        body = {"name": f"Pet {number}", "categoryId": "1", "status": status}
        await visitor.submit("/pets", **body, once=str(number))


async def boxes(visitor: Visitor, **query: str) -> dict[int, str]:
    """Return the values of the checkboxes of the list, by the ids of their pets."""
    page = await visitor.get("/pets", **query)
    values = re.findall(r'<input class="pick" [^>]*name="pet" value="([^"]+)"', page.text)
    return {int(value.partition(".")[0]): value for value in values}


async def send(visitor: Visitor, path: str, ids: list[int], **fields: str) -> httpx.Response:
    """Select pets in the list, and send the form."""
    shown = await boxes(visitor)
    return await visitor.post(path, pet=[shown[pet_id] for pet_id in ids], **fields)


async def page_after(visitor: Visitor, response: httpx.Response) -> httpx.Response:
    assert response.status_code == 303, response.text
    visitor.client.cookies.update(response.cookies)  # after two clicks, the notice of this one
    return await visitor.client.get(response.headers["location"])


async def stored(service: Service) -> dict[int, tuple[str, int, str | None]]:
    rows = await service.store.read(Statement("SELECT id, name, category_id, status FROM pets"))
    return {pet_id: (name, category, status) for pet_id, name, category, status in sorted(rows)}


async def statuses(service: Service) -> list[str | None]:
    return [status for _, _, status in (await stored(service)).values()]


def reasons(page: httpx.Response) -> dict[int, str]:
    """Return why pets were left as they are, by their ids."""
    rows = re.findall(
        r'href="/console/pets/(\d+)">.*?</td>\s*<td[^>]*>(.*?)</td>', page.text, re.DOTALL
    )
    return {int(pet_id): reason for pet_id, reason in rows}


async def test_who_may_not_change_pets_has_no_checkboxes(service: Service, grace: Visitor) -> None:
    await added(grace, "available")
    viewer = await signed_in_person(service, "viewer", "Vi")
    page = (await viewer.get("/pets")).text
    assert "Pet 1" in page
    for markup in ('name="pet"', 'id="selection"', "Select all"):
        assert markup not in page


@pytest.mark.each_database
async def test_the_status_of_several_has_one_undo(service: Service, grace: Visitor) -> None:
    await added(grace, "available", "pending", "available", "available")
    page = await page_after(grace, await send(grace, PATH, [1, 2, 3], status="sold"))
    assert "3 pets are sold." in words(page)
    assert await statuses(service) == ["sold", "sold", "sold", "available"]
    await published(service.store)
    page = await press(grace, page, "Undo")
    assert "2 pets are as before." in words(page)
    assert reasons(page) == {2: "Sold can become available, not pending"}
    assert await statuses(service) == ["available", "sold", "available", "available"]
    page = await succeed(grace, page, "Redo")
    assert "2 pets are as before." in words(page)
    assert await statuses(service) == ["sold", "sold", "sold", "available"]
    await succeed(grace, page, "Undo")
    assert await statuses(service) == ["available", "sold", "available", "available"]


async def test_what_could_not_be_done_is_listed_with_its_reason(grace: Visitor) -> None:
    await added(grace, "available", "available", "available", "available", "sold", "available")
    seen = [*(await boxes(grace)).values()]
    await grace.submit("/pets/1/reserve", once="a")
    reserved = (await boxes(grace))[1]
    await grace.submit("/pets/2", name="Bella")
    await grace.submit("/pets/3/delete")
    fields = {"pet": [*seen[:-1], reserved], "status": "pending"}
    page = await grace.post(PATH, **fields)
    assert page.status_code == 200
    assert "2 pets are pending. 1 pet was pending already." in words(page)
    assert "3 pets were left as they are" in words(page)
    assert reasons(page) == {
        2: "Another person changed it meanwhile.",
        3: "It was deleted meanwhile.",
        5: "Sold can become available, not pending",
    }
    assert "Pet 3" in words(page)
    assert "Bella" in words(page)
    page = await succeed(grace, page, "Undo")
    assert "2 pets are as before." in words(page)
    page = await send(grace, PATH, [1], status="sold")
    assert reasons(page) == {1: "An order reserves it. Deliver or cancel the order first."}
    assert "0 pets are sold." in words(page)
    assert "1 pet was left as it is" in words(page)
    assert [each for each in buttons_of(page) if each == "Undo"] == []


async def test_the_result_leads_back_to_the_list_as_it_was_filtered(grace: Visitor) -> None:
    await added(grace, "available", "available")
    page = await grace.get("/pets", status="available", name="Pet")
    bar = form_to(page, PATH)
    assert bar.fields["back"] == "/pets?name=Pet&status=available"
    fields = bar.fields | {"pet": [*(await boxes(grace)).values()], "status": "sold"}
    done = await grace.post(PATH, **fields)
    target = done.headers["location"]
    assert target == "/console/pets?name=Pet&status=available"
    undone = await press(grace, await page_after(grace, done), "Undo")
    assert undone.headers["location"] == "/console/pets?name=Pet&status=available"
    for back in ("https://evil.example/", "//evil.example", "/pets\r\nx: y", "x"):
        done = await send(grace, PATH, [1], status="sold", back=back)
        assert done.headers["location"] == "/console/pets"


async def test_status_and_category_are_changed_and_a_refused_change_keeps_what_was_typed(
    service: Service, grace: Visitor
) -> None:
    await grace.submit("/categories", name="Cats")
    await added(grace, "available", "available", "available")
    refusals: list[tuple[dict[str, str], str]] = [
        ({}, "Choose a status or a category first"),
        ({"categoryId": "Dragons", "status": "sold"}, "Category: expected a whole number"),
        *(({"status": odd}, "") for odd in ("x", "None", "\0")),
    ]
    for fields, said in refusals:
        with case(fields):
            asked = await send(grace, PATH, [1, 3], **fields)
            assert asked.status_code == 400
            assert said in words(asked)
            assert ("Pet 1" in words(asked), "Pet 2" in words(asked)) == (True, False)
            kept = form_of(asked, "Change 2 pets").fields
            assert kept["categoryId"] == fields.get("categoryId", "")
            assert await statuses(service) == ["available"] * 3
    page = await succeed(grace, asked, "Change 2 pets", status="sold", categoryId="")
    assert "2 pets are sold." in words(page)
    assert await statuses(service) == ["sold", "available", "sold"]
    changes: list[tuple[dict[str, str], str, object]] = [
        ({"status": "none"}, "1 pet is without a status.", ("Pet 2", 1, None)),
        ({"categoryId": "2"}, "1 pet is changed.", ("Pet 2", 2, "available")),
        ({"categoryId": "2", "status": "sold"}, "1 pet is changed.", ("Pet 2", 2, "sold")),
    ]
    for fields, told, expected in changes:
        with case(fields):
            page = await page_after(grace, await send(grace, PATH, [2], **fields))
            assert told in words(page)
            assert (await stored(service))[2] == expected
            await succeed(grace, page, "Undo")
            assert (await stored(service))[2] == ("Pet 2", 1, "available")


async def test_a_double_click_and_two_tabs_change_and_delete_once_and_each_is_added_again(
    service: Service, grace: Visitor
) -> None:
    for once in ("a", "b"):
        await grace.submit("/pets", name="Bella", categoryId="1", status="available", once=once)
    pages: dict[str, list[httpx.Response]] = {}
    for path, clicks in ((PATH, 3), (DELETE, 2)):
        fields = {"pet": [*(await boxes(grace)).values()], "status": "sold"}
        sent = await asyncio.gather(*(grace.post(path, **fields) for _ in range(clicks)))
        for done in sent:
            page = await page_after(grace, done)
            pages.setdefault(words(page)[:22], []).append(page)
    assert {told: len(shown) for told, shown in pages.items()} == {
        "2 pets are sold. This ": 1,
        "2 pets were sold alrea": 2,
        "2 pets are deleted. Ad": 1,
        "2 pets were deleted al": 1,
    }
    sql = "SELECT resource, actor, request_id FROM events WHERE type = 'pet.updated'"
    events = await service.store.read(Statement(sql))
    actor = f"person/{grace.key_id}"
    assert sorted(each[:2] for each in events) == [("pet/1", actor), ("pet/2", actor)]
    assert len({each[2] for each in events}) == 1
    await succeed(grace, pages["2 pets are deleted. Ad"][0], AGAIN)
    assert [*await stored(service)] == [3, 4]


async def test_an_undo_is_for_the_one_who_did_it_and_leaves_what_was_changed_since(
    service: Service, grace: Visitor
) -> None:
    await added(grace, "available", "available", "available")
    page = await page_after(grace, await send(grace, PATH, [1, 2, 3], status="sold"))
    await grace.submit("/pets/1", name="Bella")
    await grace.submit("/pets/2/delete")
    other = await signed_in_person(service, "clerk", "Ada")
    changed = "Another person changed it meanwhile."
    left = await other.post(UNDO, **form_of(page, "Undo").fields)
    assert reasons(left) == dict.fromkeys((1, 2, 3), changed)
    assert await statuses(service) == ["sold", "sold"]
    left = await press(grace, page, "Undo")
    assert "1 pet is as before." in words(left)
    assert reasons(left) == dict.fromkeys((1, 2), changed)
    assert "1 pet was as before already." in words(await press(grace, page, "Undo"))
    assert await statuses(service) == ["sold", "available"]
    await service.store.write(do("DELETE FROM events"))
    left = await press(grace, page, "Undo")
    assert reasons(left) == dict.fromkeys((1, 2, 3), "Its history is no longer kept")


@pytest.mark.each_database
async def test_several_are_deleted_and_added_again_but_for_a_reserved_or_changed_one(
    service: Service, grace: Visitor
) -> None:
    await added(grace, "available", "", "sold", "available", "available")
    asked = await send(grace, PATH, [3, 2], delete="1", status="sold")
    assert "Delete 2 pets?" in words(asked)
    assert "Pet 2" in words(asked)
    assert "Pet 1" not in words(asked)
    assert len(await stored(service)) == 5
    page = await succeed(grace, asked, "Delete 2 pets")
    assert "2 pets are deleted." in words(page)
    assert [*await stored(service)] == [1, 4, 5]
    await published(service.store)
    for _ in range(2):  # a second click adds nothing
        again = await succeed(grace, page, AGAIN)
        assert "2 pets are in the store again, with a new number." in words(again)
        assert "Redo" not in buttons_of(again)
    found = await stored(service)
    assert (found[6], found[7]) == (("Pet 2", 1, None), ("Pet 3", 1, "sold"))
    await grace.submit("/pets/1/reserve", once="a")
    asked = await send(grace, PATH, [1, 4, 5, 6], delete="1")
    await grace.submit("/pets/4", name="Bella")
    await grace.submit("/pets/5/delete")
    left = await press(grace, asked, "Delete 4 pets")
    assert "1 pet is deleted. 1 pet was deleted already." in words(left)
    assert reasons(left) == {
        1: "An order reserves it. Deliver or cancel the order first.",
        4: "Another person changed it meanwhile.",
    }
    assert [*await stored(service)] == [1, 4, 7]


async def test_all_that_match_are_changed_up_to_500(service: Service, grace: Visitor) -> None:
    news = [NewPet(f"Pet {n}", 1, "sold" if n % 10 else "available") for n in range(1, 601)]
    await service.store.write(create_pets(news))
    page = await grace.get("/pets", status="available", name="pet")
    assert "Select the first 500 that match" in words(page)  # a search is not counted
    page = await grace.get("/pets", status="sold")
    assert "Select the first 500 of 540 pets that match" in words(page)
    assert "Select all 60 pets that match" in words(await grace.get("/pets", status="available"))
    fields = form_to(page, PATH).fields | {"all": "1"}
    page = await page_after(grace, await grace.post(PATH, **fields | {"status": "available"}))
    assert "500 pets are available. More match: these were the first 500." in words(page)
    page = await succeed(grace, page, "Undo")
    assert "500 pets are as before." in words(page)
    available = form_to(await grace.get("/pets", status="available"), PATH).fields
    asked = await grace.post(PATH, **available | {"all": "1", "delete": "1"})
    page = await succeed(grace, asked, "Delete 60 pets")
    assert "60 pets are deleted." in words(page)
    assert await statuses(service) == ["sold"] * 540
    page = await succeed(grace, page, AGAIN)
    assert await statuses(service) == ["sold"] * 540 + ["available"] * 60
    await succeed(
        grace, await grace.post(PATH, **available | {"all": "1", "delete": "1"}), "Delete 60 pets"
    )
    gone = await grace.post(PATH, **available | {"all": "1", "status": "sold"})
    assert (gone.status_code, "No pet matches any more" in words(gone)) == (400, True)


async def test_a_hostile_selection_or_undo_gets_a_clear_error(
    service: Service, grace: Visitor
) -> None:
    await added(grace, "available")
    odd = (".", "0.12345678", "-1.12345678", "\N{FULLWIDTH DIGIT ONE}.1", f"{2**63}.12345678", "x")
    cases: list[tuple[list[str], str]] = [
        *(([], "Select a pet first"), ([".", "1.x"], "Select pets of the list")),
        *(([each], "Select pets of the list") for each in odd),
        ([" ".join(f"{n}.x" for n in range(1, MAX_SELECTED + 2))], "Select at most 500 pets"),
        ([str(number) for number in range(1_000)], "expected at most 200 fields"),
        ([str(number) for number in range(10_000)], "expected at most 65536 bytes"),
        *(([each], "") for each in ("1", "1.x", f"{2**63 - 1}.12345678")),
        (["1.x"] * 150, ""),
    ]
    for path in (PATH, DELETE):
        for pets, message in cases:
            with case(path, pets):
                response = await grace.post(path, pet=pets, status="sold")
                assert response.status_code in ((400, 413) if message else (200, 303))
                assert not message or message in words(response)
    many, long = " ".join(map(str, range(1, 600))), "1 " * 10_000 + "\N{SNOWMAN}"
    for fields in ({}, *({"ids": ids} for ids in ("", "x", "0", many, long))):
        assert (await grace.post(UNDO, **fields)).status_code in (303, 400)
    assert await statuses(service) == ["available"]
