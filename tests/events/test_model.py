"""Positions in the feed, what an event tells of a change, and who may read it."""

import re

import pytest
from msgspec import ValidationError, convert
from msgspec.structs import replace

from petstore.events.model import (
    ADMINISTRATORS,
    EVENT_TYPES,
    IN_FEED,
    OPERATOR,
    SERVICE,
    START,
    Actor,
    Author,
    Event,
    NewEvent,
    Position,
    actor_of,
    admin_event,
    author_text,
    key_ids_of,
    new_event_id,
    readable_types,
    resource_event,
    type_description,
)
from petstore.keys.model import SCOPES, Caller, Scope
from petstore.pets.model import Pet

BELLA = Pet(7, "Bella", 1, "available")
LAST = Position(2**62, b"\xff\xfe\xfd\xfc")
AT_START = IN_FEED.encode(START)


@pytest.mark.parametrize("cursor", ["", "AAAAAAAAAAEA", f"{AT_START}A", f"{AT_START}\n"])
def test_a_malformed_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        IN_FEED.decode(cursor)


def test_a_cursor_with_an_impossible_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^no store has had so many events$"):
        IN_FEED.decode(IN_FEED.encode(Position(2**62 + 1, b"mark")))


@pytest.mark.parametrize("position", [START, Position(1, b"mark"), LAST])
def test_a_cursor_encodes_its_position(position: Position) -> None:
    assert len(IN_FEED.encode(position)) == IN_FEED.max_length
    assert IN_FEED.decode(IN_FEED.encode(position)) == position


def test_the_position_of_an_event_includes_the_start_of_its_id() -> None:
    assert Position.behind(5, "evt_0123456789abcdef01234567") == (5, b"\x01\x23\x45\x67")


def test_an_id_has_96_random_bits() -> None:
    ids = {new_event_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(re.fullmatch(r"evt_[0-9a-f]{24}", event_id) for event_id in ids)


def test_the_sequence_of_the_first_event_is_1() -> None:
    members = {
        "id": "evt_0",
        "type": "pet.created",
        "timestamp": "",
        "resource": "",
        "data": {},
        "actor": {"type": "service"},
    }
    assert convert(members | {"sequence": 1}, Event).sequence == 1
    with pytest.raises(ValidationError):
        convert(members | {"sequence": 0}, Event)


def test_an_event_has_the_previous_values_of_the_changed_members() -> None:
    renamed = Pet(7, "Max", 1)
    assert resource_event("pet.updated", renamed, BELLA).previous == {
        "name": "Bella",
        "status": "available",
    }
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


def test_the_feed_starts_before_its_first_event() -> None:
    assert (START.sequence, START.mark) == (0, bytes(4))


def test_an_event_names_its_resource() -> None:
    assert resource_event("pet.created", BELLA) == NewEvent("pet.created", "pet/7", BELLA)


def test_the_description_of_types_says_that_more_will_follow() -> None:
    assert type_description(("pet.created", "key.banned")) == (
        "One of `pet.created`, `key.banned`. More will follow: ignore types that you do not know."
    )


@pytest.mark.parametrize(
    ("text", "actor"), [("service", Actor("service")), ("person/1", Actor("person", 1))]
)
def test_an_actor_has_a_text(text: str, actor: Actor) -> None:
    assert (actor_of(text), author_text(actor)) == (actor, text)
    assert (Author("service"), Author("operator")) == (SERVICE, OPERATOR)
    assert convert({"type": "key", "id": 1}, Actor).id == 1


def test_administrators_read_the_events_of_keys_and_people_of_their_environment() -> None:
    assert ADMINISTRATORS == {"production": -1, "staging": -2}
    assert admin_event("person.created", "staging", BELLA).key_id == -2
    caller = Caller("Ada", id=7, environment="production", created_at=0, scopes=frozenset())
    assert key_ids_of(caller) == (7, 7)
    assert key_ids_of(replace(caller, scopes=frozenset({"keys:admin"}))) == (7, -1)
