"""The examples of events are events as the service records them."""

from typing import Any

import msgspec
import pytest

from petstore.categories.model import Category
from petstore.events.examples import example_of
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, Event, EventType
from petstore.keys.model import Key
from petstore.orders.model import Order
from petstore.people.model import Person
from petstore.pets.model import Pet
from petstore.webhooks.model import Webhook

RESOURCES = {
    "pet": Pet,
    "order": Order,
    "category": Category,
    "webhook": Webhook,
    "key": Key,
    "person": Person,
}
NOTICES = [
    each
    for each in EVENT_TYPES
    if each.startswith(("key", "depre")) and each not in ADMIN_EVENT_TYPES
]


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_example_is_an_event_of_its_type(kind: EventType) -> None:
    event = msgspec.convert(example_of(kind), Event)
    assert event.type == kind
    assert event.sequence == EVENT_TYPES.index(kind) + 1


@pytest.mark.parametrize("kind", [each for each in EVENT_TYPES if each not in NOTICES])
def test_the_data_of_an_example_is_the_resource_that_it_names(kind: EventType) -> None:
    example, name = example_of(kind), kind.partition(".")[0]
    data: dict[str, Any] = example["data"]
    resource = msgspec.convert(data, RESOURCES[name])
    assert msgspec.to_builtins(resource).keys() == data.keys()
    assert example["resource"] == f"{name}/{data['id']}"
    assert set(example.get("previous", ())) <= set(RESOURCES[name].__struct_encode_fields__)
