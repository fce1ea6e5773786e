"""The pages of pets."""

import asyncio
import csv
import io
import re
from typing import Any

import httpx
import pytest

from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.page_forms import buttons_of, conflict_of, form_of, press, succeed
from support.service import Service
from support.stores import do
from support.visitor import Visitor, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


async def stored(service: Service, visitor: Visitor, path: str = "/v1/pets") -> Any:
    """Return what a list of the interface has."""
    return (await service.request("GET", path, visitor.token)).json()


async def added(visitor: Visitor, **fields: str) -> httpx.Response:
    """Add Bella, and return her page."""
    await visitor.submit("/pets", **BELLA | fields)
    return await visitor.get("/pets/1")


# Adding


async def test_a_pet_with_an_invalid_field_is_not_added(service: Service, staff: Visitor) -> None:
    for field, typed, said in (
        ("name", "", "Name: expected 1 to 255 characters, not only spaces"),
        ("categoryId", "", "Category: choose a category"),
        ("categoryId", "a\0b", "Category: expected a whole number"),
        ("categoryId", "9" * 19, "Category: expected a whole number"),
        ("status", "lost", "Status: expected one of"),
    ):
        with case(field, typed):
            refused = await staff.post("/pets", **BELLA | {field: typed})
            assert refused.status_code == 400
            assert said in words(refused)
            assert f'aria-describedby="{field}-problem"' in refused.text
            if typed not in {"a\0b", "lost"}:
                kept = form_of(refused, "Add the pet").fields
                assert kept.items() >= (BELLA | {field: typed}).items()
    refused = await staff.post("/pets", name=" ", categoryId="", status="lost")
    assert "Fix 3 fields" in words(refused)
    assert re.findall(r'<a href="#(\w+)">', refused.text.partition("<main")[2])[:3] == [*BELLA]
    for field in BELLA:
        assert f'id="{field}-problem"' in refused.text
    assert refused.text.count('aria-invalid="true"') == 3
    assert await stored(service, staff) == []


async def test_the_form_is_ready_for_the_next_pet(service: Service, staff: Visitor) -> None:
    assert form_of(await staff.get("/pets/new"), "Add the pet").fields["status"] == "available"
    pasted = "\tMr.\tDarcy\n"  # from a spreadsheet
    page = await staff.submit("/pets", **BELLA | {"name": pasted, "status": ""})
    kept = form_of(page, "Add the pet").fields
    assert (kept["name"], kept["categoryId"], kept["status"]) == ("", "1", "")
    assert [pet["name"] for pet in await stored(service, staff)] == ["Mr. Darcy"]
    assert "Added Mr. Darcy (#1)." in words(page)
    assert "Mr. Darcy is deleted." in words(await succeed(staff, page, "Undo"))
    assert await stored(service, staff) == []


def added_last(page: httpx.Response) -> list[str]:
    """Return what the page tells of the pets that were added last."""
    panel = page.text.partition('<section class="panel" id="added"')[2].partition("</section>")[0]
    lines = [part.partition("</li>")[0] for part in panel.split("<li ")[1:]]
    return [
        " ".join(re.sub("<[^>]*>|[\u2068\u2069]", "", line[line.index(">") + 1 :]).split())
        for line in lines
    ]


