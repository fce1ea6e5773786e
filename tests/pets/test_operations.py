"""Add, list, get, change and delete pets; which bodies are one, test_model.py tests."""

from typing import Any

import pytest

from support.cases import case
from support.error_body import assert_error
from support.sending import Send
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

BELLA = {"id": 1, "name": "Bella", "categoryId": 7, "status": "available"}
SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


@pytest.mark.each_database
async def test_a_pet_is_returned_as_it_was_added_and_changed(send: Send) -> None:
    first: dict[str, Any] = {"id": 1}
    for number, body in enumerate(
        (
            {"name": "B", "categoryId": 1},
            {"name": "Bella", "categoryId": 1, "status": "available"},
            {"name": "Bella", "categoryId": 0, "status": "pending"},
            {"name": "Bella", "categoryId": -(2**63), "status": "sold"},
            {"name": " Bella ", "categoryId": 2**63 - 1},
            {"name": "\U0001f436" * 255, "categoryId": 1},
            {"name": "O'Hara\"; DROP TABLE pets; --\n", "categoryId": 1},
            {"name": "\u202ea\u0001\u007f", "categoryId": -1},
            {"name": "x" * 255, "categoryId": 2**53 + 1},
            {"name": "null", "categoryId": 1},
            {"name": "=1+1", "categoryId": 1},
        ),
        1,
    ):
        with case(body):
            created = await send("POST", "/pets", json={**body, "id": 7, "owner": "me"})
            assert created.status_code == 201
            assert created.json() == {"id": number, **body}
            assert created.headers.get_list("Location") == [f"{SERVICE_URL}/v1/pets/{number}"]
            assert (await send("GET", f"/pets/{number}")).json() == created.json()
            assert (await send("GET", "/pets")).json()[-1] == created.json()
            changed = await send("PATCH", "/pets/1", json={**body, "id": 9})
            first |= body
            assert (changed.status_code, changed.json()) == (200, first)
            assert (await send("GET", "/pets")).json()[0] == first
            for response in (created, changed):
                assert response.headers["Content-Type"] == "application/json"


async def test_a_change_is_json_or_a_merge_patch(send: Send) -> None:
    await send("POST", "/pets", json=BELLA)
    for media_type in ("text/plain", "application/json-patch+json", ""):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("PATCH", "/pets/1", headers=headers, content=b'{"name":"Max"}')
            message = assert_error(response, 415, "unsupported_media_type")
            assert "application/json or application/merge-patch+json" in message
            accepted = response.headers["Accept-Patch"]
            assert accepted == "application/merge-patch+json, application/json"
    assert (await send("GET", "/pets/1")).json() == BELLA
    headers = {"Content-Type": "Application/Merge-Patch+JSON; charset=utf-8"}
    response = await send("PATCH", "/pets/1", headers=headers, content=b'{"status":null}')
    assert "status" not in response.json()


@pytest.mark.each_database
async def test_a_deleted_pet_is_not_found_and_its_id_not_reused(send: Send) -> None:
    for pet_id in (1, 2, 3):
        await send("POST", "/pets", json=BELLA)
        text = {"Content-Type": "text/plain"}
        response = await send("DELETE", f"/pets/{pet_id}", headers=text, content=b"no JSON")
        assert (response.status_code, response.content) == (204, b"")
        assert not {"Content-Length", "Content-Type", "ETag"} & set(response.headers)
    for method in ("GET", "PATCH", "DELETE"):
        response = await send(method, "/pets/1", json={})
        assert assert_error(response, 404, "not_found") == "there is no pet 1"
    assert (await send("GET", "/pets")).json() == []
    created = await send("POST", "/pets", json=BELLA)
    assert created.headers["Location"] == f"{SERVICE_URL}/v1/pets/4"


async def test_pets_can_be_changed_and_deleted_after_the_sunset_of_get_pet(
    service: Service, send: Send
) -> None:
    await send("POST", "/pets", json=BELLA)
    service.clock.now = SUNSET
    assert_error(await send("GET", "/pets/1"), 410, "gone")
    for method, status in (("PATCH", 200), ("DELETE", 204)):
        response = await send(method, "/pets/1", json={"name": "Max"})
        assert response.status_code == status
        assert not {"deprecation", "sunset", "link"} & set(response.headers)
