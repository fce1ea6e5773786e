"""The examples of events are events as the service records them."""

from typing import Any

import msgspec
import pytest

from petstore.api.event_examples import example_of
from petstore.domain.categories import Category
from petstore.domain.events import EVENT_TYPES, Event, EventType
from petstore.domain.orders import Order
from petstore.domain.pets import Pet
from petstore.domain.webhooks import Webhook

RESOURCES = {"pet": Pet, "order": Order, "category": Category, "webhook": Webhook}


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_example_is_an_event_of_its_type(kind: EventType) -> None:
    event = msgspec.convert(example_of(kind), Event)
    assert event.type == kind
    assert event.sequence == EVENT_TYPES.index(kind) + 1


def test_no_two_examples_have_one_id() -> None:
    assert len({example_of(kind)["id"] for kind in EVENT_TYPES}) == len(EVENT_TYPES)


@pytest.mark.parametrize("kind", [each for each in EVENT_TYPES if each.split(".")[0] in RESOURCES])
def test_its_data_is_the_resource_that_it_names(kind: EventType) -> None:
    example, name = example_of(kind), kind.partition(".")[0]
    data: dict[str, Any] = example["data"]
    resource = msgspec.convert(data, RESOURCES[name])
    assert msgspec.to_builtins(resource).keys() == data.keys()
    assert example["resource"] == f"{name}/{data['id']}"
    assert set(example.get("previous", ())) <= set(RESOURCES[name].__struct_fields__)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_only_a_change_has_what_was_before(kind: EventType) -> None:
    of, what = kind.split(".")
    changes = ("updated", "approved", "delivered", "cancelled", "lapsed", "disabled")
    is_change = of in RESOURCES and what in changes
    assert ("previous" in example_of(kind)) == is_change


@pytest.mark.parametrize(
    "kind", [each for each in EVENT_TYPES if each.startswith(("key", "depre"))]
)
def test_what_concerns_a_key_names_it(kind: EventType) -> None:
    example = example_of(kind)
    assert example["resource"] == f"key/{example['data']['keyId']}"
