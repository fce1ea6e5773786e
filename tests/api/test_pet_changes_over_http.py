"""Change and delete animals."""

from itertools import product
from typing import Any

import httpx
import pytest

from support.error_body import assert_error
from support.sending import TEXT, Send, sender
from support.service import SERVICE_URL, Service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = {"id": 1, "name": "Bella", "categoryId": 7, "status": "available"}
STATUSES = (None, "available", "pending", "sold")
MOVES = {
    *((None, status) for status in STATUSES),
    *((status, status) for status in STATUSES),
    *(("available", status) for status in ("pending", "sold", None)),
    *(("pending", status) for status in ("available", "sold")),
    ("sold", "available"),
}
SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


async def add(send: Send, **fields: Any) -> None:
    """Add Bella, or an animal with other ``fields``; a status of ``None`` is none."""
    wanted = {name: value for name, value in (BELLA | fields).items() if value is not None}
    created = await send("POST", "/pets", json=wanted)
    assert created.status_code == 201


async def read(send: Send) -> dict[str, Any]:
    """Return the animal 1."""
    pet: dict[str, Any] = (await send("GET", "/pets/1")).json()
    return pet


async def patch(send: Send, **fields: Any) -> httpx.Response:
    """Change the animal 1."""
    return await send("PATCH", "/pets/1", json=fields)


# Changes that are refused


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", value) for value in (None, "", " \t\u00a0\u3000\n", "x" * 256, "Bel\0la", 5)),
        *(("name", value) for value in ("x" * 60_000 + "\0", ["Bella"])),
        *(("categoryId", value) for value in (None, "1", True, 1.5, 2**63, -(2**63) - 1, 2**64)),
        *(("status", value) for value in ("", "lost", "Sold", 1, False, ["sold"])),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_an_invalid_value_is_refused_naming_the_field(
    send: Send, field: str, value: Any
) -> None:
    await add(send)
    response = await patch(send, **{"name": "Max", "status": "sold", field: value})
    assert assert_error(response, 400, "invalid_body").startswith(f"{field}: expected ")
    assert await read(send) == BELLA


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'"sold"', b'{"name":"Max"}}', b'{"name":"\\ud800"}', b'{"a":"\xff"}'],
)
async def test_only_a_json_object_is_accepted(send: Send, body: bytes) -> None:
    await add(send)
    assert_error(await send("PATCH", "/pets/1", content=body), 400, "invalid_body")
    assert await read(send) == BELLA


@pytest.mark.parametrize("media_type", ["text/plain", "application/json-patch+json", ""])
async def test_a_change_is_json_or_a_merge_patch(send: Send, media_type: str) -> None:
    await add(send)
    headers = {"Content-Type": media_type}
    response = await send("PATCH", "/pets/1", headers=headers, content=b'{"name":"Max"}')
    message = assert_error(response, 415, "unsupported_media_type")
    assert "application/json or application/merge-patch+json" in message
    accepted = response.headers["Accept-Patch"]
    assert accepted == "application/merge-patch+json, application/json"
    assert "Accept-Encoding" not in response.headers
    assert await read(send) == BELLA


@pytest.mark.parametrize(
    "media_type",
    ["application/merge-patch+json", "Application/Merge-Patch+JSON; charset=utf-8"],
)
async def test_a_change_may_be_a_merge_patch(send: Send, media_type: str) -> None:
    await add(send)
    headers = {"Content-Type": media_type}
    response = await send("PATCH", "/pets/1", headers=headers, content=b'{"status":null}')
    assert response.status_code == 200
    assert "status" not in response.json()


@pytest.mark.parametrize(("path", "is_there"), [("/pets/1", True), ("/pets", False)])
@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
async def test_a_method_not_allowed_tells_how_a_resource_is_changed(
    send: Send, method: str, path: str, *, is_there: bool
) -> None:
    response = await send(method, path)
    assert_error(response, 405, "method_not_allowed")
    assert ("Accept-Patch" in response.headers) is is_there


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("pet_id", ["2", "0", "-1", "+1", "x", "1.0", "9223372036854775808", "%31"])
async def test_an_animal_that_is_not_there_is_not_found(
    send: Send, method: str, pet_id: str
) -> None:
    await add(send)
    response = await send(method, f"/pets/{pet_id}", json={"name": "Max"})
    assert_error(response, 404, "not_found")
    assert await read(send) == BELLA


