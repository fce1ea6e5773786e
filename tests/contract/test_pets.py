"""interface.md, "Resources and their fields", "Add an animal" and "Get an animal"."""

from email.utils import parsedate_to_datetime
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


def test_the_service_assigns_a_unique_int64_as_id(client: Client) -> None:
    ids = [client.add(id=2**62)["id"] for _ in range(20)]
    assert len({*ids, 2**62}) == len(ids) + 1
    assert all(-(2**63) <= each <= LARGEST for each in ids)


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


def test_a_pet_is_returned_by_its_identifier(client: Client) -> None:
    for added in (client.add(name="Bella"), client.add(name="Oskar", status="sold")):
        response = client.get_pet(added["id"])
        assert response.status_code == 200
        assert response.json() == added


@pytest.mark.parametrize("exists", [True, False])
def test_getting_a_pet_is_deprecated_and_ends_on_5_december_2030(
    client: Client, *, exists: bool
) -> None:
    got = client.get_pet(client.add()["id"] if exists else LARGEST)
    assert got.headers["Deprecation"].startswith("@")
    removed = parsedate_to_datetime(got.headers["Sunset"])
    assert (removed.year, removed.month, removed.day) == (2030, 12, 5)
    assert got.links["successor-version"]["url"] == str(got.request.url.copy_with(path="/v1/pets"))


def test_no_other_operation_is_deprecated(client: Client) -> None:
    for response in (client.list_pets(), client.create_pet(**BELLA)):
        assert "Deprecation" not in response.headers
        assert "Sunset" not in response.headers
