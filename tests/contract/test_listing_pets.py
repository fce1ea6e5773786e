"""interface.md, "List animals" and "Page size"."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.client import Client
from support.process import serving

STATUSES = ["available", "pending", "sold"]


@pytest.fixture(scope="module")
def pets() -> list[dict[str, Any]]:
    """The pets of the store in this module: more than the largest page."""
    kinds: list[dict[str, Any]] = [{}, *({"status": status} for status in STATUSES)]
    return [
        {"name": f"Pet {number}", "categoryId": number % 3, **kinds[number % 4]}
        for number in range(120)
    ]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, pets: list[dict[str, Any]]) -> Iterator[Client]:
    """A client of a service that holds ``pets`` and nothing else."""
    with (
        serving(tmp_path_factory.mktemp("shop")) as server,
        Client(server.url, server.issue()) as client,
    ):
        for pet in pets:
            client.add(**pet)
        yield client


@pytest.fixture(autouse=True)
def in_every_form() -> None:
    """These tests have a service of their own, in one form."""


@pytest.mark.parametrize(
    "query",
    [
        *(
            {"limit": limit}
            for limit in (-1, 0, 101, 2**63, "", "five", "5.0", "+5", "1_0", "null")
        ),
        *({"status": status} for status in ("", "reserved", "Available", "available,sold")),
    ],
)
def test_a_limit_or_a_status_that_is_none_is_refused(shop: Client, query: dict[str, Any]) -> None:
    assert shop.list_pets(**query).status_code == 400


def test_a_list_is_an_array_of_pets(shop: Client, pets: list[dict[str, Any]]) -> None:
    response = shop.list_pets(limit=100)
    assert response.status_code == 200
    listed = response.json()
    assert isinstance(listed, list)
    assert all({**pet, "id": 0} in [{**each, "id": 0} for each in pets] for pet in listed)
    assert len({pet["id"] for pet in listed}) == len(listed)
    assert {pet.get("status") for pet in listed} == {None, *STATUSES}


def test_a_list_has_as_many_pets_as_its_limit_or_20(shop: Client) -> None:
    assert len(shop.list_pets().json()) == 20
    for limit in (1, 19, 20, 21, 99, 100):
        assert len(shop.list_pets(limit=limit).json()) == limit
    assert [pet["status"] for pet in shop.list_pets(status="sold", limit=3).json()] == ["sold"] * 3


@pytest.mark.parametrize("status", STATUSES)
def test_the_status_filter_lists_only_pets_of_that_status(
    shop: Client, pets: list[dict[str, Any]], status: str
) -> None:
    listed = [pet["name"] for pet in shop.list_pets(status=status, limit=100).json()]
    assert sorted(listed) == sorted(pet["name"] for pet in pets if pet.get("status") == status)
