"""Each field of a pet is wherever pets are: nobody adds one and forgets a place."""

import click
import pytest

from petstore.pets.commands import pets
from petstore.pets.model import NewPet, Pet, PetPatch
from petstore.pets.pages import FORM

FIELDS = NewPet.__struct_fields__


def test_a_stored_and_a_changed_pet_have_the_fields_of_a_new_one() -> None:
    assert Pet.__struct_fields__ == ("id", *FIELDS)
    assert PetPatch.__struct_fields__ == FIELDS


def test_the_form_of_the_console_has_every_field() -> None:
    assert FORM.labels.keys() == {*NewPet.__struct_encode_fields__}


@pytest.mark.parametrize("name", ["add", "change"])
def test_a_command_takes_every_field(name: str) -> None:
    parameters = pets.commands[name].get_params(click.Context(pets))
    assert set(FIELDS) <= {parameter.name for parameter in parameters}
