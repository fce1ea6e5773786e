"""interface.md, "What the service does" and "Versioning"."""

import httpx

from support.client import Client
from support.process import ServerProcess


def test_nothing_is_served_under_another_version(server: ServerProcess, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/pets", "/v2/pets", "/v1.0.0/pets", "/V1/pets"):
        assert httpx.get(f"{server.url}{path}", headers=headers).status_code == 404


def test_the_base_address_ends_in_the_segment_v1(server: ServerProcess, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{server.url}/v1/pets", headers=headers).status_code == 200


def test_the_interface_version_is_1_0_0(stranger: Client) -> None:
    assert stranger.get("/openapi.json").json()["info"]["version"] == "1.0.0"


def test_response_bodies_are_application_json(response: httpx.Response) -> None:
    assert response.headers["Content-Type"] == "application/json"
    response.json()


def test_request_bodies_are_application_json(client: Client) -> None:
    body = b'{"name": "Bella", "categoryId": 1}'
    headers = {"Content-Type": "application/json"}
    assert client.post("/pets", content=body, headers=headers).status_code == 201
