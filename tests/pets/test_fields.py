"""Each field of an animal is wherever animals are: nobody adds one and forgets a place."""

from typing import Any

import click
import pytest
from msgspec import UNSET, inspect
from msgspec.structs import astuple

from petstore.domain.decoding import field_types
from petstore.pets.commands import pets
from petstore.pets.model import NewPet, Pet, PetPatch
from petstore.pets.pages import FORM
from petstore.pets.rows import pet_of, values_of

FIELDS = NewPet.__struct_fields__


def test_a_stored_and_a_changed_animal_have_the_fields_of_a_new_one() -> None:
    assert Pet.__struct_fields__ == ("id", *FIELDS)
    assert PetPatch.__struct_fields__ == FIELDS


def test_a_row_holds_every_field() -> None:
    new = NewPet(*map(value_of, field_types(NewPet).values()))
    assert UNSET not in astuple(new)
    assert pet_of((1, *values_of(new))) == Pet(1, *astuple(new))


def test_the_form_of_the_console_has_every_field() -> None:
    assert FORM.labels.keys() == {*NewPet.__struct_encode_fields__}


@pytest.mark.parametrize("name", ["add", "change"])
def test_a_command_takes_every_field(name: str) -> None:
    parameters = pets.commands[name].get_params(click.Context(pets))
    assert set(FIELDS) <= {parameter.name for parameter in parameters}


def value_of(kind: inspect.Type) -> Any:
    """Return a value of the type of a field."""
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    return 7 if isinstance(kind, inspect.IntType) else "a text"
