"""Types of fields that several resources share."""

import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from petstore.domain.decoding import decode_json
from petstore.domain.fields import (
    INT64_MAX,
    INT64_MIN,
    NO_U0000,
    NOT_BLANK,
    PRINTABLE,
    Int64,
    Moment,
    patch_of,
)
from petstore.errors import InvalidBody


def test_exactly_the_whitespace_of_python_is_blank() -> None:
    characters = list(map(chr, range(sys.maxunicode + 1)))
    blank = {character for character in characters if not re.search(NOT_BLANK, character)}
    assert blank == {"\0", *filter(re.compile(r"\s").match, characters)}


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\0", "a\0", "\0a", "a\n\0", " \n\u3000"])
def test_blank_text_and_text_with_u0000_are_refused(text: str) -> None:
    assert not re.search(NOT_BLANK, text)


@pytest.mark.parametrize("text", ["a", " a ", "\na\n", "\u200b", "\x01", "a\n\nb", "\ud800"])
def test_other_text_is_not_blank(text: str) -> None:
    assert re.search(NOT_BLANK, text)


@pytest.mark.parametrize("where", ["{}a", "a{}", "a{}a", "a{}\n"])
@pytest.mark.parametrize(
    "character",
    ["\0", "\t", "\n", "\x1b", "\x7f", "\x85", "\x9f", "\u200e", "\u2028", "\u202e", "\u2066"],
)
def test_control_and_direction_characters_are_not_printable(where: str, character: str) -> None:
    assert not re.search(PRINTABLE, where.format(character))


@pytest.mark.parametrize("text", ["", " ", "\u00a0\u3000"])
def test_white_space_alone_is_not_printable(text: str) -> None:
    assert not re.search(PRINTABLE, text)


@pytest.mark.parametrize("text", ["x", " a b ", "Großtiere", "مفتاح", "\N{DOG FACE}", "O'Hara\";"])
def test_other_text_is_printable(text: str) -> None:
    assert re.search(PRINTABLE, text)


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63, 2**64, True, "1", 1.5, None])
def test_only_a_64_bit_integer_is_accepted(value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Int64)


@pytest.mark.parametrize("value", [-(2**63), 0, 2**63 - 1])
def test_a_64_bit_integer_is_accepted(value: int) -> None:
    assert msgspec.convert(value, Int64) == value
    assert INT64_MIN <= value <= INT64_MAX


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Int64, "a whole number from -2^63 to 2^63 - 1"),
        (Moment, "a date and time as in 2026-12-24T10:00:00Z"),
    ],
)
def test_the_error_says_what_is_expected(kind: Any, expected: str) -> None:
    struct = msgspec.defstruct("Struct", [("value", kind)])
    with pytest.raises(InvalidBody, match=rf"^value: expected {re.escape(expected)}$"):
        decode_json(b'{"value": "x"}', struct)


@pytest.mark.parametrize(
    ("text", "is_taken"), [("", True), ("\n", True), ("a\1", True), ("\0", False), ("a\n\0", False)]
)
def test_text_can_have_every_character_except_u0000(text: str, *, is_taken: bool) -> None:
    assert bool(re.search(NO_U0000, text)) is is_taken


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026-12-24", "2026-12-24T10:00:00", "2026-13-24T10:00:00Z"),
        *("2026-02-29T10:00:00Z", "2026-12-24T24:00:00Z", "2026-12-24T10:00:00+24:00"),
        *("2026-12-24T10:00:00Z ", "0000-01-01T00:00:00Z"),
    ],
)
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Moment)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-24T10:00:00Z", datetime(2026, 12, 24, 10, tzinfo=UTC)),
        (
            "2026-12-24T10:00:00.25-05:30",
            datetime(
                *(2026, 12, 24, 10, 0, 0, 250_000),
                tzinfo=timezone(-timedelta(hours=5, minutes=30)),
            ),
        ),
    ],
)
def test_a_time_keeps_its_offset(text: str, moment: datetime) -> None:
    converted = msgspec.convert(text, Moment)
    assert (converted, converted.utcoffset()) == (moment, moment.utcoffset())


class Rabbit(Struct, rename="camel"):
    """A struct with a required field and one with a default."""

    ear_length: Int64
    born_at: Moment | None = None


RabbitPatch = patch_of(Rabbit, "RabbitPatch", "The fields of a rabbit to change.")


def test_a_patch_has_the_checks_of_the_struct() -> None:
    with pytest.raises(InvalidBody, match=r"^earLength: expected a whole number"):
        decode_json(b'{"earLength": null}', RabbitPatch)


def test_a_field_that_a_patch_does_not_name_is_unset() -> None:
    patch = decode_json(b'{"bornAt": null}', RabbitPatch)
    assert asdict(patch) == {"ear_length": UNSET, "born_at": None}


def test_a_patch_is_described_by_its_own_words() -> None:
    assert RabbitPatch.__doc__ == "The fields of a rabbit to change."


def test_a_patch_does_not_change() -> None:
    patch = decode_json(b"{}", RabbitPatch)
    with pytest.raises(AttributeError):
        setattr(patch, "ear_length", 1)  # noqa: B010 - mypy knows no fields of a derived struct