@pytest.mark.parametrize(
    ("present", "wanted"), sorted({*product(STATUSES, STATUSES)} - MOVES, key=repr)
)
async def test_a_move_that_is_not_there_is_refused(
    send: Send, present: str, wanted: str | None
) -> None:
    await add(send, status=present)
    response = await patch(send, status=wanted, name="Max")
    message = assert_error(response, 409, "illegal_transition")
    assert message.startswith(f"status: {present} can become ")
    assert message.endswith(f", not {wanted or 'none'}")
    assert await read(send) == BELLA | {"status": present}


async def test_an_animal_is_changed_by_a_key_that_may(service: Service, send: Send) -> None:
    await add(send)
    reader = await service.issue(scopes=frozenset({"pets:read", "orders:write", "keys:admin"}))
    for method in ("PATCH", "DELETE"):
        response = await service.request(method, "/v1/pets/1", reader.token, json={"name": "Max"})
        assert_error(response, 403, "missing_scope")
    assert await read(send) == BELLA
    writer = await service.issue(scopes=frozenset({"pets:write"}))
    for method, status in (("PATCH", 200), ("DELETE", 204)):
        response = await service.request(method, "/v1/pets/1", writer.token, json={"name": "Max"})
        assert response.status_code == status


# Changes that are made


@pytest.mark.parametrize(("present", "wanted"), sorted(MOVES, key=repr))
async def test_a_status_makes_the_moves_it_may(
    send: Send, present: str | None, wanted: str | None
) -> None:
    await add(send, status=present)
    response = await patch(send, status=wanted)
    expected = {name: value for name, value in (BELLA | {"status": wanted}).items() if value}
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == expected == await read(send)


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ({}, {}),
        ({"id": 9, "owner": None}, {}),
        (BELLA, {}),
        ({"name": "x" * 255}, {"name": "x" * 255}),
        ({"name": " Max\n"}, {"name": " Max\n"}),
        ({"categoryId": -(2**63)}, {"categoryId": -(2**63)}),
        ({"categoryId": 2**63 - 1}, {"categoryId": 2**63 - 1}),
        ({"categoryId": 0.0}, {"categoryId": 0}),
        ({"name": "Max", "status": "sold"}, {"name": "Max", "status": "sold"}),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_only_what_is_named_changes(
    send: Send, body: dict[str, Any], changed: dict[str, Any]
) -> None:
    await add(send)
    await add(send)
    response = await send("PATCH", "/pets/1", json=body)
    assert response.status_code == 200
    assert response.json() == BELLA | changed == await read(send)
    assert "Location" not in response.headers
    assert (await send("GET", "/pets/2")).json() == BELLA | {"id": 2}


async def test_the_last_of_members_with_the_same_name_counts(send: Send) -> None:
    await add(send)
    content = b'{"name":null,"status":"lost","name":"Max","status":null}'
    response = await send("PATCH", "/pets/1", content=content)
    assert response.json() == {"id": 1, "name": "Max", "categoryId": 7}


async def test_lists_show_a_change_at_once(send: Send) -> None:
    await add(send)
    for path in ("/pets", "/pets?status=available", "/pets?categoryId=7", "/pets?id=1"):
        assert len((await send("GET", path)).json()) == 1
    changed = (await patch(send, status="sold", categoryId=8)).json()
    for path in ("/pets", "/pets?status=sold", "/pets?categoryId=8", "/pets?id=1"):
        assert (await send("GET", path)).json() == [changed]
    for path in ("/pets?status=available", "/pets?categoryId=7"):
        assert (await send("GET", path)).json() == []


# Deletions


