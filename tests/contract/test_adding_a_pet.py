"""interface.md, "Add an animal"."""

import pytest

from support.client import Client


def test_a_request_without_a_body_is_refused(client: Client) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/pets", headers=headers).status_code == 400


@pytest.mark.parametrize("body", ["", "null", "[]", '"Bella"', "1", "{", "{}", "name: Bella"])
def test_a_body_that_is_not_a_new_pet_is_refused(client: Client, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/pets", content=body, headers=headers).status_code == 400


def test_a_refused_pet_is_not_added(client: Client) -> None:
    before = client.add()["id"]
    client.create_pet(name="Bella", categoryId="none")
    assert client.get_pet(before + 1).status_code == 404


def test_adding_a_pet_returns_201_and_its_id(client: Client) -> None:
    created = client.create_pet(name="Oskar", categoryId=2, status="pending")
    assert created.status_code == 201
    pet = created.json()
    assert pet == {"id": pet["id"], "name": "Oskar", "categoryId": 2, "status": "pending"}
    assert client.get_pet(pet["id"]).json() == pet
