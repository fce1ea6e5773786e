"""Positions in the feed, what an event tells of a change, and who may read it."""

import re

import pytest
from msgspec import convert

from petstore.events.model import (
    EVENT_TYPES,
    IN_FEED,
    KINDS,
    OPERATOR,
    SERVICE,
    START,
    Actor,
    Author,
    NewEvent,
    Position,
    actor_of,
    author_text,
    kind_of,
    new_event_id,
    readable_types,
    resource_event,
    scope_of,
)
from petstore.keys.model import SCOPES, Scope
from petstore.pets.model import Pet

BELLA = Pet(7, "Bella", 1, "available")
AT_START = IN_FEED.encode(START)


@pytest.mark.parametrize("cursor", ["", "AAAAAAAAAAEA", f"{AT_START}A", f"{AT_START}\n"])
def test_a_malformed_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        IN_FEED.decode(cursor)
    with pytest.raises(ValueError, match=r"^no store has had so many events$"):
        IN_FEED.decode(IN_FEED.encode(Position(2**62 + 1, b"mark")))


def test_a_cursor_encodes_a_sequence_and_the_start_of_an_id() -> None:
    assert (START.sequence, START.mark) == (0, bytes(4))
    assert Position.behind(5, "evt_0123456789abcdef01234567") == (5, b"\x01\x23\x45\x67")
    for position in (START, Position(1, b"mark"), Position(2**62, b"\xff\xfe\xfd\xfc")):
        assert len(IN_FEED.encode(position)) == IN_FEED.max_length
        assert IN_FEED.decode(IN_FEED.encode(position)) == position


def test_an_id_has_96_random_bits() -> None:
    ids = {new_event_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(re.fullmatch(r"evt_[0-9a-f]{24}", event_id) for event_id in ids)


def test_an_event_names_its_resource_and_the_previous_values_of_what_changed() -> None:
    assert resource_event("pet.created", BELLA) == NewEvent("pet.created", "pet/7", BELLA)
    renamed, old = Pet(7, "Max", 1), {"name": "Bella", "status": "available"}
    assert resource_event("pet.updated", renamed, BELLA).previous == old
    assert resource_event("pet.updated", BELLA, renamed).previous == {"name": "Max", "status": None}


@pytest.mark.parametrize(
    ("scope", "resources"),
    [("pets:read", {"pet", "category"}), ("orders:read", {"order"}), ("keys:admin", {"person"})],
)
def test_a_scope_allows_events_of_its_resources_and_of_the_key(
    scope: Scope, resources: set[str]
) -> None:
    of_key = {"key", "deprecation", "webhook"}
    read = {kind.partition(".")[0] for kind in readable_types(frozenset({scope}))}
    assert read == resources | of_key
    assert readable_types(frozenset(SCOPES)) == frozenset(EVENT_TYPES)
    assert KINDS == ("pet", "order", "category", "key", "person", "webhook")
    assert (scope_of("person"), kind_of("deprecation.used")) == ("keys:admin", "key")


@pytest.mark.parametrize(
    ("text", "actor"), [("service", Actor("service")), ("person/1", Actor("person", 1))]
)
def test_an_actor_has_a_text(text: str, actor: Actor) -> None:
    assert (actor_of(text), author_text(actor)) == (actor, text)
    assert (Author("service"), Author("operator")) == (SERVICE, OPERATOR)
    assert convert({"type": "key", "id": 1}, Actor).id == 1
