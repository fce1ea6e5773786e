"""interface.md, "Get an animal", and the deprecation in "Versioning"."""

from email.utils import parsedate_to_datetime

import httpx
import pytest

from support.client import Client


@pytest.fixture(scope="module", params=["found", "not found"])
def got(request: pytest.FixtureRequest, client: Client) -> httpx.Response:
    return client.get_pet(client.add()["id"] if request.param == "found" else 2**63 - 1)


@pytest.mark.parametrize("pet_id", [0, 2**63 - 1, 2**63, -1, "Bella", "1.0", "%31", "1 "])
def test_a_pet_that_does_not_exist_is_not_found(client: Client, pet_id: object) -> None:
    client.add()
    assert client.get_pet(pet_id).status_code == 404


def test_a_pet_is_returned_by_its_identifier(client: Client) -> None:
    pet, other = client.add(name="Bella"), client.add(name="Oskar", status="sold")
    for added in (pet, other):
        response = client.get_pet(added["id"])
        assert response.status_code == 200
        assert response.json() == added


def test_the_operation_is_deprecated(got: httpx.Response) -> None:
    assert got.headers["Deprecation"].startswith("@")


def test_the_sunset_of_the_operation_is_5_december_2030(got: httpx.Response) -> None:
    removed = parsedate_to_datetime(got.headers["Sunset"])
    assert (removed.year, removed.month, removed.day) == (2030, 12, 5)


def test_the_response_links_to_the_list_of_pets(got: httpx.Response) -> None:
    assert got.links["successor-version"]["url"] == str(got.request.url.copy_with(path="/v1/pets"))


def test_no_other_operation_is_deprecated(client: Client) -> None:
    for response in (client.list_pets(), client.create_pet(name="Bella", categoryId=1)):
        assert "Deprecation" not in response.headers
        assert "Sunset" not in response.headers