@pytest.mark.each_database
async def test_the_last_ten_that_the_person_added_stand_below_each_with_undo(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    assert "Recently added" not in words(await staff.get("/pets/new"))
    for number in range(11):
        await staff.submit("/pets", **BELLA | {"name": f"Rex {number}"})
    page = await other.submit("/pets", **BELLA)
    assert added_last(page) == ["Bella Dogs, pet 12 just now Undo for Bella"]
    await succeed(staff, await staff.get("/pets/12"), "Save", name="Bello")
    assert added_last(await other.get("/pets/new")) == ["Bello Dogs, pet 12 just now"]
    assert (await press(other, page, "Undo for Bella")).status_code == 412
    service.clock.advance(120)
    page = await staff.get("/pets/new")
    assert added_last(page) == [
        f"Rex {number} Dogs, pet {number + 1} 2 minutes ago Undo for Rex {number}"
        for number in range(10, 0, -1)
    ]
    assert '<a href="/console/pets/11"><bdi>Rex 10</bdi></a>' in page.text
    undone = await succeed(staff, page, "Undo for Rex 10")
    assert undone.url.path == "/console/pets/new"
    assert "Rex 10 is deleted." in words(undone)
    kept = form_of(undone, "Add the pet").fields
    assert (kept["categoryId"], kept["status"]) == ("1", "available")
    assert added_last(undone)[0].startswith("Rex 9 ")


# Finding


async def test_pets_are_found_by_status_category_and_name(service: Service, staff: Visitor) -> None:
    await staff.submit("/pets", **BELLA | {"name": "Mr. D\u00e4rcy"})
    await service.store.write(create_pets([NewPet("Rex", 2, "sold")]))
    page = (await staff.get("/pets")).text
    assert page.index("Rex") < page.index("Mr. D\u00e4rcy")  # the newest first
    assert "Name or number" in page
    for wanted in (
        *({"status": "available"}, {"categoryId": "1"}),
        *({"name": name} for name in ("mr", "darcy m", "MR. DAR")),
    ):
        page = (await staff.get("/pets", **wanted)).text
        assert "<bdi>Mr. D\u00e4rcy</bdi>" in page
        assert "<bdi>Dogs</bdi>" in page
        assert "Rex" not in page
    for field, typed, said in (
        ("categoryId", "dragons", "Category: expected a whole number"),
        ("status", "lost", "Status: expected one of"),
        ("cursor", "x", "Cursor: expected the cursor"),
        ("name", "x" * 101, "Name or number: expected 1 to 100 characters"),
    ):
        refused = await staff.get("/pets", **{field: typed})
        assert refused.status_code == 400
        assert said in words(refused)
        assert field in {"cursor", "status"} or f'value="{typed}"' in refused.text


async def test_pets_are_counted_up_to_ten_thousand(service: Service, staff: Visitor) -> None:
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    for count, told in ((10_000, "10\u202f000 pets"), (1, "more than 10\u202f000 pets")):
        sql = f"INSERT INTO pets (name, category_id) {rows} SELECT 'Rex', 1 FROM n"  # noqa: S608
        await service.store.write(do(sql, count))
        page = await staff.get("/pets")
        assert f">{told}</p>" in re.sub("</?data[^>]*>", "", page.text)


async def test_a_number_leads_to_the_pet_unless_a_name_has_it_too(staff: Visitor) -> None:
    await added(staff)
    for number in ("1", "#1", "Pet 1", "pet #1", "0001"):
        found = await staff.get("/pets", name=number)
        assert found.headers["location"] == "/console/pets/1", number
    for text in ("2", "9" * 19, "Pet", "1 2", "\uff11"):
        found = await staff.get("/pets", name=text)
        assert (found.status_code, "Pet 2:" in found.text) == (200, False), text
    await staff.submit("/pets", **BELLA | {"name": "1st"})
    page = (await staff.get("/pets", name="1")).text
    assert '<a href="/console/pets/1" autofocus>Pet 1: <bdi>Bella</bdi></a>' in page
    assert "<bdi>1st</bdi>" in page


async def test_the_list_keeps_its_place(service: Service, staff: Visitor) -> None:
    await service.store.write(create_pets([NewPet("Rex", 1, "sold")] * 101))
    pages = [await staff.get("/pets", status="sold")]
    while 'rel="next"' in pages[-1].text:
        target = pages[-1].text.partition('rel="next"')[0].rpartition('href="/console')[2]
        pages.append(await staff.get(target.partition('"')[0].replace("&amp;", "&")))
    assert len(pages) == 3
    place = str(pages[2].url.raw_path, "ascii")
    assert "status=sold" in place
    await staff.submit("/pets/1", name="Bella")
    assert f'href="{place.replace("&", "&amp;")}">All pets' in (await staff.get("/pets/1")).text
    deleted = await staff.post("/pets/1/delete")
    assert deleted.headers["location"] == place
    # The last page is empty now.
    before = (await staff.client.get(place)).headers["location"]
    assert before == f"/console/pets?status=sold&cursor={pages[1].url.params['cursor']}"
    page = await staff.client.get(before)
    assert "Bella is deleted." in words(page)
    assert page.text.count('class="pick"') == 50
    await staff.get("/pets")
    assert 'href="/console/pets">All pets' in (await staff.get("/pets/2")).text


# One pet


@pytest.mark.parametrize(
    ("status", "buttons", "choices"),
    [
        ("available", ["Sell Bella", "Reserve"], ["available", "pending", "sold", ""]),
        ("pending", ["Sell Bella", "Reserve"], ["pending", "available", "sold"]),
        ("sold", ["Sell Bella"], ["sold", "available"]),
        ("", ["Sell Bella", "Reserve"], ["", "available", "pending", "sold"]),
    ],
)
async def test_only_allowed_status_changes_are_offered(
    staff: Visitor, status: str, buttons: list[str], choices: list[str]
) -> None:
    page = await added(staff, status=status)
    assert buttons_of(page) == [*buttons, "Save", "Delete Bella"]
    select = page.text.partition('<select id="status"')[2].partition("</select>")[0]
    assert [part.partition('"')[0] for part in select.split('<option value="')[1:]] == choices


async def test_a_refused_change_keeps_the_input_and_what_was_opened(
    staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Save", name="Max")
    refused = await press(staff, page, "Save", name="Rex", categoryId="dragons")
    assert refused.status_code == 400
    sent = form_of(refused, "Save").fields
    assert (sent["name"], sent["categoryId"], sent["was_name"]) == ("Rex", "dragons", "Bella")
    assert sent["version"] == form_of(page, "Save").fields["version"]
    page = await succeed(staff, await staff.get("/pets/1"), "Save", status="")
    assert "Max is without a status." in words(page)
    page = await succeed(staff, page, "Save", status="sold")
    refused = await press(staff, page, "Save", status="pending")
    assert refused.status_code == 409
    assert "Status: sold can become available, not pending" in words(refused)


async def test_only_edited_fields_are_changed_and_undone(service: Service, staff: Visitor) -> None:
    await staff.submit("/categories", name="Cats")
    # The field shows no line break; it must not vanish because somebody sold the pet.
    body = {"name": "Bella\nthe Great", "categoryId": 1}
    await service.request("POST", "/v1/pets", staff.token, json=body)
    page = await succeed(staff, await staff.get("/pets/1"), "Save")
    assert "Nothing was changed." in words(page)
    assert "Undo" not in words(page)
    assert await history(service, staff) == ["pet.created"]
    page = await succeed(staff, page, "Save", status="sold")
    assert await stored(service, staff) == [{"id": 1, **body, "status": "sold"}]
    changed = await succeed(staff, page, "Save", categoryId="2", status="available")
    assert "the Great is changed." in words(changed)
    undone = await succeed(staff, changed, "Undo")
    assert "the Great is as it was before." in words(undone)
    assert await stored(service, staff) == [{"id": 1, **body, "status": "sold"}]
    assert "the Great is changed." in words(await succeed(staff, undone, "Redo"))


# Reservations


async def test_a_reservation_links_to_its_order_and_keeps_the_pet(
    service: Service, staff: Visitor
) -> None:
    page = await added(staff)
    clicks = await asyncio.gather(*(press(staff, page, "Reserve") for _ in range(2)))
    assert {click.headers.get("location") for click in clicks} == {"/console/orders/1"}
    page = await staff.get("/pets/1")
    assert "Reserved Bella until tomorrow 12:00 (order 1)." in words(page)
    assert form_of(page, "Undo").path == "/orders/1/cancel"
    page = await staff.get("/pets/1")
    assert '<a href="/console/orders/1">Order 1</a>' in page.text
    assert "The order decides the status." in words(page)
    assert buttons_of(page) == ["Save", "Delete Bella"]
    for refused in (
        await press(staff, page, "Save", status="sold"),
        await press(staff, page, "Delete Bella"),
    ):
        assert refused.status_code == 409
        assert "Order 1</a> reserves <bdi>Bella</bdi>. Deliver or cancel" in refused.text
    assert await history(service, staff) == ["pet.created", "order.placed", "pet.updated"]


async def test_a_lost_race_shows_who_was_faster(staff: Visitor, other: Visitor) -> None:
    page = await added(staff)
    await press(other, page, "Reserve", once="theirs")
    for _ in range(2):  # the second click tells the same
        lost = await press(staff, page, "Reserve")
        assert lost.status_code == 409
        assert "test has just reserved Bella." in words(lost)
        assert '<a href="/console/orders/1">Order 1</a>' in lost.text
        assert "/console/pets?status=available&amp;categoryId=1" in lost.text
    for number, (status, said) in enumerate(
        (("sold", "test has just sold Bella."), ("", "Only an available pet can be reserved.")), 2
    ):
        await staff.submit("/pets", **BELLA, once=status)
        page = await staff.get(f"/pets/{number}")
        await succeed(other, page, "Save", status=status)
        for button in ("Reserve", "Sell Bella"):
            lost = await press(staff, page, button)
            assert lost.status_code == 409
            assert said in words(lost)
            assert 'name="undo"' not in lost.text
            assert "/return" not in lost.text


# Two people at once


async def test_a_conflict_shows_the_other_change_and_keeps_the_input(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    await succeed(other, page, "Save", status="sold")
    refused = await press(staff, page, "Save", name="Bella II", status="")
    assert refused.status_code == 412
    assert "Another user changed this pet while you were looking at it." in words(refused)
    assert conflict_of(refused, "Status") == ["available", "sold", "none"]
    assert '<a class="button quiet" href="/console/pets/1">Take theirs</a>' in refused.text
    assert [pet["name"] for pet in await stored(service, staff)] == ["Bella"]
    refused = await press(staff, page, "Save", name="Bella II")
    assert conflict_of(refused, "Status") == ["available", "sold", "the same as now"]
    assert "Bella II is changed." in words(await succeed(staff, refused, "Save mine anyway"))
    changed = {"id": 1, "name": "Bella II", "categoryId": 1, "status": "sold"}
    assert await stored(service, staff) == [changed]
    sold = await succeed(staff, await staff.get("/pets/1"), "Save", name="Bella III")
    await succeed(other, sold, "Save", name="Rex")
    refused = await press(staff, sold, "Undo")  # too late
    assert refused.status_code == 412
    assert conflict_of(refused, "Name") == ["Bella III", "Rex", "Bella II"]


async def test_a_pet_that_somebody_changed_or_deleted_is_told_to_who_opened_it(
    service: Service, staff: Visitor, other: Visitor
) -> None:
    page = await added(staff)
    changed = await succeed(other, page, "Save", name="Rex")
    refused = await press(staff, page, "Delete Bella")
    assert refused.status_code == 412
    assert conflict_of(refused, "Name") == ["Bella", "Rex", "the same as now"]
    assert "The page shows it as it is now." in words(refused)
    await succeed(staff, refused, "Delete Rex")
    assert await stored(service, staff) == []
    refused = await press(other, changed, "Save", name="Max")
    assert refused.status_code == 404
    assert "Rex, pet 1, was deleted" in words(refused)
    shown = await succeed(other, refused, "Add it again, with a new number")
    assert shown.url.path == "/console/pets/2"
    assert await stored(service, staff) == [{"id": 2, **BELLA, "name": "Rex", "categoryId": 1}]


async def history(service: Service, visitor: Visitor) -> list[str]:
    """Return the types of all events of pets and orders."""
    page = await stored(service, visitor, "/v1/events")
    return [event["type"] for event in page if event["type"].startswith(("pet", "order"))]


@pytest.mark.each_database
async def test_a_double_click_adds_one_with_any_form_id(service: Service, staff: Visitor) -> None:
    form = BELLA | {"once": "a\0\x7f\ufffd"}
    sent = await asyncio.gather(*(staff.post("/pets", **form) for _ in range(2)))
    assert [response.status_code for response in sent] == [303, 303]
    assert len(await stored(service, staff)) == 1
    await staff.submit("/pets", **form | {"name": "Rex"})  # another one
    assert len(await stored(service, staff)) == 2


async def test_a_downloaded_file_has_what_the_list_shows(service: Service, staff: Visitor) -> None:
    async def saved(delimiter: str = ",", **query: str) -> list[list[str]]:
        """Return the rows of the file, of which the first has the names of the columns."""
        file = await staff.get("/pets/export.csv", **query)
        assert file.headers["content-type"] == "text/csv; charset=utf-8"
        assert file.headers["content-disposition"] == 'attachment; filename="pets-2026-12-01.csv"'
        assert file.content.startswith(b"\xef\xbb\xbf")
        text = io.StringIO(file.content.decode("utf-8-sig"), newline="")
        return [row[:5] for row in csv.reader(text, delimiter=delimiter)]

    pets = [NewPet("Bella", 1, "available"), NewPet("=1+1", 2, "sold"), NewPet("Müsli", 2)]
    await service.store.write(create_pets(pets))
    assert await saved() == [
        ["id", "name", "categoryId", "category", "status"],
        ["3", "Müsli", "2", "", ""],
        ["2", "'=1+1", "2", "", "sold"],
        ["1", "Bella", "1", "Dogs", "available"],
    ]
    page = await staff.get("/pets", status="sold", name="1")
    assert 'href="/console/pets/export.csv?name=1&amp;status=sold"' in page.text
    for filters, ids in (
        ({"status": "sold", "name": "1"}, ["2"]),
        ({"categoryId": "2"}, ["3", "2"]),
        ({"status": "none"}, ["3"]),
    ):
        assert [row[0] for row in await saved(**filters)] == ["id", *ids]
    assert len(await saved(";", separator="semicolon")) == 4
