"""Types of fields that several resources share."""

import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from petstore.domain.fields import INT64_MAX, INT64_MIN, NOT_BLANK, PRINTABLE, Int64, Moment

EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1)]


def test_all_that_is_blank_to_python_is_blank_alone() -> None:
    blank = {character for character in EVERY_CHARACTER if not re.search(NOT_BLANK, character)}
    assert blank == {"\0", *filter(re.compile(r"\s").match, EVERY_CHARACTER)}


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\0", "a\0", "\0a", "a\n\0", " \n\u3000"])
def test_blank_text_and_text_with_u0000_is_refused(text: str) -> None:
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


@pytest.mark.parametrize("text", ["a", " a b ", "Großtiere", "مفتاح", "\N{DOG FACE}", "O'Hara\";"])
def test_other_text_is_printable(text: str) -> None:
    assert re.search(PRINTABLE, text)


@pytest.mark.parametrize("value", [INT64_MIN - 1, INT64_MAX + 1, 2**64, True, "1", 1.5, None])
def test_only_an_integer_of_64_bits_is_accepted(value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Int64)


@pytest.mark.parametrize("value", [INT64_MIN, 0, INT64_MAX])
def test_an_integer_of_64_bits_is_taken(value: int) -> None:
    assert msgspec.convert(value, Int64) == value


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
def test_a_moment_keeps_its_offset(text: str, moment: datetime) -> None:
    converted = msgspec.convert(text, Moment)
    assert (converted, converted.utcoffset()) == (moment, moment.utcoffset())
