"""interface.md, "List animals" and "Page size"."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.client import Client
from support.process import ServerProcess

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
    server = ServerProcess(tmp_path_factory.mktemp("shop"))
    try:
        server.wait_until_ready()
        with Client(server.url, server.issue()) as client:
            for pet in pets:
                client.add(**pet)
            yield client
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def in_every_form() -> None:
    """These tests have a service of their own, in one form."""


def names(pets: list[dict[str, Any]]) -> set[str]:
    return {pet["name"] for pet in pets}


@pytest.mark.parametrize("limit", [-1, 0, 101, 2**63, "", "five", "5.0", "+5", "1_0", "null"])
def test_a_limit_that_is_not_an_integer_from_1_to_100_is_refused(
    shop: Client, limit: object
) -> None:
    assert shop.list_pets(limit=limit).status_code == 400


@pytest.mark.parametrize("status", ["", "reserved", "Available", "available,sold"])
def test_an_unknown_status_filter_is_refused(shop: Client, status: str) -> None:
    assert shop.list_pets(status=status).status_code == 400


def test_a_list_is_an_array_of_pets(shop: Client, pets: list[dict[str, Any]]) -> None:
    listed = shop.list_pets(limit=100)
    assert listed.status_code == 200
    pets = listed.json()
    assert isinstance(pets, list)
    assert all({**pet, "id": 0} in [{**each, "id": 0} for each in pets] for pet in pets)
    assert len({pet["id"] for pet in pets}) == len(pets)


def test_a_list_without_a_limit_has_20_pets(shop: Client) -> None:
    assert len(shop.list_pets().json()) == 20


@pytest.mark.parametrize("limit", [1, 19, 20, 21, 99, 100])
def test_a_list_has_as_many_pets_as_its_limit(shop: Client, limit: int) -> None:
    assert len(shop.list_pets(limit=limit).json()) == limit


@pytest.mark.parametrize("status", STATUSES)
def test_the_status_filter_lists_only_pets_of_that_status(
    shop: Client, pets: list[dict[str, Any]], status: str
) -> None:
    wanted = [pet for pet in pets if pet.get("status") == status]
    listed = shop.list_pets(status=status, limit=100).json()
    assert names(listed) == names(wanted)
    assert len(listed) == len(wanted)


def test_the_status_filter_works_with_a_limit(shop: Client) -> None:
    listed = shop.list_pets(status="sold", limit=3).json()
    assert [pet["status"] for pet in listed] == ["sold"] * 3


def test_without_the_status_filter_all_pets_are_listed(shop: Client) -> None:
    listed = shop.list_pets(limit=100).json()
    assert {pet.get("status") for pet in listed} == {None, *STATUSES}
