"""Types of fields that several resources share."""

import re
import sys

import pytest
from msgspec import UNSET, Struct, UnsetType

from petstore.domain.decoding import decode_json
from petstore.domain.fields import (
    NO_U0000,
    NOT_BLANK,
    PRINTABLE,
    VISIBLE,
    Int64,
    Moment,
    given_fields,
    merged,
    open_list,
    patch_of,
)
from petstore.errors import InvalidBody


def test_white_space_and_what_nobody_sees_is_blank() -> None:
    characters = list(map(chr, range(sys.maxunicode + 1)))
    blank = {character for character in characters if not re.search(NOT_BLANK, character)}
    assert blank > {"\0", *filter(re.compile(r"\s").match, characters)}
    assert not any(map(str.isalnum, blank - set("\u115f\u1160\u3164\uffa0")))


CONTROLS = "\0\t\n\x1b\x7f\x85\x9f\u200e\u2028\u202e\u2066"


@pytest.mark.parametrize(
    ("pattern", "refused", "taken"),
    [
        (
            NOT_BLANK,
            ["", " ", "\0", "a\0", "\0a", "a\n\0", " \n\u3000", "\u200b", "\x01", "\u2800 \ufe0f"],
            ["a", " a ", "\na\n", "a\u200b", "a\x01", "a\n\nb", "\ud800", "\u0301"],
        ),
        (
            PRINTABLE,
            ["", "\u00a0\u3000", *(f"a{each}a" for each in CONTROLS), "\na", "a\n", "a\0\n"],
            ["x", " a b ", "Großtiere", "مفتاح", "\N{DOG FACE}", "O'Hara\";"],
        ),
        (NO_U0000, ["\0", "a\n\0"], ["", "\n", "a\1"]),
        (VISIBLE, [" ", "a b", "a\n", "\u2800"], ["", "a", "Großtiere"]),
    ],
)
def test_a_pattern_takes_some_texts(pattern: str, refused: list[str], taken: list[str]) -> None:
    assert [text for text in refused if re.search(pattern, text)] == []
    assert [text for text in taken if re.search(pattern, text)] == taken


class Rabbit(Struct, rename="camel"):
    ear_length: Int64
    born_at: Moment | UnsetType | None = UNSET


RabbitPatch = patch_of(Rabbit, "RabbitPatch", "The fields of a rabbit to change.")


def test_a_patch_has_the_checks_of_the_struct_and_its_own_words() -> None:
    with pytest.raises(InvalidBody, match=r"^earLength: expected a whole number"):
        decode_json(b'{"earLength": null}', RabbitPatch)
    patch = decode_json(b'{"bornAt": null}', RabbitPatch)
    assert given_fields(patch) == {"born_at": None}
    assert RabbitPatch.__doc__ == "The fields of a rabbit to change."
    with pytest.raises(AttributeError):
        setattr(patch, "ear_length", 1)  # noqa: B010 - mypy knows no fields of a derived struct


def test_a_patch_changes_what_it_names_or_what_is_asked_for() -> None:
    rabbit = Rabbit(5, born_at=None)
    patch = decode_json(b'{"earLength": 7, "bornAt": null}', RabbitPatch)
    assert merged(rabbit, patch) == Rabbit(7)
    assert merged(rabbit, patch, "ear_length") == Rabbit(7, born_at=None)


def test_a_list_that_will_grow_says_so() -> None:
    wanted = "One of `a`, `b`. More will follow: ignore types that you do not know."
    assert open_list(["a", "b"], "types") == wanted
