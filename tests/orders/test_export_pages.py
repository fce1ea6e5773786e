"""The file of orders that the list exports."""

import csv
import io
from collections.abc import Sequence

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Row, Statement
from petstore.pets.model import NewPet
from support.changes import create_category, create_pets
from support.service import Service
from support.visitor import Visitor, words

pytestmark = pytest.mark.anyio

FILE = "/orders/export.csv"
NOON = "2026-12-01 12:00:00"


@pytest.fixture
async def shop(service: Service, staff: Visitor) -> Visitor:
    await service.store.write(create_category(CategoryCreate("Dogs")))
    await service.store.write(
        create_pets([NewPet(name, 1, "available") for name in ("Bella", "=Rex")])
    )
    await staff.submit("/pets/1/sell", buyer="@Ada", amount="249.5")
    sale = {"note": "Calls\r\nfirst", "shipDate": "2026-12-24T10:00"}
    await staff.submit("/pets/2/reserve", **sale)
    return staff


def saved(response: httpx.Response) -> list[dict[str, str]]:
    """Return the rows of a downloaded file, without cells that are empty."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    rows = csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


async def test_the_file_has_the_newest_first_and_is_safe_in_a_spreadsheet(shop: Visitor) -> None:
    page = await shop.get("/orders", find="ada")
    assert 'href="/console/orders/export.csv?status=all&amp;find=ada"' in page.text
    await shop.submit("/orders/1/return", refund="200", returnReason="Sad")
    file = await shop.get(FILE, status="all")
    assert saved(file) == [
        {
            "id": "2",
            "status": "placed",
            "petId": "2",
            "pet": "'=Rex",
            "category": "Dogs",
            "note": "Calls\nfirst",
            "placedAt": NOON,
            "shipDate": "2026-12-24 10:00:00",
        },
        {
            "id": "1",
            "status": "returned",
            "petId": "1",
            "pet": "Bella",
            "category": "Dogs",
            "buyer": "'@Ada",
            "amount": "249.50",
            "currency": "USD",
            "refund": "200.00",
            "soldBy": "test",
            "placedAt": NOON,
            "deliveredAt": NOON,
            "returnedAt": NOON,
            "returnReason": "Sad",
        },
    ]
    disposition = 'attachment; filename="orders-2026-12-01.csv"'
    assert file.headers["content-disposition"] == disposition


async def test_a_file_has_what_a_person_chose(shop: Visitor) -> None:
    text = (await shop.get(FILE, separator="semicolon", status="all")).text
    assert "id;status;petId" in text
    assert ";249,50;USD;" in text
    for query, ids in (
        ({}, ["2"]),
        ({"status": "placed"}, ["2"]),
        ({"status": "delivered"}, ["1"]),
        ({"find": "@ada"}, ["1"]),
        ({"find": "2"}, ["2"]),
        ({"find": "pet 1"}, ["1"]),
        ({"from": "2026-12-01", "to": "2026-12-01"}, ["1"]),
        ({"from": "2026-12-02"}, []),
        ({"status": "cancelled"}, []),
        ({"find": "nobody"}, []),
    ):
        assert [row["id"] for row in saved(await shop.get(FILE, **query))] == ids
    refused = await shop.get(FILE, to="lost")
    assert refused.status_code == 400
    assert "Sold to: expected a date" in words(refused)


async def test_a_page_of_orders_asks_once_who_sold_them(
    shop: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    await shop.submit("/pets", name="Mia", categoryId="1", status="available")
    await shop.submit("/pets/3/sell")
    read = service.store.read

    async def counted(statement: Statement) -> Sequence[Row]:
        asked.append(statement.name)
        return await read(statement)

    monkeypatch.setattr(service.store, "read", counted)
    rows = saved(await shop.get(FILE, status="delivered"))
    assert [row["soldBy"] for row in rows] == ["test", "test"]
    assert asked.count("select_deliverers") == 1
    assert "select_events" not in asked
