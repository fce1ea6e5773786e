"""``getSales``: which sales a request asks for."""

from typing import Any

import pytest

from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import Service

pytestmark = pytest.mark.anyio


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests to a store with a pet that was sold at noon (UTC) of 2026-12-01."""
    await service.store.write(create_pets([NewPet("Bella", 7, "available")]))
    send = await sender(service)
    body = {"petId": 1, "complete": True, "amount": 500}
    assert (await send("POST", "/store/orders", json=body)).status_code == 201
    return send


async def sales(send: Send, query: str = "") -> dict[str, Any]:
    response = await send("GET", f"/store/sales{query}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_an_invalid_parameter_is_refused_naming_it(send: Send) -> None:
    for query in (
        *("from=yesterday", "from=2026-02-30", "to=2026-12-24T10:00:00Z", "by=week", "by="),
        *("from=2026-12-02", "from=2025-01-01", "timeZone=Berlin", "timeZone=", "from=0001-01-01"),
        f"timeZone={'x' * 65}",
    ):
        with case(query):
            response = await send("GET", f"/store/sales?{query}")
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith(f"{query.partition('=')[0]}: expected ")


async def test_the_last_seven_days_are_counted_by_default(send: Send) -> None:
    found = await sales(send)
    assert {name: found[name] for name in ("from", "to", "timeZone", "by")} == {
        "from": "2026-11-25",
        "to": "2026-12-01",
        "timeZone": "UTC",
        "by": "day",
    }
    assert len(found["rows"]) == 7
    assert found["rows"][-1] == {
        "orders": 1,
        "amount": 500,
        "returns": 0,
        "refunded": 0,
        "currency": "USD",
        "day": "2026-12-01",
    }


async def test_days_are_those_of_the_time_zone(send: Send) -> None:
    found = await sales(send, "?from=2026-12-02&to=2026-12-02&timeZone=Pacific/Kiritimati")
    (row,) = found["rows"]
    assert (row["day"], row["orders"], found["timeZone"]) == ("2026-12-02", 1, "Pacific/Kiritimati")


async def test_sales_are_counted_by_category(send: Send) -> None:
    (row,) = (await sales(send, "?by=category"))["rows"]
    counted = {"orders": 1, "amount": 500, "returns": 0, "refunded": 0}
    assert row == {**counted, "currency": "USD", "categoryId": 7}


async def test_orders_are_in_the_currency_of_the_store(service: Service, send: Send) -> None:
    order = (await send("GET", "/store/orders/1")).json()
    assert order["currency"] == service.settings.currency == "USD"
