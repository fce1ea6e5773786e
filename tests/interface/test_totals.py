"""How many records match, in a header of the lists that are asked for it."""

import pytest

from petstore.pets.model import NewPet
from support.changes import create_pets
from support.error_body import assert_error
from support.sending import sender
from support.service import Service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


async def test_a_list_is_counted_with_its_filters_on_each_page(service: Service) -> None:
    send = await sender(service)
    news = [NewPet("Bella", n % 3, "available") for n in range(7)] + [NewPet("Rex", 1)]
    await service.store.write(create_pets(news))
    for pet_id in (1, 2, 3):
        await send("POST", "/store/orders", json={"petId": pet_id})
    for path, total in (
        ("/pets?count=true&limit=2", "8"),
        ("/pets?count=true&limit=2&sort=-id&status=available", "4"),
        ("/pets?count=true&status=pending&categoryId=1", "1"),
        ("/pets?count=true&hasStatus=false", "1"),
        ("/pets?count=true&id=2&id=8&id=99", "2"),
        ("/store/orders?count=true&limit=1", "3"),
        ("/store/orders?count=true&status=placed&petId=2", "1"),
        ("/store/orders?count=true&placedBefore=2020-01-01T00:00:00Z", "0"),
        ("/store/orders?count=true&placedBefore=2027-01-01T00:00:00Z&status=placed", "3"),
    ):
        page = await send("GET", path)
        assert page.headers["x-total-count"] == total, path
    first = await send("GET", "/pets?count=true&limit=6")
    following = first.links["next"]["url"].partition("/v1")[2]
    assert (await send("GET", following)).headers["x-total-count"] == "8"
    await send("DELETE", "/pets/8")  # which no page that is kept shows
    assert (await send("GET", "/pets?count=true&limit=6")).headers["x-total-count"] == "7"
    for path in ("/pets?limit=2", "/pets?count=false", "/pets?count=false&name=Bella"):
        assert "x-total-count" not in (await send("GET", path)).headers


async def test_a_list_is_counted_no_further_than_10_000(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.pets.operations.MAX_COUNTED", 3)
    send = await sender(service)
    await service.store.write(create_pets([NewPet("Bella", 1)] * 6))
    assert (await send("GET", "/pets?count=true")).headers["x-total-count"] == "4"


async def test_a_search_is_not_counted(service: Service) -> None:
    send = await sender(service)
    for path in ("/pets?name=Bella", "/store/orders?buyer=Jane"):
        refused = await send("GET", f"{path}&count=true")
        assert assert_error(refused, 400, "invalid_parameter").startswith("count: ")
