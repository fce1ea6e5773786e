"""Which bodies are an animal: the constraints of NewPet, through the decoder of the service."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET

from petstore.domain.decoding import decode_json
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.errors import InvalidBody
from petstore.pets.model import NewPet, Pet, PetFilter
from support.exploration import explored
from support.strategies import new_pets


def body(**members: Any) -> bytes:
    return json.dumps({"name": "Bella", "categoryId": 1} | members).encode()


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "\t\r\n",
        "\u2003\u3000",
        "\0",
        "Bella\0",
        "\0Bella",
        "x" * 256,
        "\N{DOG FACE}" * 256,
        " " * 60_000,
        "x" * 60_000 + "\0",
        None,
        5,
        True,
        ["Bella"],
        {"first": "Bella"},
    ],
)
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidBody, match=r"^name: expected 1 to 255 characters"):
        decode_json(body(name=name), NewPet)


@pytest.mark.parametrize(
    "name", ["x", "x" * 255, "\N{DOG FACE}" * 255, " Bella\n", "-1", "null", "=1+1", "\u200b"]
)
def test_a_valid_name_is_kept_unchanged(name: str) -> None:
    assert decode_json(body(name=name), NewPet).name == name


@pytest.mark.parametrize(
    "category",
    [
        b"9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551616",
        b"9" * 400,
        b"1.5",
        b"9223372036854775808.0",
        b"1e19",
        b"1e99999999999999999999",
        b"1e999",
        b"-1e-999",
        b"true",
        b"false",
        b"null",
        b'"1"',
        b'""',
        b"[1]",
        b"{}",
    ],
)
def test_a_category_that_is_not_an_int64_is_refused(category: bytes) -> None:
    with pytest.raises(InvalidBody, match=r"^categoryId: expected a whole number"):
        decode_json(b'{"name": "Bella", "categoryId": %b}' % category, NewPet)


@pytest.mark.parametrize("category", [b"1" * 4301, b"-" + b"9" * 60_000])
def test_a_number_of_thousands_of_digits_is_refused(category: bytes) -> None:
    with pytest.raises(InvalidBody):
        decode_json(b'{"name": "Bella", "categoryId": %b}' % category, NewPet)


@pytest.mark.parametrize("category", [INT64_MIN, -1, 0, 2**53 + 1, INT64_MAX])
def test_any_int64_is_accepted_as_a_category(category: int) -> None:
    assert decode_json(body(categoryId=category), NewPet).category_id == category


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (b"5.0", 5),
        (b"5e0", 5),
        (b"50E-1", 5),
        (b"-0.0", 0),
        (b"0e999", 0),
        (b"1." + b"0" * 60_000, 1),
        (b"9007199254740993.0", 9_007_199_254_740_993),
        (b"9.223372036854775807e18", INT64_MAX),
        (b"-9223372036854775808.0", INT64_MIN),
    ],
)
def test_a_whole_number_is_read_as_exactly_that_integer(text: bytes, category: int) -> None:
    pet = decode_json(b'{"name": "Bella", "categoryId": %b}' % text, NewPet)
    assert (pet.category_id, type(pet.category_id)) == (category, int)


@pytest.mark.parametrize("status", [None, "", "Sold", "sold ", "gone", 1, True, ["sold"]])
def test_an_unknown_status_is_refused(status: Any) -> None:
    with pytest.raises(InvalidBody, match=r"^status: expected one of 'available', 'pending', "):
        decode_json(body(status=status), NewPet)


@pytest.mark.parametrize("status", ["available", "pending", "sold"])
def test_a_valid_status_is_kept(status: str) -> None:
    assert decode_json(body(status=status), NewPet).status == status


def test_an_omitted_status_is_absent() -> None:
    assert json.loads(msgspec.json.encode(decode_json(body(), NewPet))) == {
        "name": "Bella",
        "categoryId": 1,
    }


@pytest.mark.parametrize("field", ["name", "categoryId"])
def test_a_missing_field_is_named(field: str) -> None:
    members = {"name": "Bella", "categoryId": 1}
    del members[field]
    with pytest.raises(InvalidBody, match=rf"^{field}: required; expected "):
        decode_json(json.dumps(members).encode(), NewPet)


def test_an_id_in_the_body_is_ignored() -> None:
    assert decode_json(body(id=7, owner="me"), NewPet) == NewPet("Bella", 1)


@explored(50)
@given(new_pets)
def test_every_valid_animal_is_accepted_unchanged(pet: dict[str, Any]) -> None:
    taken = decode_json(json.dumps(pet).encode(), NewPet)
    assert msgspec.to_builtins(taken) == pet


def test_a_filter_admits_animals_with_or_without_a_status() -> None:
    pets = [Pet(1, "Bella", 1, "sold"), Pet(2, "Rex", 1)]
    admitted = {
        has_status: [pet.id for pet in pets if PetFilter(has_status=has_status).admits(pet)]
        for has_status in (True, False, UNSET)
    }
    assert admitted == {True: [1], False: [2], UNSET: [1, 2]}
