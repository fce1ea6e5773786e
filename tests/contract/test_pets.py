"""interface.md, "Resources and their fields", "List animals", "Add an animal", "Get an animal"."""

from typing import Any

import pytest

from support.client import Client

BELLA: dict[str, Any] = {"name": "Bella", "categoryId": 1}
LARGEST = 2**63 - 1


def test_adding_a_pet_returns_201_with_its_fields_and_its_id(client: Client) -> None:
    created = client.create_pet(name="Oskar", categoryId=2, status="pending")
    assert created.status_code == 201
    pet = created.json()
    assert pet == {"id": pet["id"], "name": "Oskar", "categoryId": 2, "status": "pending"}
    assert client.get_pet(pet["id"]).json() == pet


@pytest.mark.parametrize(
    "new",
    [
        {"name": "Żółw 🐢", "categoryId": -7},
        *({**BELLA, "status": status} for status in ("available", "pending", "sold")),
        *({**BELLA, "categoryId": number} for number in (-(2**63), -1, 0, LARGEST)),
    ],
)
def test_a_pet_has_every_field_of_the_new_pet_and_an_id(
    client: Client, new: dict[str, Any]
) -> None:
    pet = client.add(**new)
    assert isinstance(pet.pop("id"), int)
    assert pet == new


@pytest.mark.parametrize("body", ["", "null", "[]", '"Bella"', "1", "{", "{}", "name: Bella"])
def test_a_body_that_is_not_a_new_pet_is_refused(client: Client, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/pets", content=body, headers=headers).status_code == 400
    assert client.post("/pets", headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", [1, True, None, [], {}]),
        ("categoryId", ["1", 1.5, True, None, [], {}, -(2**63) - 1, 2**63]),
        ("status", ["", "Available", "SOLD", "reserved", 1, []]),
    ],
)
def test_a_value_that_is_missing_or_not_of_its_type_is_refused_and_adds_nothing(
    client: Client, field: str, values: list[object]
) -> None:
    before = client.add()["id"]
    for value in values:
        assert client.create_pet(**{**BELLA, field: value}).status_code == 400, value
    others = {name: value for name, value in BELLA.items() if name != field}
    assert client.create_pet(**others).status_code == (400 if field in BELLA else 201)
    assert client.get_pet(before + 1).status_code == (404 if field in BELLA else 200)


@pytest.mark.parametrize("pet_id", [0, LARGEST, 2**63, -1, "Bella", "1.0", "%31", "1 "])
def test_a_pet_that_does_not_exist_is_not_found(client: Client, pet_id: object) -> None:
    client.add()
    assert client.get_pet(pet_id).status_code == 404


def test_a_list_has_pets_of_the_wanted_status_up_to_its_limit_or_20(client: Client) -> None:
    for _ in range(25):
        client.add(status="sold")
    assert len(client.list_pets().json()) == 20
    sold = client.list_pets(status="sold", limit=25).json()
    assert [pet["status"] for pet in sold] == ["sold"] * 25
