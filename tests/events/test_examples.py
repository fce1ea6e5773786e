"""The examples of events in the OpenAPI document and on the page of types."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from petstore.categories.model import Category
from petstore.events.model import EVENT_TYPES, Event, scope_of
from petstore.interface.openapi.events import example_of
from petstore.keys.model import SCOPES, Key
from petstore.orders.model import Order
from petstore.people.model import Person
from petstore.pets.model import Pet
from support.manual_clock import ManualClock
from support.people import set_some_password
from support.service import Service, running_service
from support.stores import do

KINDS: dict[str, type[msgspec.Struct]] = {
    "pet": Pet,
    "order": Order,
    "category": Category,
    "key": Key,
    "person": Person,
}
EXAMPLES: dict[str, dict[str, Any]] = {kind: example_of(kind) for kind in EVENT_TYPES}
NOTICES = [kind for kind in EVENT_TYPES if scope_of(kind) is None]
ORDER = {"petId": 1, "amount": 24900, "shipDate": "2026-12-24T10:00:00Z"}
BAN = "INSERT INTO rate_limits VALUES (2, 0, 0, 0, 0, 0, 0, 0, 0, ?1, ?2, 1, ?1)"


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_matches_the_event_schema(example: dict[str, Any]) -> None:
    assert msgspec.to_builtins(msgspec.convert(example, Event)) == example
    noun, _, number = example["resource"].partition("/")
    prefix = example["type"].partition(".")[0]
    if prefix in KINDS and example["type"] not in NOTICES:
        resource = msgspec.convert(example["data"], KINDS[prefix])
        assert msgspec.json.decode(msgspec.json.encode(resource)) == example["data"]
        assert (noun, int(number)) == (prefix, example["data"]["id"])
        assert example.get("previous", {}).keys() <= set(KINDS[prefix].__struct_encode_fields__)
    elif noun == "key":
        assert int(number) == example["data"]["keyId"]
    else:
        assert (noun, int(number)) == ("webhook", example["data"]["id"])


async def change_everything(service: Service, clock: ManualClock) -> list[dict[str, Any]]:
    token = (await service.issue(scopes=frozenset(SCOPES))).token

    async def ask(method: str, path: str, **body: object) -> None:
        headers = {"X-Request-Id": "asked"}
        response = await service.request(method, f"/v1{path}", token, json=body, headers=headers)
        assert response.is_success, response.text

    await ask("POST", "/categories", name="Ferrets", description="Great and small.")
    await ask("PATCH", "/categories/1", name="Small ferrets")
    await ask("POST", "/pets", name="Bella", categoryId=1, status="available")
    await ask("POST", "/store/orders", **ORDER)
    await ask("PATCH", "/store/orders/1", shipDate="2026-12-23T10:00:00Z")
    await ask("PATCH", "/store/orders/1", status="approved")
    await ask("PATCH", "/store/orders/1", status="delivered")
    await ask("PATCH", "/store/orders/1", status="returned")
    await ask("POST", "/store/orders", **ORDER)
    await ask("PATCH", "/store/orders/2", status="approved")
    await ask("PATCH", "/store/orders/2", status="cancelled")
    await ask("POST", "/store/orders", **ORDER)
    clock.advance(2 * 60)
    await service.request("GET", "/v1/store/orders", token)
    await ask("DELETE", "/pets/1")
    await ask("DELETE", "/categories/1")
    await ask("POST", "/keys", name="Till 2")
    await ask("PATCH", "/keys/2", plan="pro")
    await ask("POST", "/keys/2/rotate")
    await service.store.write(do(BAN, clock(), clock() + 5 * 60_000))
    await ask("POST", "/keys/2/unban")
    await ask("DELETE", "/keys/2")
    await ask("POST", "/people", name="Grace Hopper", login="grace@shop.example", role="clerk")
    await set_some_password(service.store, 3)
    await ask("PATCH", "/people/3", role="manager")
    await ask("POST", "/webhooks", url="https://shop.example/hooks")
    await ask("POST", "/webhooks/1/test")
    response = await service.request("GET", "/v1/events?limit=100", token)
    events: list[dict[str, Any]] = response.json()
    return events


def form(event: Mapping[str, Any]) -> tuple[object, ...]:
    return event.keys(), event["data"].keys(), event.get("previous", {}).keys()


@pytest.mark.anyio
async def test_real_events_look_like_the_examples_and_name_who_caused_them(
    database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, reservation_minutes=1) as service:
        events = await change_everything(service, clock)
    first, *others = [(event["actor"], event.get("requestId")) for event in events]
    assert first == ({"type": "operator"}, None)  # the key itself
    lapse = [event["type"] for event in events].index("order.lapsed") - 1
    assert others[lapse : lapse + 2] == [({"type": "service"}, None)] * 2
    assert {*map(str, others[:lapse] + others[lapse + 2 :])} == {
        str(({"type": "key", "id": 1}, "asked"))
    }
    real = [form(event) for event in events]
    for name in (name for name in EVENT_TYPES if name not in NOTICES):
        assert form(EXAMPLES[name]) in real, name
