"""interface.md, "Authentication"."""

from collections.abc import Callable

import httpx
import pytest

from support.client import Client
from support.error_body import assert_error
from support.process import ServerProcess

Operation = Callable[[Client], httpx.Response]

OPERATIONS: dict[str, Operation] = {
    "listPets": lambda client: client.list_pets(),
    "createPet": lambda client: client.create_pet(name="Bella", categoryId=1),
    "getPet": lambda client: client.get_pet(2**63 - 1),
}


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


def test_every_operation_without_a_key_is_refused_with_401(
    stranger: Client, operation: Operation
) -> None:
    assert_error(operation(stranger), 401, "missing_api_key")


def test_every_operation_with_an_invalid_key_is_refused_with_401(
    server: ServerProcess, operation: Operation
) -> None:
    with Client(server.url, "not-a-key") as client:
        assert_error(operation(client), 401, "invalid_api_key")


@pytest.mark.parametrize(
    "authorization", ["{token}", "Basic {token}", "Token {token}", "Bearer", "Bearer:{token}"]
)
def test_a_key_in_another_form_is_refused_with_401(
    stranger: Client, token: str, authorization: str
) -> None:
    headers = {"Authorization": authorization.format(token=token)}
    assert stranger.get("/pets", headers=headers).status_code == 401


def test_a_key_in_the_query_is_refused_with_401(stranger: Client, token: str) -> None:
    parameters = {"api_key": token, "access_token": token, "Authorization": f"Bearer {token}"}
    assert stranger.get("/pets", params=parameters).status_code == 401


def test_a_key_with_one_character_changed_is_refused_with_401(
    server: ServerProcess, token: str, operation: Operation
) -> None:
    changed = token[:-1] + ("A" if token[-1] != "A" else "B")
    with Client(server.url, changed) as client:
        assert_error(operation(client), 401, "invalid_api_key")


def test_every_operation_accepts_the_key_as_a_bearer_token(
    client: Client, operation: Operation
) -> None:
    assert operation(client).status_code in {200, 201, 404}
