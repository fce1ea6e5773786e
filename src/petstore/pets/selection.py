"""Animals that a person selects in a list, to change several at once."""

import re
from collections.abc import Mapping, Sequence

from petstore.console.forms import Form
from petstore.domain.fields import INT64_MAX
from petstore.errors import InvalidBody
from petstore.interface.operation import Result
from petstore.pets.model import Pet

MAX_SELECTED = 100
"""How many animals can be selected, as many as a list of the interface has at most."""

_ID = re.compile("[1-9][0-9]{0,18}")
_VERSION = 8


def version_of(pet: Pet) -> str:
    """Return the version of an animal, short: it tells what a person saw from what is there now."""
    return Result(pet).version[1 : 1 + _VERSION]


def box_of(pet: Pet) -> str:
    """Return the value of the checkbox of an animal: its id, and the version that is shown."""
    return f"{pet.id}.{version_of(pet)}"


def selected_in(form: Form) -> Mapping[int, str]:
    """Return the versions of the selected animals, by their ids."""
    boxes = dict.fromkeys(form.all("pet"))
    if not boxes:
        msg = "select an animal first"
        raise InvalidBody(msg)
    parts = [box.partition(".") for box in boxes]
    versions = [version for _, _, version in parts]
    return dict(zip(ids_in([number for number, _, _ in parts]), versions, strict=True))


def ids_in(texts: Sequence[str]) -> list[int]:
    if len(texts) > MAX_SELECTED:
        msg = f"select at most {MAX_SELECTED} animals at a time"
        raise InvalidBody(msg)
    numbers = [int(text) if _ID.fullmatch(text) else 0 for text in texts]
    if not all(0 < number <= INT64_MAX for number in numbers):
        msg = "select animals of the list"
        raise InvalidBody(msg)
    return numbers
