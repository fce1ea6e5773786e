"""The examples of events are events as the service records them."""

from typing import Any

import msgspec
import pytest

from petstore.categories.model import Category
from petstore.events.examples import example_of
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, Actor, Event, EventType
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


def test_no_two_examples_have_the_same_id() -> None:
    assert len({example_of(kind)["id"] for kind in EVENT_TYPES}) == len(EVENT_TYPES)


@pytest.mark.parametrize("kind", [each for each in EVENT_TYPES if each not in NOTICES])
def test_the_data_of_an_example_is_the_resource_that_it_names(kind: EventType) -> None:
    example, name = example_of(kind), kind.partition(".")[0]
    data: dict[str, Any] = example["data"]
    resource = msgspec.convert(data, RESOURCES[name])
    assert msgspec.to_builtins(resource).keys() == data.keys()
    assert example["resource"] == f"{name}/{data['id']}"
    assert set(example.get("previous", ())) <= set(RESOURCES[name].__struct_encode_fields__)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_only_a_change_has_previous_values(kind: EventType) -> None:
    begins = ("created", "deleted", "placed", "test")
    is_change = kind not in NOTICES and kind.partition(".")[2] not in begins
    assert ("previous" in example_of(kind)) == is_change


@pytest.mark.parametrize("kind", NOTICES)
def test_an_event_about_a_key_names_the_key(kind: EventType) -> None:
    example = example_of(kind)
    assert example["resource"] == f"key/{example['data']['keyId']}"


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_example_names_who_caused_it_and_the_request_if_one_did(kind: EventType) -> None:
    event = msgspec.convert(example_of(kind), Event)
    is_of_service = kind in (*NOTICES, "order.lapsed", "webhook.disabled")
    assert event.actor == (Actor("service") if is_of_service else Actor("person", 5))
    assert (event.request_id is msgspec.UNSET) == is_of_service
