"""The file of orders that the board exports."""

import csv
import io

import httpx
import pytest

from petstore.pets.model import NewPet
from support.changes import create_pets
from support.service import Service
from support.visitor import Visitor, words

pytestmark = pytest.mark.anyio

FILE = "/orders/export.csv"
NOON = "2026-12-01T12:00:00Z"


@pytest.fixture
async def shop(service: Service, staff: Visitor) -> Visitor:
    """Somebody with every scope, in a shop with a sale and a reservation."""
    await service.store.write(
        create_pets([NewPet(name, 1, "available") for name in ("Bella", "=Rex")])
    )
    await staff.submit("/pets/1/sell", buyer="@Ada", amount="249.5")
    await staff.submit("/orders", petId="2", note="Calls\r\nfirst", shipDate="2026-12-24T10:00")
    return staff


def saved(response: httpx.Response) -> list[dict[str, str]]:
    """Return the rows of a downloaded file, without cells that are empty."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    rows = csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


async def test_the_file_has_the_newest_order_first_and_is_safe_in_a_spreadsheet(
    shop: Visitor,
) -> None:
    page = await shop.get("/orders", status="placed")
    assert 'href="/console/orders/export.csv?status=placed&amp;buyer="' in page.text
    file = await shop.get(FILE)
    assert saved(file) == [
        {
            "id": "2",
            "status": "placed",
            "petId": "2",
            "petName": "'=Rex",
            "note": "Calls\nfirst",
            "placedAt": NOON,
            "shipDate": "2026-12-24T10:00:00Z",
        },
        {
            "id": "1",
            "status": "delivered",
            "petId": "1",
            "petName": "Bella",
            "buyer": "'@Ada",
            "amount": "249.50",
            "currency": "USD",
            "placedAt": NOON,
            "deliveredAt": NOON,
        },
    ]
    disposition = 'attachment; filename="orders-2026-12-01.csv"'
    assert file.headers["content-disposition"] == disposition


async def test_a_file_counts_for_no_key(shop: Visitor, service: Service) -> None:
    await shop.get(FILE)
    await service.limiter.save()  # which fails if it counts for what is no key


async def test_a_file_has_what_a_person_chose(shop: Visitor) -> None:
    text = (await shop.get(FILE, separator="semicolon")).text
    assert "id;status;petId" in text
    assert ";249,50;USD;" in text
    assert [row["id"] for row in saved(await shop.get(FILE, status="placed"))] == ["2"]
    assert [row["id"] for row in saved(await shop.get(FILE, buyer="@ada"))] == ["1"]
    assert saved(await shop.get(FILE, status="cancelled")) == []
    refused = await shop.get(FILE, status="lost")
    assert refused.status_code == 400
    assert "Status: expected one of" in words(refused)
