"""Change and delete pets.

Which bodies are a change and how a status moves is tested in ``test_model_changes.py``; what
an open order keeps from changing in ``test_store.py``.
"""

from typing import Any

import httpx
import pytest

from support.cases import case
from support.error_body import assert_error
from support.sending import TEXT, Send, sender
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

BELLA = {"id": 1, "name": "Bella", "categoryId": 7, "status": "available"}
SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


async def add(send: Send) -> None:
    """Add Bella."""
    assert (await send("POST", "/pets", json=BELLA)).status_code == 201


async def read(send: Send) -> dict[str, Any]:
    """Return the pet 1."""
    pet: dict[str, Any] = (await send("GET", "/pets/1")).json()
    return pet


async def patch(send: Send, **fields: Any) -> httpx.Response:
    """Change the pet 1."""
    return await send("PATCH", "/pets/1", json=fields)


# Changes that are refused


async def test_a_change_is_json_or_a_merge_patch(send: Send) -> None:
    await add(send)
    for media_type in ("text/plain", "application/json-patch+json", ""):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("PATCH", "/pets/1", headers=headers, content=b'{"name":"Max"}')
            message = assert_error(response, 415, "unsupported_media_type")
            assert "application/json or application/merge-patch+json" in message
            accepted = response.headers["Accept-Patch"]
            assert accepted == "application/merge-patch+json, application/json"
            assert "Accept-Encoding" not in response.headers
    assert await read(send) == BELLA
    taken = "application/merge-patch+json"
    for media_type in (taken, "Application/Merge-Patch+JSON; charset=utf-8"):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("PATCH", "/pets/1", headers=headers, content=b'{"status":null}')
            assert "status" not in response.json()


async def test_an_unknown_pet_is_not_found(send: Send) -> None:
    await add(send)
    for method in ("PATCH", "DELETE"):
        for pet_id in ("2", "+1", "1.0", "9223372036854775808", "%31"):
            with case(method, pet_id):
                response = await send(method, f"/pets/{pet_id}", json={"name": "Max"})
                assert_error(response, 404, "not_found")
    assert await read(send) == BELLA


async def test_a_refused_change_changes_nothing(send: Send) -> None:
    await add(send)
    await patch(send, status="sold")
    message = assert_error(
        await patch(send, status="pending", name="Max"), 409, "illegal_transition"
    )
    assert message == "status: sold can become available, not pending"
    assert await read(send) == BELLA | {"status": "sold"}


# Changes that are made


@pytest.mark.each_database
async def test_only_the_named_fields_change(send: Send) -> None:
    for _ in range(2):
        await add(send)
    expected = BELLA
    for body, changed in (
        ({}, {}),
        ({"id": 9, "owner": None}, {}),
        (BELLA, {}),
        ({"name": "x" * 255}, {"name": "x" * 255}),
        ({"categoryId": -(2**63)}, {"categoryId": -(2**63)}),
        ({"categoryId": 2**63 - 1}, {"categoryId": 2**63 - 1}),
        ({"categoryId": 0.0}, {"categoryId": 0}),
        ({"name": " Max\n", "status": "sold"}, {"name": " Max\n", "status": "sold"}),
    ):
        with case(body):
            expected = expected | changed
            response = await send("PATCH", "/pets/1", json=body)
            assert response.status_code == 200
            assert response.headers["Content-Type"] == "application/json"
            assert response.json() == expected == await read(send)
            assert "Location" not in response.headers
    assert (await send("GET", "/pets/2")).json() == BELLA | {"id": 2}


# Deletions


@pytest.mark.each_database
async def test_a_deleted_pet_is_not_found_and_its_id_not_reused(send: Send) -> None:
    for pet_id in (1, 2, 3):
        await add(send)
        response = await send("DELETE", f"/pets/{pet_id}", headers=TEXT, content=b"no JSON")
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
    await add(send)
    for now in (service.clock.now, SUNSET):
        service.clock.now = now
        response = await patch(send, name="Max")
        assert response.status_code == 200
        assert not {"deprecation", "sunset", "link"} & set(response.headers)
    assert_error(await send("GET", "/pets/1"), 410, "gone")
    response = await send("DELETE", "/pets/1")
    assert response.status_code == 204
    assert not {"deprecation", "sunset", "link"} & set(response.headers)
