"""The file of the pets that a list of the console shows."""

import csv
import io

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.pets.model import NewPet
from support.changes import create_category, create_pets
from support.service import Service
from support.visitor import Visitor

pytestmark = pytest.mark.anyio

PETS = [NewPet("Bella", 1, "available"), NewPet("=1+1", 2, "sold"), NewPet("Müsli", 2)]


def saved(response: httpx.Response, delimiter: str = ",") -> list[list[str]]:
    """Return the rows of a downloaded file without its header."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    text = response.content.decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    assert header[:5] == ["id", "name", "categoryId", "category", "status"]
    return [row[:5] for row in rows]


async def test_the_file_has_what_the_list_shows(staff: Visitor, service: Service) -> None:
    await service.store.write(create_category(CategoryCreate("Dogs")))
    await service.store.write(create_pets(PETS))
    file = await staff.get("/pets/export.csv")
    assert file.content.startswith(b"\xef\xbb\xbf")
    assert file.headers["content-disposition"] == 'attachment; filename="pets-2026-12-01.csv"'
    assert saved(file) == [
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
        assert [row[0] for row in saved(await staff.get("/pets/export.csv", **filters))] == ids
    assert len(saved(await staff.get("/pets/export.csv", separator="semicolon"), ";")) == 3
