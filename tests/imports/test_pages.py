"""The pages of imports, as a clerk uses them."""

import asyncio

import httpx
import pytest

from support.cases import case
from support.page_forms import form_to
from support.service import Service
from support.visitor import Visitor, words

pytestmark = pytest.mark.anyio

LIST = (
    "Tiername;Tierart;Status;Gewicht\nBella;Dogs;vermittelt;3\nMia;Wolves;;2\nRex;Wolves;Foster;9\n"
    ";Dogs;;1\n"
)


@pytest.fixture(autouse=True)
def with_dogs(dogs: None) -> None:
    """Every store has the category 1, Dogs."""


async def send(staff: Visitor, text: str | bytes, name: str = "tiere.csv") -> httpx.Response:
    return await staff.post("/import", {"file": (name, text, "text/csv")})


async def preview(staff: Visitor, text: str | bytes, name: str = "tiere.csv") -> str:
    """Send a file, and return the path of its import."""
    response = await send(staff, text, name)
    assert response.status_code == 303, response.text
    return response.headers["location"].removeprefix("/console")


async def run(staff: Visitor, path: str, **fields: str) -> httpx.Response:
    """Send the form of the preview, and go on until all is done."""
    response = await staff.post(f"{path}/run", **fields)
    while response.status_code == 200:
        assert "data-continue" in response.text
        response = await staff.post(f"{path}/run")
    return await staff.get(path)


async def test_a_category_in_the_singular_means_the_one_in_the_plural(staff: Visitor) -> None:
    path = await preview(staff, "name,category\nBella,dog\nMia,Wolf\n")
    page = await staff.get(path)
    assert "1 pet to add, 1 row to skip." in words(page)
    assert "Status: rows without one become available" in words(page)
    form = form_to(page, f"{path}/run").fields
    assert (form["category.dog"], form["category.Wolf"]) == ("1", "")
    await staff.submit(path, **form | {"category.dog": ""})
    assert await preview(staff, "name,category\nBella,dog\nMia,Wolf\n") == path
    assert form_to(await staff.get(path), path).fields["category.dog"] == ""
    path = await preview(staff, "name,category\nBella,dog\n")
    assert "New categories" not in words(await staff.get(path))
    assert "Add this category" in words(await staff.submit(path, **{"category.dog": ""}))


async def test_everything_is_shown_and_decided_on_one_page_before_anything_is_added(
    staff: Visitor, service: Service
) -> None:
    path = await preview(staff, LIST)
    page = await staff.get(path)
    text = words(page)
    assert "Import of tiere.csv 1 pet to add, 3 rows to skip. Nothing is added yet." in text
    assert "Line 1 has the names of the columns" in text
    form = form_to(page, f"{path}/run").fields
    assert [form[name] for name in ("name", "categoryId", "status", "id")] == ["0", "1", "2", ""]
    for hint in ("Bella, Mia, Rex", "Dogs, Wolves, Wolves", "vermittelt, Foster"):
        assert hint in text
    assert form["defaultStatus"] == "available"
    assert "Wolves, 2 rows" in text
    assert "Foster, 1 row" in text
    assert "4 Rex, Wolves, Foster, 9 There is no category “Wolves”. The meaning of" in text
    assert (await service.request("GET", "/v1/pets", staff.token)).json() == []
    decided = {"unknownCategories": "create", "value.Foster": "pending", "defaultStatus": ""}
    page = await staff.submit(path, **decided)
    assert "3 pets to add, 1 row to skip." in words(page)
    done = await run(staff, path, **form_to(page, f"{path}/run").fields)
    assert "3 pets added, 1 row skipped." in words(done)
    assert "5 Dogs, 1 The row has no name." in words(done)
    file = await staff.get(f"{path}/refused.csv")
    assert file.headers["content-disposition"] == 'attachment; filename="refused-2026-12-01.csv"'
    pets = (await service.request("GET", "/v1/pets", staff.token)).json()
    assert [(pet["name"], pet["categoryId"], pet.get("status")) for pet in pets] == [
        ("Bella", 1, "sold"),
        ("Mia", 2, None),
        ("Rex", 2, "pending"),
    ]


async def test_what_is_to_decide_is_open(staff: Visitor, service: Service) -> None:
    breeds = "".join(f"Pet {number},Breed {number}\n" for number in range(120))
    read = '<details class="panel" open>\n  <summary>How the file is read'
    statuses = '<details class="panel" id="statuses" open>'
    pet = {"name": "unnamed", "categoryId": 1}
    await service.request("POST", "/v1/pets", staff.token, json=pet)
    cases: list[tuple[str, str, list[str]]] = [
        ("name,category,status\nRex,Dogs,sold\n", "1 pet to add", []),
        ("Tier;Alter\nBello;3\nRex;4\n", "Rows without a category", []),
        ("owner,category\nJane,Dogs\n", "Choose the column of the names.", [read]),
        ("Rex,Dogs,\nMia,Dogs,\n", "3: empty", [read]),
        ("name,category,status\nRex,Wolves,lost\n", "lost, 1 row", [statuses]),
        (f"name,breed\n{breeds}", "Add these 120 categories", []),
        ("name,category\nUnnamed,Dogs\nUnnamed,Dogs\n", "2 rows have a name that is in", []),
    ]
    for text, shown, opened in cases:
        with case(text):
            page = await staff.get(await preview(staff, text))
            assert shown in words(page)
            assert [each for each in (read, statuses) if each in page.text] == opened
    path = await preview(staff, "name,category,status\nRex,Dogs,lost\nMia,Dogs,gone\n")
    assert "2 pets to add, 0 rows to skip." in words(await staff.submit(path, others="sold"))


async def test_a_file_that_cannot_be_read_is_refused_in_plain_words(staff: Visitor) -> None:
    large = b"," * (8 * 2**20 + 1)
    for files, message in (
        (None, "choose a file first"),
        ({"file": ("", b"", "text/csv")}, "choose a file first"),
        ({"other": ("a.csv", b"name\nRex\n", "text/csv")}, "choose a file first"),
        ({"file": ("a.csv", large, "text/csv")}, "the file is larger than 8 MB"),
        ({"file": ("a.csv", b"name,category\n", "text/csv")}, "The file has no row for a pet."),
    ):
        refused = await staff.post("/import", files)
        assert refused.status_code == 400
        assert message in words(refused)


async def test_markup_of_a_file_is_text(staff: Visitor) -> None:
    evil = '<img src=x onerror="alert(1)">'
    path = await preview(staff, f"name,category,status\n{evil},{evil},{evil}\n", f"{evil}.csv")
    for page in (await staff.get(path), await run(staff, path), await staff.get("/import")):
        assert evil not in page.text
        assert "<img src=x" not in page.text


async def test_two_clicks_on_the_button_add_every_pet_once(
    staff: Visitor, service: Service
) -> None:
    path = await preview(staff, LIST)
    form = form_to(await staff.get(path), f"{path}/run").fields
    clicks = await asyncio.gather(*(staff.post(f"{path}/run", **form) for _ in range(2)))
    assert [click.status_code for click in clicks] == [303, 303]
    assert len((await service.request("GET", "/v1/pets", staff.token)).json()) == 1
    page = await staff.get(await preview(staff, LIST))
    assert "You sent this file before. Nothing is added." in words(page)
