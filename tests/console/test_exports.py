"""The page of exports and its files."""

import csv
import io
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from petstore.console import exports
from petstore.domain.pets import NewPet
from support.changes import create_pets
from support.service import Service
from support.visitor import Visitor, signed_in

pytestmark = pytest.mark.anyio

PETS = [NewPet("Bella", 1, "available"), NewPet("=1+1", 2, "sold"), NewPet("Müsli", 2)]


def saved(response: httpx.Response) -> list[list[str]]:
    """Return the rows of a downloaded file without its header."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    header, *rows = csv.reader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))
    assert header == ["id", "name", "categoryId", "status"]
    return rows


async def test_an_export_of_an_empty_store_says_so(staff: Visitor) -> None:
    page = (await staff.get("/export")).text
    assert "No animal matches" in page
    assert "pets.csv" not in page


async def test_the_page_leads_to_a_file_of_all_animals(staff: Visitor, service: Service) -> None:
    await service.store.write(create_pets(PETS))
    page = (await staff.get("/export")).text
    assert "Download the file" in page
    assert "Part 2" not in page
    file = await staff.get("/export/pets.csv")
    assert saved(file) == [
        ["1", "Bella", "1", "available"],
        ["2", "'=1+1", "2", "sold"],
        ["3", "Müsli", "2", ""],
    ]
    disposition = 'attachment; filename="animals-2026-12-01.csv"'
    assert file.headers["content-disposition"] == disposition


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"status": "sold"}, ["2"]),
        ({"categoryId": "2"}, ["2", "3"]),
        ({"categoryId": "2", "status": "sold"}, ["2"]),
        ({"categoryId": "9"}, []),
        ({"after": "2"}, ["3"]),
        ({"after": "99999999999999999999"}, ["1", "2", "3"]),
    ],
)
async def test_a_file_has_the_animals_that_are_wanted(
    staff: Visitor, service: Service, filters: dict[str, str], ids: list[str]
) -> None:
    await service.store.write(create_pets(PETS))
    assert [row[0] for row in saved(await staff.get("/export/pets.csv", **filters))] == ids


async def test_a_file_for_another_import_has_the_names_as_they_are(
    staff: Visitor, service: Service
) -> None:
    await service.store.write(create_pets(PETS))
    file = await staff.get("/export/pets.csv", purpose="import")
    assert [row[1] for row in saved(file)] == [pet.name for pet in PETS]
    sent = await staff.post("/import", {"file": ("animals.csv", file.content)})
    await staff.submit(sent.headers["location"].removeprefix("/console"))
    file = await staff.get("/export/pets.csv", purpose="import", after=3)
    assert [row[1] for row in saved(file)] == [pet.name for pet in PETS]


async def test_a_bad_filter_is_told_at_its_field(staff: Visitor) -> None:
    page = await staff.get("/export", categoryId="dogs")
    assert page.status_code == 400
    assert 'aria-invalid="true"' in page.text
    assert 'value="dogs"' in page.text
    assert "No animal matches" not in page.text
    assert (await staff.get("/export/pets.csv", status="gone")).status_code == 400


async def test_a_large_export_comes_in_parts(
    staff: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PART", 2)
    await service.store.write(create_pets([NewPet(str(n), 1) for n in range(1, 6)]))
    found, query, parts = [], "", 0
    while True:
        page = (await staff.get(f"/export{query}")).text
        parts += 1
        assert f"Download part {parts}" in page
        wanted = parse_qs(urlsplit(query).query)
        file = await staff.get("/export/pets.csv", **wanted)
        found += [row[1] for row in saved(file)]
        _, link, rest = page.partition('<a href="/console/export?')
        if not link:
            break
        query = "?" + rest.partition('"')[0].replace("&amp;", "&")
    assert found == ["1", "2", "3", "4", "5"]
    assert parts == 3
    assert "animals-part-3-" in file.headers["content-disposition"]


async def test_who_may_not_list_animals_exports_none(service: Service) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    assert (await writer.get("/export")).status_code == 403
    assert (await writer.get("/export/pets.csv")).status_code == 403
    assert "/console/export" not in (await writer.get("/import")).text
