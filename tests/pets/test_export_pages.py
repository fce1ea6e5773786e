"""The page of exports and its files."""

import csv
import io
import re

import httpx
import pytest

from petstore.pets import export_pages as exports
from petstore.pets.model import NewPet
from support.changes import create_pets
from support.service import Service
from support.visitor import SAME_ORIGIN, Visitor, left_today, signed_in, words

pytestmark = pytest.mark.anyio

PETS = [NewPet("Bella", 1, "available"), NewPet("=1+1", 2, "sold"), NewPet("Müsli", 2)]


def saved(response: httpx.Response) -> list[list[str]]:
    """Return the rows of a downloaded file without its header."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    header, *rows = csv.reader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))
    assert header == ["id", "name", "categoryId", "status"]
    return rows


async def test_an_empty_export_sends_no_file(staff: Visitor) -> None:
    page = await staff.get("/export/pets.csv", status="sold")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "No animal matches" in page.text
    assert '<option value="sold" selected>' in page.text


async def test_the_form_links_to_a_file_of_all_animals(staff: Visitor, service: Service) -> None:
    await service.store.write(create_pets(PETS))
    page = (await staff.get("/export")).text
    assert 'action="/console/export/pets.csv"' in page
    assert "Part" not in page
    file = await staff.get("/export/pets.csv", status="", categoryId="", purpose="spreadsheet")
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
        ({"part": "2", "after": "2"}, ["3"]),
        ({"after": "99999999999999999999"}, ["1", "2", "3"]),
    ],
)
async def test_a_file_has_only_the_matching_animals(
    staff: Visitor, service: Service, filters: dict[str, str], ids: list[str]
) -> None:
    await service.store.write(create_pets(PETS))
    assert [row[0] for row in saved(await staff.get("/export/pets.csv", **filters))] == ids


async def test_the_category_of_a_search_by_name_is_exported(
    staff: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PART", 1)
    for name in ("Dogs", "Käfer & Co."):
        await staff.submit("/categories", name=name, description="")
    await service.store.write(create_pets(PETS))
    found = await staff.get("/pets", categoryId="käfer & co.")
    (export,) = re.findall('href="/console(/export[^"]+)"', found.text.replace("&amp;", "&"))
    assert "selected>Käfer &amp; Co." in (await staff.get(export)).text
    to_parts = await staff.get("/export/pets.csv", categoryId="käfer & co.")
    page = await staff.client.get(to_parts.headers["location"])
    (file, _) = re.findall('href="/console(/export[^"]+)"', page.text.replace("&amp;", "&"))
    assert saved(await staff.get(file)) == [["2", "'=1+1", "2", "sold"]]


async def test_a_file_for_another_import_has_the_names_unchanged(
    staff: Visitor, service: Service
) -> None:
    for name in ("Dogs", "Birds"):
        await staff.submit("/categories", name=name)
    await service.store.write(create_pets(PETS))
    file = await staff.get("/export/pets.csv", purpose="import")
    assert [row[1] for row in saved(file)] == [pet.name for pet in PETS]
    sent = await staff.post("/import", {"file": ("animals.csv", file.content)})
    await staff.submit(sent.headers["location"].removeprefix("/console"))
    file = await staff.get("/export/pets.csv", purpose="import", part=2, after=3)
    assert [row[1] for row in saved(file)] == [pet.name for pet in PETS]


async def test_a_file_can_have_semicolons_for_a_spreadsheet(
    staff: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.store.write(create_pets([NewPet("=1;2,3", 1), NewPet("Bella", 2, "sold")]))
    file = await staff.get("/export/pets.csv", separator="semicolon")
    rows = 'id;name;categoryId;status\n1;"\'=1;2,3";1;\n2;Bella;2;sold\n'
    assert file.content.decode("utf-8-sig") == rows
    sent = await staff.post("/import", {"file": ("animals.csv", file.content)})
    assert sent.status_code == 303
    monkeypatch.setattr(exports, "PART", 1)
    to_parts = await staff.get("/export/pets.csv", separator="semicolon")
    page = await staff.client.get(to_parts.headers["location"])
    assert "separator=semicolon" in page.text
    assert '<option value="semicolon" selected>' in page.text


async def test_animals_without_a_status_can_be_exported(staff: Visitor, service: Service) -> None:
    await service.store.write(create_pets([NewPet("Rex", 1, "sold"), NewPet("Bella", 1)]))
    file = await staff.get("/export/pets.csv", status="none")
    assert file.content.decode("utf-8-sig") == "id,name,categoryId,status\n2,Bella,1,\n"


@pytest.mark.parametrize("path", ["/export?part=1", "/export/pets.csv?"])
async def test_an_invalid_filter_is_reported_at_its_field(staff: Visitor, path: str) -> None:
    page = await staff.get(f"{path}&categoryId=dogs")
    assert page.status_code == 400
    assert "Category</a>: there is no category" in page.text
    assert 'aria-invalid="true"' in page.text
    assert 'value="dogs"' in page.text
    assert "No animal matches" not in page.text


async def test_a_large_export_is_split_into_parts(
    staff: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PART", 2)
    await service.store.write(create_pets([NewPet(str(n), 1, "sold") for n in range(1, 6)]))
    to_parts = await staff.get("/export/pets.csv", status="sold")
    assert to_parts.status_code == 303
    page, found = await staff.client.get(to_parts.headers["location"]), []
    for part in range(1, 4):
        assert f"Download part {part}" in page.text
        links = re.findall('href="/console(/export[^"]+)"', page.text.replace("&amp;", "&"))
        file = await staff.get(links[0])
        assert f"animals-part-{part}-" in file.headers["content-disposition"]
        found += [row[1] for row in saved(file)]
        page = await staff.get(links[-1])
    assert len(links) == 1
    assert found == ["1", "2", "3", "4", "5"]


async def test_without_the_scope_to_list_animals_no_export_is_offered(service: Service) -> None:
    writer = await signed_in(service, scopes=frozenset({"pets:write"}))
    assert "/console/export" not in (await writer.get("/import")).text


async def test_every_hundred_exported_animals_count_as_one_request_of_the_day(
    service: Service,
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)] * 101))
    await service.store.write(create_pets([NewPet("Rex", 2)] * 50))
    shop = await signed_in(service, plan="free")
    page = await shop.get("/export")
    assert "Every 100 animals of a file cost a request of your key. It has" in page.text
    for query, left in (({"categoryId": "1"}, 998), ({"categoryId": "2"}, 997), ({}, 995)):
        assert (await shop.get("/export/pets.csv", **query)).status_code == 200
        assert await left_today(shop, service) == left


async def test_an_export_beyond_the_day_limit_is_refused_and_not_charged(service: Service) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)] * 150 + [NewPet("Rex", 2)]))
    shop = await signed_in(service, plan="enterprise", per_day=2)
    await service.request("GET", "/v1/pets", shop.token)
    page = await shop.get("/export/pets.csv")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "This file costs 2 requests of your key, which does not have as many left" in words(page)
    assert await left_today(shop, service) == 1
    assert len(saved(await shop.get("/export/pets.csv", categoryId="2"))) == 1
    assert await left_today(shop, service) == 0


@pytest.mark.parametrize("limits", [{"per_day": 2}, {}])
async def test_head_of_a_file_is_not_charged_and_writes_no_file(
    service: Service, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)] * 101))
    shop = await signed_in(service, plan="enterprise", **limits)
    left, path = await left_today(shop, service), "/console/export/pets.csv"
    with monkeypatch.context() as patch:
        patch.setattr(exports, "export_pets", None)
        head = await shop.client.head(path, headers=SAME_ORIGIN)
    assert (head.status_code, head.content) == (200, b"")
    assert await left_today(shop, service) == left
    file = await shop.client.get(path, headers=SAME_ORIGIN)
    # How long the file would be is not known.
    assert set(file.headers) - set(head.headers) == {"content-length"}
    for name in ("content-type", "content-disposition", "cache-control"):
        assert head.headers[name] == file.headers[name]


async def test_head_of_a_file_beyond_the_day_limit_has_the_headers_of_a_page(
    service: Service,
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)] * 101))
    shop = await signed_in(service, plan="enterprise", per_day=1)
    head = await shop.client.head("/console/export/pets.csv", headers=SAME_ORIGIN)
    assert head.headers["content-type"] == "text/html; charset=utf-8"
    assert int(head.headers["content-length"]) > 0


async def test_a_key_without_a_limit_is_shown_no_cost(staff: Visitor) -> None:
    for path in ("/export", "/import"):
        assert "of your key" not in (await staff.get(path)).text
