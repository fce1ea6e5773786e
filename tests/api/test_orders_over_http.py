"""Place, read, move and cancel orders."""

from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx
import pytest

from petstore.domain.pets import NewPet
from support.changes import create_pets
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import SERVICE_URL, Service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ORDERS = "/store/orders"
ORDER = {
    "id": 1,
    "petId": 1,
    "quantity": 1,
    "status": "placed",
    "complete": False,
    "placedAt": "2026-12-01T12:00:00Z",
    "reservedUntil": "2026-12-02T12:00:00Z",
}
WAYS: dict[str, tuple[str, ...]] = {
    "placed": (),
    "approved": ("approved",),
    "delivered": ("approved", "delivered"),
    "cancelled": ("cancelled",),
}
"""How an order gets to a status."""
MOVES = {
    ("placed", "approved"),
    ("placed", "cancelled"),
    ("approved", "delivered"),
    ("approved", "cancelled"),
}
PET_AFTER = {
    "placed": "pending",
    "approved": "pending",
    "delivered": "sold",
    "cancelled": "available",
}
ODD_DATES = [
    *(5, True, [], "", "tomorrow", "2026-12-24", "2026-12-24T10:00:00", "2026-12-24T10:00Z"),
    *("2016-12-31T23:59:60Z", "2026-02-29T00:00:00Z", "2026-12-24T10:00:00+24:00"),
    *("0000-12-24T10:00:00Z", "10000-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"),
]
ODD_QUANTITIES = (None, 0, 2, 2**63, 1.5, "1", True)


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits, to a store with four available animals."""
    await service.store.write(create_pets([NewPet("Bella", 7, "available")] * 4))
    return await sender(service)


async def place_order(send: Send, pet_id: int = 1, **fields: Any) -> dict[str, Any]:
    created = await send("POST", ORDERS, json={"petId": pet_id, **fields})
    assert created.status_code == 201, created.text
    order: dict[str, Any] = created.json()
    return order


async def patch(send: Send, **fields: Any) -> httpx.Response:
    """Change the order 1."""
    return await send("PATCH", f"{ORDERS}/1", json=fields)


async def place_as(send: Send, status: str, **fields: Any) -> dict[str, Any]:
    """Place the order 1 and move it to ``status``; return it."""
    order = await place_order(send, **fields)
    for move in WAYS[status]:
        moved = await patch(send, status=move)
        assert moved.status_code == 200, moved.text
        order = moved.json()
    return order


async def read(send: Send) -> dict[str, Any]:
    """Return the order 1."""
    order: dict[str, Any] = (await send("GET", f"{ORDERS}/1")).json()
    return order


async def pet_status(send: Send) -> str | None:
    """Return the status of the animal 1."""
    status: str | None = (await send("GET", "/pets/1")).json().get("status")
    return status


async def listed(send: Send, query: str = "") -> list[int]:
    response = await send("GET", f"{ORDERS}{query}")
    assert response.status_code == 200, response.text
    return [order["id"] for order in response.json()]


# What placeOrder refuses


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("petId", value) for value in (None, "1", True, 1.5, 2**63, -(2**63) - 1, [1])),
        *(("quantity", value) for value in ODD_QUANTITIES),
        *(("shipDate", value) for value in (None, *ODD_DATES)),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_an_invalid_value_of_an_order_is_refused_naming_the_field(
    send: Send, field: str, value: Any
) -> None:
    response = await send("POST", ORDERS, json={"petId": 1, field: value})
    assert assert_error(response, 400, "invalid_body").startswith(f"{field}: expected ")
    assert await listed(send) == []
    assert await pet_status(send) == "available"


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[]", b"7", b'{"petId":1}}', b'{"petId":1,"x":"\xff"}']
)
async def test_an_invalid_order_is_refused(send: Send, body: bytes) -> None:
    assert_error(await send("POST", ORDERS, content=body), 400, "invalid_body")
    assert await listed(send) == []


@pytest.mark.parametrize("pet_id", [0, -1, 5, 2**63 - 1, -(2**63)])
async def test_an_animal_that_is_not_there_cannot_be_ordered(send: Send, pet_id: int) -> None:
    response = await send("POST", ORDERS, json={"petId": pet_id})
    message = assert_error(response, 400, "unknown_pet")
    assert message == f"petId: expected an existing animal; there is no pet {pet_id}"


async def test_a_deleted_animal_cannot_be_ordered(send: Send) -> None:
    await send("DELETE", "/pets/1")
    assert_error(await send("POST", ORDERS, json={"petId": 1}), 400, "unknown_pet")


@pytest.mark.parametrize("status", [None, "pending", "sold"])
async def test_only_an_available_animal_can_be_ordered(send: Send, status: str | None) -> None:
    await send("PATCH", "/pets/1", json={"status": status})
    response = await send("POST", ORDERS, json={"petId": 1})
    message = assert_error(response, 409, "pet_not_available")
    word = status or "without a status"
    assert message == f"pet 1 is {word}; only an available one can be ordered"
    assert await listed(send) == []
    assert await pet_status(send) == status


@pytest.mark.parametrize("status", ["placed", "approved", "delivered"])
async def test_an_animal_has_one_buyer(send: Send, status: str) -> None:
    await place_as(send, status)
    assert_error(await send("POST", ORDERS, json={"petId": 1}), 409, "pet_not_available")
    assert await listed(send) == [1]


# What placeOrder does


async def test_an_order_reserves_the_animal(send: Send) -> None:
    response = await send("POST", ORDERS, json={"petId": 1})
    assert response.status_code == 201
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Location"] == f"{SERVICE_URL}/v1/store/orders/1"
    assert response.json() == ORDER == await read(send)
    path = response.headers["Location"].removeprefix(f"{SERVICE_URL}/v1")
    assert (await send("GET", path)).json() == ORDER
    assert await pet_status(send) == "pending"
    assert (await send("GET", "/pets/2")).json()["status"] == "available"


async def test_members_that_are_not_of_an_order_to_place_do_not_count(send: Send) -> None:
    odd: dict[str, Any] = {
        "id": 9,
        "status": "delivered",
        "complete": True,
        "placedAt": 1,
        "note": None,
    }
    assert await place_order(send, **odd) == ORDER


@pytest.mark.parametrize("quantity", ["1", "1.0", "1e0"])
async def test_one_is_one_however_it_is_written(send: Send, quantity: str) -> None:
    content = f'{{"petId": 1, "quantity": {quantity}}}'
    response = await send("POST", ORDERS, content=content)
    assert response.json() == ORDER


async def test_ids_ascend_and_none_is_spent_on_a_refusal(send: Send) -> None:
    for number in (1, 2, 3):
        assert (await place_order(send))["id"] == number
        assert_error(await send("POST", ORDERS, json={"petId": 1}), 409, "pet_not_available")
        assert (await send("DELETE", f"{ORDERS}/{number}")).status_code == 204
    assert (await place_order(send, 2))["id"] == 4


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-12-24T10:00:00Z", "2026-12-24T10:00:00Z"),
        ("2026-12-24t10:00:00z", "2026-12-24T10:00:00Z"),
        ("2026-12-24T10:00:00+01:00", "2026-12-24T10:00:00+01:00"),
        ("2026-12-24T10:00:00-23:59", "2026-12-24T10:00:00-23:59"),
        ("2026-12-24T10:00:00-00:00", "2026-12-24T10:00:00Z"),
        ("2026-12-24T10:00:00.5+05:30", "2026-12-24T10:00:00.500000+05:30"),
        ("2026-12-24T10:00:00.1234564Z", "2026-12-24T10:00:00.123456Z"),
        ("2026-12-24T23:59:59.9999999Z", "2026-12-25T00:00:00Z"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        ("9999-12-31T23:59:59.999999-01:00", "9999-12-31T23:59:59.999999-01:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
async def test_a_date_keeps_its_offset_to_the_microsecond(
    send: Send, given: str, kept: str
) -> None:
    expected = ORDER | {"shipDate": kept}
    assert await place_order(send, shipDate=given) == expected == await read(send)
    assert await place_order(send, 2) == ORDER | {"id": 2, "petId": 2}
    response = await send("PATCH", f"{ORDERS}/2", json={"shipDate": given})
    assert response.json()["shipDate"] == kept
    approved = await patch(send, status="approved")
    assert approved.json()["shipDate"] == kept == (await read(send))["shipDate"]


# What updateOrder refuses


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("status", value) for value in (None, "", "Placed", "shipped", 1, False)),
        *(("quantity", value) for value in ODD_QUANTITIES),
        *(("shipDate", value) for value in ODD_DATES),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_an_invalid_value_of_a_change_is_refused_naming_the_field(
    send: Send, field: str, value: Any
) -> None:
    await place_order(send)
    response = await patch(send, **{"status": "approved", field: value})
    assert assert_error(response, 400, "invalid_body").startswith(f"{field}: expected ")
    assert await read(send) == ORDER


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("order_id", ["2", "0", "-1", "+1", "x", "1.0", "9223372036854775808"])
async def test_an_order_that_is_not_there_is_not_found(
    send: Send, method: str, order_id: str
) -> None:
    await place_order(send)
    response = await send(method, f"{ORDERS}/{order_id}", json={"status": "cancelled"})
    assert_error(response, 404, "not_found")
    assert await read(send) == ORDER


@pytest.mark.parametrize(("present", "wanted"), sorted({*product(WAYS, WAYS)} - MOVES))
async def test_a_move_that_is_not_there_is_refused(send: Send, present: str, wanted: str) -> None:
    order = await place_as(send, present)
    message = assert_error(await patch(send, status=wanted), 409, "illegal_transition")
    assert message.startswith(f"status: {present} can become ")
    assert message.endswith(f", not {wanted}")
    assert await read(send) == order
    assert await pet_status(send) == PET_AFTER[present]


@pytest.mark.parametrize("status", ["delivered", "cancelled"])
@pytest.mark.parametrize("fields", [{"shipDate": None}, {"shipDate": "2026-12-24T10:00:00Z"}])
async def test_the_date_of_a_closed_order_stays(
    send: Send, status: str, fields: dict[str, Any]
) -> None:
    order = await place_as(send, status, shipDate="2026-12-24T10:00:00Z")
    message = assert_error(await patch(send, **fields), 409, "order_closed")
    assert message == f"order 1 is {status}: its shipDate can no longer change"
    assert await read(send) == order


async def test_a_refused_change_changes_nothing(send: Send) -> None:
    await place_order(send)
    response = await patch(send, status="delivered", shipDate="2026-12-24T10:00:00Z")
    assert_error(response, 409, "illegal_transition")
    assert await read(send) == ORDER


# What updateOrder does


@pytest.mark.parametrize(("present", "wanted"), sorted(MOVES))
async def test_a_status_makes_the_moves_it_may(send: Send, present: str, wanted: str) -> None:
    await place_as(send, present)
    response = await patch(send, status=wanted)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    expected = {name: value for name, value in ORDER.items() if name != "reservedUntil"}
    expected |= {"status": wanted, "complete": wanted == "delivered"}
    assert response.json() == expected == await read(send)
    assert await pet_status(send) == PET_AFTER[wanted]


@pytest.mark.parametrize("status", WAYS)
@pytest.mark.parametrize("fields", [{}, {"quantity": 1}, {"petId": 2, "complete": True, "id": 9}])
async def test_a_change_that_changes_nothing_is_fine(
    send: Send, status: str, fields: dict[str, Any]
) -> None:
    order = await place_as(send, status)
    response = await patch(send, **fields)
    assert (response.status_code, response.json()) == (200, order)
    assert await pet_status(send) == PET_AFTER[status]


@pytest.mark.parametrize("status", ["placed", "approved"])
async def test_the_date_of_an_open_order_changes_and_goes(send: Send, status: str) -> None:
    order = await place_as(send, status)
    for date in ("2026-12-24T10:00:00+01:00", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"):
        response = await patch(send, shipDate=date)
        assert response.json() == order | {"shipDate": date} == await read(send)
    for _ in range(2):
        response = await patch(send, shipDate=None)
        assert (response.status_code, response.json()) == (200, order)
    assert await read(send) == order


async def test_status_and_date_change_together(send: Send) -> None:
    await place_as(send, "approved")
    date = "2026-12-24T10:00:00Z"
    order = (await patch(send, status="delivered", shipDate=date)).json()
    assert (order["status"], order["complete"], order["shipDate"]) == ("delivered", True, date)


async def test_an_animal_that_comes_back_can_be_sold_again(send: Send) -> None:
    await place_as(send, "delivered")
    await send("PATCH", "/pets/1", json={"status": "available"})
    assert await place_order(send) == ORDER | {"id": 2}
    assert (await read(send))["status"] == "delivered"


# cancelOrder


async def test_a_delivered_order_cannot_be_cancelled(send: Send) -> None:
    order = await place_as(send, "delivered")
    response = await send("DELETE", f"{ORDERS}/1")
    message = assert_error(response, 409, "illegal_transition")
    assert message == "status: delivered can become nothing else, not cancelled"
    assert await read(send) == order
    assert await pet_status(send) == "sold"


@pytest.mark.parametrize("status", ["placed", "approved", "cancelled"])
async def test_deleting_an_order_cancels_it_and_it_can_still_be_read(
    send: Send, status: str
) -> None:
    order = await place_as(send, status)
    for _ in range(2):
        response = await send("DELETE", f"{ORDERS}/1")
        assert (response.status_code, response.content) == (204, b"")
        assert not {"content-length", "content-type", "etag"} & set(response.headers)
    order.pop("reservedUntil", None)
    assert await read(send) == order | {"status": "cancelled"}
    assert await listed(send) == [1]
    assert await pet_status(send) == "available"


async def test_cancelling_again_does_not_free_what_another_has_ordered(send: Send) -> None:
    await place_as(send, "cancelled")
    await place_order(send)
    assert (await send("DELETE", f"{ORDERS}/1")).status_code == 204
    assert await pet_status(send) == "pending"


@pytest.mark.parametrize("status", ["delivered", "cancelled"])
async def test_the_order_of_a_deleted_animal_can_still_be_read(send: Send, status: str) -> None:
    order = await place_as(send, status)
    assert (await send("DELETE", "/pets/1")).status_code == 204
    assert await read(send) == order
    assert await listed(send, "?petId=1") == [1]
    deleted = await send("DELETE", f"{ORDERS}/1")
    assert deleted.status_code == (409 if status == "delivered" else 204)
    assert (await send("GET", "/pets/1")).status_code == 404


# listOrders


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *((f"?status={value}", "status") for value in ("", "Placed", "available", "shipped")),
        *((f"?petId={value}", "petId") for value in ("", "x", "1.0", "+1", "9223372036854775808")),
        *((f"?limit={value}", "limit") for value in ("0", "101", "", "x")),
        *((f"?cursor={value}", "cursor") for value in ("", "x", "AAAAAAAAAAB")),
        *((f"?cursor={value}", "cursor") for value in ("-AAAAAAAAAAE", "-", "AAAAAAAAAAE.YQ")),
        *((f"?sort=-id&cursor={value}", "cursor") for value in ("AAAAAAAAAAE", "-AAAAAAAAAAE%0A")),
        *((f"?sort={value}", "sort") for value in ("", "-placedAt", "+id")),
        *((f"?{name}=1&{name}=1", name) for name in ("petId", "limit")),
        ("?status=placed&status=placed", "status"),
    ],
)
async def test_an_invalid_parameter_is_refused_naming_it(
    send: Send, query: str, field: str
) -> None:
    response = await send("GET", f"{ORDERS}{query}")
    assert assert_error(response, 400, "invalid_parameter").startswith(f"{field}: expected ")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", [1, 2, 3, 4]),
        ("?status=placed", [3, 4]),
        ("?status=approved", [2]),
        ("?status=cancelled", [1]),
        ("?status=delivered", []),
        ("?petId=1", [1, 3]),
        ("?petId=1&status=placed", [3]),
        ("?petId=2&status=cancelled", []),
        ("?petId=9223372036854775807", []),
        ("?petId=-1", []),
        ("?limit=1", [1]),
        ("?sort=id", [1, 2, 3, 4]),
        ("?sort=-id", [4, 3, 2, 1]),
        ("?sort=-id&status=placed&limit=1", [4]),
        ("?sort=-id&petId=1", [3, 1]),
        ("?quantity=7&complete=true", [1, 2, 3, 4]),
    ],
)
async def test_lists_are_filtered(send: Send, query: str, ids: list[int]) -> None:
    await place_as(send, "cancelled")
    await place_order(send, 2)
    await send("PATCH", f"{ORDERS}/2", json={"status": "approved"})
    await place_order(send, 1)
    await place_order(send, 3)
    assert await listed(send, query) == ids


async def test_a_list_shows_orders_as_they_are_by_themselves(send: Send) -> None:
    order = await place_order(send, shipDate="2026-12-24T10:00:00+01:00")
    assert (await send("GET", ORDERS)).json() == [order]
    approved = (await patch(send, status="approved")).json()
    assert (await send("GET", ORDERS)).json() == [approved]


async def pages(send: Send, path: str) -> AsyncIterator[list[int]]:
    """Follow the links from page to page."""
    following: str | None = path
    while following is not None:
        response = await send("GET", following)
        assert response.status_code == 200
        yield [order["id"] for order in response.json()]
        link = response.links.get("next", {}).get("url")
        following = link and link.removeprefix(f"{SERVICE_URL}/v1")


async def test_pages_show_each_order_once_while_others_are_placed(send: Send) -> None:
    for _ in range(5):
        await place_order(send)
        await send("DELETE", f"{ORDERS}/{(await listed(send, '?limit=100'))[-1]}")
    seen = []
    async for page in pages(send, f"{ORDERS}?petId=1&limit=2&status=cancelled"):
        seen.append(page)
        if len(seen) < 4:
            order = await place_order(send)
            await send("DELETE", f"{ORDERS}/{order['id']}")
            await place_order(send, len(seen) + 1)
    assert seen == [[1, 2], [3, 4], [5, 6], [8, 10]]


async def test_the_newest_orders_come_first_page_by_page_if_wanted(send: Send) -> None:
    for _ in range(5):
        order = await place_order(send)
        await send("DELETE", f"{ORDERS}/{order['id']}")
    path = f"{ORDERS}?sort=-id&status=cancelled&limit=2"
    assert [page async for page in pages(send, path)] == [[5, 4], [3, 2], [1]]


async def test_a_link_repeats_the_filters(send: Send) -> None:
    await place_order(send)
    await send("DELETE", f"{ORDERS}/1")
    await place_order(send)
    response = await send("GET", f"{ORDERS}?petId=1&limit=1&other=x")
    url = response.links["next"]["url"]
    assert url == f"{SERVICE_URL}/v1/store/orders?petId=1&limit=1&cursor=AAAAAAAAAAE"
    assert "next" not in (await send("GET", url.removeprefix(f"{SERVICE_URL}/v1"))).links


# Who may


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", ORDERS, "orders:read"),
        ("GET", f"{ORDERS}/1", "orders:read"),
        ("GET", "/store/inventory", "orders:read"),
        ("POST", ORDERS, "orders:write"),
        ("PATCH", f"{ORDERS}/1", "orders:write"),
        ("DELETE", f"{ORDERS}/1", "orders:write"),
    ],
)
async def test_each_operation_needs_its_scope(
    service: Service, send: Send, method: str, path: str, scope: str
) -> None:
    await place_order(send)
    others = {"pets:read", "pets:write", "orders:read", "orders:write", "keys:admin"} - {scope}
    without = await service.issue(scopes=frozenset(others))
    refused = await service.request(method, f"/v1{path}", without.token, json={"petId": 2})
    assert_error(refused, 403, "missing_scope")
    assert (await listed(send), await read(send)) == ([1], ORDER)
    having = await service.issue(scopes=frozenset({scope}))
    response = await service.request(method, f"/v1{path}", having.token, json={"petId": 2})
    assert response.is_success


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", ORDERS, "GET, HEAD, POST"),
        ("PUT", f"{ORDERS}/1", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/store/inventory", "GET, HEAD"),
    ],
)
async def test_other_methods_are_not_allowed(
    send: Send, method: str, path: str, allowed: str
) -> None:
    response = await send(method, path, json={})
    assert_error(response, 405, "method_not_allowed")
    assert sorted(response.headers["Allow"].split(", ")) == sorted(allowed.split(", "))


async def test_the_same_time_with_another_offset_is_a_change(send: Send) -> None:
    await place_order(send, shipDate="2026-12-24T10:00:00+01:00")
    changed = await patch(send, shipDate="2026-12-24T09:00:00Z")
    assert changed.json()["shipDate"] == "2026-12-24T09:00:00Z"
    assert (await send("GET", f"{ORDERS}/1")).json() == changed.json()