async def test_a_deleted_animal_is_gone(send: Send) -> None:
    await add(send)
    response = await send("DELETE", "/pets/1")
    assert response.status_code == 204
    assert response.content == b""
    assert not {"Content-Length", "Content-Type", "ETag"} & set(response.headers)
    for method in ("GET", "PATCH", "DELETE"):
        response = await send(method, "/pets/1", json={})
        assert assert_error(response, 404, "not_found") == "there is no pet 1"
    assert (await send("GET", "/pets")).json() == []


async def test_the_id_of_a_deleted_animal_is_not_used_again(send: Send) -> None:
    for pet_id in (1, 2, 3):
        await add(send)
        assert (await send("DELETE", f"/pets/{pet_id}")).status_code == 204
    created = await send("POST", "/pets", json=BELLA)
    assert created.headers["Location"] == f"{SERVICE_URL}/v1/pets/4"


async def test_a_body_that_deletes_nothing_does_no_harm(send: Send) -> None:
    await add(send)
    response = await send("DELETE", "/pets/1", headers=TEXT, content=b"no JSON")
    assert response.status_code == 204


# Animals that an open order holds


async def order(send: Send, *, approved: bool = False) -> None:
    """Order the animal 1: it becomes pending."""
    assert (await send("POST", "/store/orders", json={"petId": 1})).status_code == 201
    if approved:
        response = await send("PATCH", "/store/orders/1", json={"status": "approved"})
        assert response.status_code == 200


@pytest.mark.parametrize("approved", [False, True], ids=["placed", "approved"])
async def test_the_status_of_a_reserved_animal_stays(send: Send, *, approved: bool) -> None:
    await add(send)
    await order(send, approved=approved)
    for status in ("available", "sold", None):
        response = await patch(send, status=status, name="Max")
        message = assert_error(response, 409, "pet_reserved")
        assert message == f"order 1 is {'approved' if approved else 'placed'} and reserves pet 1"
    assert_error(await send("DELETE", "/pets/1"), 409, "pet_reserved")
    assert await read(send) == BELLA | {"status": "pending"}


async def test_name_and_category_of_a_reserved_animal_can_change(send: Send) -> None:
    await add(send)
    await order(send)
    response = await patch(send, name="Max", categoryId=8, status="pending")
    assert response.json() == {"id": 1, "name": "Max", "categoryId": 8, "status": "pending"}
    assert (await send("GET", "/store/orders/1")).json()["status"] == "placed"


async def test_an_animal_is_free_once_its_order_is_cancelled(send: Send) -> None:
    await add(send)
    await order(send)
    await send("DELETE", "/store/orders/1")
    assert (await patch(send, status="sold")).status_code == 200
    assert (await send("DELETE", "/pets/1")).status_code == 204
    assert (await send("GET", "/store/orders/1")).json()["petId"] == 1


async def test_an_animal_is_free_once_its_order_is_delivered(send: Send) -> None:
    await add(send)
    await order(send, approved=True)
    await send("PATCH", "/store/orders/1", json={"status": "delivered"})
    assert (await patch(send, status="available")).status_code == 200
    assert (await send("DELETE", "/pets/1")).status_code == 204


async def test_an_animal_is_free_once_its_reservation_has_lapsed(
    service: Service, send: Send
) -> None:
    await add(send)
    await order(send)
    service.clock.advance(service.settings.reservation_minutes * 60)
    assert (await patch(send, status="sold")).status_code == 200
    assert (await send("DELETE", "/pets/1")).status_code == 204


# The sunset of getPet is not theirs


async def test_changing_and_deleting_outlive_get_pet(service: Service, send: Send) -> None:
    await add(send)
    service.clock.now = SUNSET
    assert_error(await send("GET", "/pets/1"), 410, "gone")
    for response in (await patch(send, name="Max"), await send("DELETE", "/pets/1")):
        assert response.status_code in (200, 204)
        assert not {"Deprecation", "Sunset", "Link"} & set(response.headers)


async def test_changing_and_deleting_are_not_deprecated(send: Send) -> None:
    await add(send)
    for response in (await patch(send, name="Max"), await send("DELETE", "/pets/1")):
        assert not {"deprecation", "sunset", "link"} & set(response.headers)
