"""Which bodies are a pet and a change of one, how a status moves, and what filters admit.

How JSON and numbers are written is tested in ``domain/test_decoding.py``.
"""

import json
import re
from itertools import product
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from petstore.domain.decoding import decode_json
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import IllegalTransition, InvalidBody
from petstore.pets.model import (
    EXPORTED,
    Inventory,
    NewPet,
    Pet,
    PetFilter,
    PetPatch,
    PetStatus,
    patched,
    status_after,
)

StatusOrNone: TypeAlias = PetStatus | UnsetType

BELLA = Pet(1, "Bella", 7, "available")
STATUSES: tuple[StatusOrNone, ...] = (UNSET, "available", "pending", "sold")
FOLLOWING: dict[StatusOrNone, tuple[str, ...]] = {
    UNSET: ("available", "pending", "sold"),
    "available": ("pending", "sold", "none"),
    "pending": ("available", "sold"),
    "sold": ("available",),
}
EXPECTED = {
    "name": "1 to 255 characters",
    "categoryId": "a whole number",
    "status": "one of 'available', 'pending', ",
}
ODD: dict[str, tuple[Any, ...]] = {
    "name": (
        *("", " ", "\t\r\n", "\u2003\u3000", "\0", "Bella\0", "\0Bella", "x" * 256, " " * 60_000),
        *("\N{DOG FACE}" * 256, "x" * 60_000 + "\0", None, 5, True, ["Bella"], {"a": "Bella"}),
    ),
    "categoryId": (
        *(INT64_MAX + 1, INT64_MIN - 1, 2**64, 10**400, 1.5, 1e19, True, False, None),
        *("1", "", [1], {}),
    ),
    "status": ("", "Sold", "sold ", "gone", 1, True, ["sold"]),
}


def body(**members: Any) -> bytes:
    return json.dumps({"name": "Bella", "categoryId": 1} | members).encode()


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in ODD.items() for value in values],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_value_is_refused_naming_the_field(field: str, value: Any) -> None:
    message = f"^{field}: expected {re.escape(EXPECTED[field])}"
    with pytest.raises(InvalidBody, match=message):
        decode_json(body(**{field: value}), NewPet)
    with pytest.raises(InvalidBody, match=message):
        decode_json(json.dumps({field: value}).encode(), PetPatch)


def test_a_new_pet_needs_a_name_and_a_category_and_no_null_as_its_status() -> None:
    for field, members in (("name", {"categoryId": 1}), ("categoryId", {"name": "Bella"})):
        with pytest.raises(InvalidBody, match=rf"^{field}: required; expected "):
            decode_json(json.dumps(members).encode(), NewPet)
    with pytest.raises(InvalidBody, match=r"^status: expected one of"):
        decode_json(body(status=None), NewPet)


@pytest.mark.parametrize(
    "members",
    [
        {},
        *({"status": status} for status in ("available", "pending", "sold")),
        *({"categoryId": number} for number in (INT64_MIN, -1, 0, 2**53 + 1, INT64_MAX)),
        *({"name": name} for name in ("x", "x" * 255, "\N{DOG FACE}" * 255, " Bella\n", "-1")),
        *({"name": name} for name in ("null", "=1+1", "a\u200b")),
    ],
)
def test_a_valid_pet_is_kept_unchanged(members: dict[str, Any]) -> None:
    taken = decode_json(body(**members, id=7, owner="me"), NewPet)
    assert msgspec.to_builtins(taken) == {"name": "Bella", "categoryId": 1} | members


@pytest.mark.parametrize(("present", "wanted"), [*product(STATUSES, STATUSES)])
def test_a_status_changes_to_the_allowed_ones(present: StatusOrNone, wanted: StatusOrNone) -> None:
    pet, following = Pet(1, "Bella", 7, present), FOLLOWING[present]
    patch = PetPatch(status=None if wanted is UNSET else wanted)
    if present == wanted or (wanted or "none") in following:
        assert patched(pet, patch) == Pet(1, "Bella", 7, wanted)
        return
    message = f"status: {present} can become {' or '.join(following)}, not {wanted or 'none'}"
    with pytest.raises(IllegalTransition, match=f"^{message}$"):
        patched(pet, patch)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((b"{}", BELLA), (b'{"id": 9, "owner": null}', BELLA)),
        (b'{"name": "Max"}', Pet(1, "Max", 7, "available")),
        (b'{"categoryId": 0.0}', Pet(1, "Bella", 0, "available")),
        (b'{"status": "lost", "status": "sold"}', Pet(1, "Bella", 7, "sold")),
        (b'{"status": null}', Pet(1, "Bella", 7)),
        (b'{"name": "Max", "categoryId": -1, "status": null}', Pet(1, "Max", -1)),
    ],
)
def test_only_the_named_fields_change(text: bytes, expected: Pet) -> None:
    patch = decode_json(text, PetPatch)
    assert patched(BELLA, patch) == expected
    assert status_after(BELLA, patch) == expected.status


@pytest.mark.parametrize(
    ("filters", "admitted"),
    [
        *((PetFilter(), [1, 2]), (PetFilter("available", 7, [9]), [1]), (PetFilter("sold"), [])),
        *((PetFilter("available", 8), []), (PetFilter(category_id=8), [])),
        *((PetFilter(has_status=True), [1]), (PetFilter(has_status=False), [2])),
    ],
)
def test_a_filter_admits_by_status_and_category(filters: PetFilter, admitted: list[int]) -> None:
    assert [pet.id for pet in (BELLA, Pet(2, "Rex", 7)) if filters.admits(pet)] == admitted


def test_a_new_inventory_has_zero_for_each_status() -> None:
    assert Inventory() == Inventory(available=0, pending=0, sold=0)


def test_a_file_of_pets_has_the_name_of_the_category_beside_its_number() -> None:
    assert EXPORTED == ("id", "name", "categoryId", "category", "status")
