"""Every event names who caused it, and the request that did."""

from typing import Any

import pytest

from petstore.clock import MINUTE, SECOND
from petstore.orders.store import Reservations
from support.history import events_after, plain, published_by
from support.service import Service
from support.visitor import signed_in_person

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
SERVICE = {"type": "service"}


async def authors(service: Service, skipped: int = 0) -> list[tuple[str, Any, Any]]:
    await published_by(service)
    return [
        (event["type"], event.get("actor"), event.get("requestId"))
        for event in map(plain, (await events_after(service.store))[skipped:])
    ]


async def test_a_lapse_is_of_the_service_whoever_finds_it(service: Service) -> None:
    key = await service.issue()
    actor = {"type": "key", "id": key.id}
    for number in range(3):
        await service.request("POST", "/v1/pets", key.token, json=BELLA)
        order = {"petId": number + 1}
        await service.request("POST", "/v1/store/orders", key.token, json=order)
    before = len(await authors(service))
    service.clock.advance(1440 * MINUTE / SECOND)
    finds: tuple[tuple[str, str, Any], ...] = (
        ("PATCH", "/v1/pets/1", {"name": "Bello"}),
        ("PATCH", "/v1/store/orders/2", {"status": "approved"}),
        ("GET", "/v1/store/orders/3", None),
    )
    for method, path, body in finds:
        await service.request(method, path, key.token, json=body)
    found = await authors(service, before)
    changes = [each for each in found if each[1] == actor]
    assert [kind for kind, *_ in changes] == ["pet.updated"]
    lapses = [each for each in found if each[1] != actor]
    assert lapses == [("order.lapsed", SERVICE, None), ("pet.updated", SERVICE, None)] * 3


async def test_what_a_client_changes_of_a_lapsed_order_is_of_the_service(service: Service) -> None:
    """The lapse is not settled before the unit of work runs."""
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json=BELLA)
    await service.request("POST", "/v1/store/orders", key.token, json={"petId": 1})
    service.clock.advance(1440 * MINUTE / SECOND)
    service.app.services.reservations.__class__ = _NeverDue
    response = await service.request("DELETE", "/v1/store/orders/1", key.token)
    assert response.status_code == 204
    found = await authors(service, 3)
    assert found == [("order.lapsed", SERVICE, None), ("pet.updated", SERVICE, None)]


async def test_an_import_of_the_console_names_the_person_for_each_pet(service: Service) -> None:
    visitor = await signed_in_person(service, "clerk", "Grace")
    await visitor.submit("/categories", name="Dogs")
    content = b"name,categoryId,status\nBella,1,available\nRex,1,\n"
    sent = await visitor.post("/import", files={"file": ("pets.csv", content, "text/csv")})
    path = sent.headers["location"].removeprefix("/console")
    response = await visitor.post(f"{path}/run")
    assert response.status_code == 303, response.text
    actor = {"type": "person", "id": visitor.key_id}
    request = response.headers["x-request-id"]
    assert (await authors(service))[1:] == [("pet.created", actor, request)] * 2


class _NeverDue(Reservations):
    """Reservations of a process that has not noticed a lapse yet."""

    def are_due(self) -> bool:
        return False
