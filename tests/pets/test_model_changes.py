"""Changes to an animal: which bodies are one, how a status may move, and what becomes of it."""

import json
import re
from itertools import product
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from msgspec import UNSET, UnsetType

from petstore.domain.decoding import decode_json
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import IllegalTransition, InvalidBody
from petstore.pets.model import (
    Inventory,
    Pet,
    PetFilter,
    PetPatch,
    PetStatus,
    patched,
    status_after,
)
from support.exploration import explored
from support.strategies import pet_like_values

StatusOrNone: TypeAlias = PetStatus | UnsetType

BELLA = Pet(1, "Bella", 7, "available")
STATUSES: tuple[StatusOrNone, ...] = (UNSET, "available", "pending", "sold")
MOVES: set[tuple[StatusOrNone, StatusOrNone]] = {
    *((UNSET, status) for status in STATUSES),
    *((status, status) for status in STATUSES),
    ("available", "pending"),
    ("available", "sold"),
    ("available", UNSET),
    ("pending", "available"),
    ("pending", "sold"),
    ("sold", "available"),
}


def patch_to(status: StatusOrNone) -> PetPatch:
    return PetPatch(status=None if status is UNSET else status)


@pytest.mark.parametrize(("present", "wanted"), sorted(MOVES, key=repr))
def test_an_allowed_status_change_is_accepted(present: StatusOrNone, wanted: StatusOrNone) -> None:
    pet = Pet(1, "Bella", 7, present)
    assert patched(pet, patch_to(wanted)) == Pet(1, "Bella", 7, wanted)


@pytest.mark.parametrize(
    ("present", "wanted"), sorted({*product(STATUSES, STATUSES)} - MOVES, key=repr)
)
def test_any_other_status_change_is_refused(present: StatusOrNone, wanted: StatusOrNone) -> None:
    with pytest.raises(IllegalTransition, match=rf"^status: {present} can become .*, not "):
        patched(Pet(1, "Bella", 7, present), patch_to(wanted))


@pytest.mark.parametrize(
    ("present", "wanted", "message"),
    [
        ("pending", UNSET, "status: pending can become available or sold, not none"),
        ("sold", "pending", "status: sold can become available, not pending"),
    ],
)
def test_a_refused_status_change_names_the_allowed_ones(
    present: PetStatus, wanted: StatusOrNone, message: str
) -> None:
    with pytest.raises(IllegalTransition, match=f"^{re.escape(message)}$"):
        patched(Pet(1, "Bella", 7, present), patch_to(wanted))


@pytest.mark.parametrize("status", STATUSES)
def test_an_empty_patch_changes_nothing(status: StatusOrNone) -> None:
    pet = Pet(1, "Bella", 7, status)
    assert patched(pet, PetPatch()) == pet
    assert status_after(pet, PetPatch()) == status


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (PetPatch(name="Max"), Pet(1, "Max", 7, "available")),
        (PetPatch(category_id=0), Pet(1, "Bella", 0, "available")),
        (PetPatch(status="sold"), Pet(1, "Bella", 7, "sold")),
        (PetPatch(status=None), Pet(1, "Bella", 7)),
        (PetPatch("Max", -1, None), Pet(1, "Max", -1)),
    ],
)
def test_only_the_named_fields_change(patch: PetPatch, expected: Pet) -> None:
    assert patched(BELLA, patch) == expected
    assert status_after(BELLA, patch) == expected.status


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", value) for value in (None, "", " \u3000\n", "x" * 256, "\0", 5, ["Bella"])),
        *(("categoryId", value) for value in (None, "1", True, 1.5, INT64_MAX + 1, INT64_MIN - 1)),
        *(("status", value) for value in ("", "Sold", "lost", 1, False, ["sold"])),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_invalid_value_is_refused_naming_the_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidBody, match=rf"^{field}: expected "):
        decode_json(json.dumps({field: value}).encode(), PetPatch)


@pytest.mark.parametrize("body", [b"null", b"[]", b'"sold"', b"7", b"", b" "])
def test_only_an_object_is_a_change(body: bytes) -> None:
    with pytest.raises(InvalidBody, match=r"^the body: expected a JSON object"):
        decode_json(body, PetPatch)


@pytest.mark.parametrize(
    ("body", "patch"),
    [
        (b"{}", PetPatch()),
        (b'{"id": 9, "owner": null}', PetPatch()),
        (b'{"status": null}', PetPatch(status=None)),
        (b'{"name": "Max", "categoryId": 5.0}', PetPatch("Max", 5)),
        (b'{"status": "lost", "status": "sold"}', PetPatch(status="sold")),
    ],
)
def test_an_absent_and_a_null_status_differ(body: bytes, patch: PetPatch) -> None:
    assert decode_json(body, PetPatch) == patch


@explored(50)
@given(pet_like_values)
def test_every_accepted_change_leaves_a_valid_animal(value: Any) -> None:
    try:
        patch = decode_json(json.dumps(value).encode(), PetPatch)
    except InvalidBody:
        return
    pet = patched(BELLA, patch)
    assert pet.id == BELLA.id
    assert 1 <= len(pet.name) <= 255
    assert INT64_MIN <= pet.category_id <= INT64_MAX
    assert pet.status in STATUSES
    given = {name: value[name] for name in ("name", "status") if name in value}
    assert given.items() <= {"name": pet.name, "status": pet.status or None}.items()


@pytest.mark.parametrize(
    ("filters", "is_admitted"),
    [
        (PetFilter(), True),
        (PetFilter("available", 7, [9]), True),
        (PetFilter("sold"), False),
        (PetFilter("sold", 7), False),
        (PetFilter("available", 8), False),
        (PetFilter(category_id=8), False),
    ],
)
def test_a_filter_matches_a_pet_by_status_and_category(
    filters: PetFilter, *, is_admitted: bool
) -> None:
    assert filters.admits(BELLA) is is_admitted


def test_a_new_inventory_has_zero_for_each_status() -> None:
    assert Inventory() == Inventory(available=0, pending=0, sold=0)
