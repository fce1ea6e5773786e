"""interface.md, "What the service does", "Authentication", "Errors" and "Versioning"."""

from collections.abc import Callable

import httpx
import pytest

from support.client import Client
from support.error_body import assert_error
from support.process import ServerProcess
from support.visitor import SAME_ORIGIN

Operation = Callable[[Client], httpx.Response]

OPERATIONS: dict[str, Operation] = {
    "listPets": lambda client: client.list_pets(),
    "createPet": lambda client: client.create_pet(name="Bella", categoryId=1),
    "getPet": lambda client: client.get_pet(2**63 - 1),
}


def test_the_interface_is_served_below_v1_alone(
    server: ServerProcess, token: str, stranger: Client
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/pets", "/v2/pets", "/v1.0.0/pets", "/V1/pets"):
        assert httpx.get(f"{server.url}{path}", headers=headers).status_code == 404
    assert httpx.get(f"{server.url}/v1/pets", headers=headers).status_code == 200
    assert stranger.get("/openapi.json").json()["info"]["version"] == "1.0.0"


def test_bodies_are_application_json(response: httpx.Response, client: Client) -> None:
    assert response.headers["Content-Type"] == "application/json"
    response.json()
    body = b'{"name": "Bella", "categoryId": 1}'
    headers = {"Content-Type": "application/json"}
    assert client.post("/pets", content=body, headers=headers).status_code == 201


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_requires_a_valid_key_as_a_bearer_token(
    server: ServerProcess, client: Client, stranger: Client, token: str, operation: Operation
) -> None:
    assert operation(client).status_code in {200, 201, 404}
    assert_error(operation(stranger), 401, "missing_api_key")
    for wrong in ("not-a-key", token[:-1] + ("A" if token[-1] != "A" else "B")):
        with Client(server.url, wrong) as other:
            assert_error(operation(other), 401, "invalid_api_key")


def test_an_error_is_json_with_a_code_a_message_and_the_status(error: httpx.Response) -> None:
    assert error.headers["Content-Type"] == "application/json"
    body = error.json()
    assert set(body) == {"code", "message", "status"}
    assert body["code"].isascii()
    assert body["code"].isidentifier()
    assert body["code"].islower()
    assert " " in body["message"]
    assert type(body["status"]) is int
    assert body["status"] == error.status_code


def test_a_session_from_the_sign_in_form_works_in_every_process(
    server: ServerProcess, token: str
) -> None:
    with httpx.Client(base_url=f"{server.url}/console", headers=SAME_ORIGIN) as browser:
        assert browser.get("/account").status_code == 303
        assert browser.post("/sign-in", data={"key": token}).status_code == 303
        for _ in range(4):
            assert browser.get("/account").status_code == 200
        assert browser.post("/sign-out", data={"sure": "1"}).status_code == 303
        assert browser.get("/account").status_code == 303
