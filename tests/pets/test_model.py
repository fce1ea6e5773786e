"""Which bodies are not valid for a pet or a change of one, and how a status moves.

How JSON and numbers are written is tested in ``domain/test_decoding.py``.
"""

import json
import re
from itertools import product
from typing import Any, TypeAlias

import pytest
from msgspec import UNSET, UnsetType

from petstore.domain.decoding import decode_json
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import IllegalTransition, InvalidBody
from petstore.pets.model import NewPet, Pet, PetPatch, PetStatus, patched

StatusOrNone: TypeAlias = PetStatus | UnsetType

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
