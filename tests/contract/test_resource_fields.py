"""interface.md, "Resources and their fields"."""

from typing import Any

import pytest

from support.client import Client

REQUIRED: dict[str, Any] = {"name": "Bella", "categoryId": 1}
STATUSES = ["available", "pending", "sold"]


@pytest.mark.parametrize("field", REQUIRED)
def test_name_and_category_id_of_a_new_pet_are_required(client: Client, field: str) -> None:
    fields = {name: value for name, value in REQUIRED.items() if name != field}
    assert client.create_pet(**fields).status_code == 400


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", [1, True, None, [], {}]),
        ("categoryId", ["1", 1.5, True, None, [], {}, -(2**63) - 1, 2**63]),
        ("status", ["", "Available", "SOLD", "reserved", 1, []]),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(
    client: Client, field: str, values: list[object]
) -> None:
    for value in values:
        assert client.create_pet(**{**REQUIRED, field: value}).status_code == 400, value


@pytest.mark.parametrize("category_id", [-(2**63), -1, 0, 2**63 - 1])
def test_a_category_id_is_any_int64(client: Client, category_id: int) -> None:
    assert client.add(categoryId=category_id)["categoryId"] == category_id


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_available_pending_or_sold(client: Client, status: str) -> None:
    assert client.add(status=status)["status"] == status


def test_a_status_is_optional_and_has_no_default(client: Client) -> None:
    assert "status" not in client.add()


@pytest.mark.parametrize("status", [{}, *({"status": status} for status in STATUSES)])
def test_a_pet_has_every_field_of_the_new_pet_and_an_id(
    client: Client, status: dict[str, str]
) -> None:
    new = {"name": "Żółw 🐢", "categoryId": -7, **status}
    pet = client.add(**new)
    assert isinstance(pet.pop("id"), int)
    assert pet == new


def test_the_id_of_a_pet_is_unique(client: Client) -> None:
    ids = [client.add()["id"] for _ in range(20)]
    assert len(set(ids)) == len(ids)


def test_the_id_of_a_pet_is_an_int64(client: Client) -> None:
    assert -(2**63) <= client.add()["id"] < 2**63


def test_the_id_of_a_pet_is_assigned_by_the_service(client: Client) -> None:
    assert client.add(id=2**62)["id"] != 2**62
