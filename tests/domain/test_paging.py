"""Cursors: every int64 has one, and nothing else is one."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.domain.paging import CURSOR_PATTERN, decode_cursor, encode_cursor
from support.exploration import explored
from support.strategies import int64s

FIRST = encode_cursor(20)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "20",
        FIRST[:-1],
        FIRST + "A",
        FIRST + "=",
        FIRST + "\n",
        " " + FIRST,
        FIRST[:-1] + "B",
        FIRST.replace("A", "+", 1),
        FIRST.replace("A", "/", 1),
        FIRST.replace("A", "\uff21", 1),
        FIRST.replace("A", "\0", 1),
    ],
)
def test_an_invalid_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        decode_cursor(cursor)


@explored(50)
@given(st.text())
def test_text_that_does_not_match_the_pattern_is_refused(text: str) -> None:
    assume(not re.search(CURSOR_PATTERN, text))
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        decode_cursor(text)


@explored(50)
@given(st.from_regex(CURSOR_PATTERN.strip("^$"), fullmatch=True))
def test_text_that_matches_the_pattern_is_the_one_cursor_of_an_id(cursor: str) -> None:
    last_id = decode_cursor(cursor)
    assert INT64_MIN <= last_id <= INT64_MAX
    assert encode_cursor(last_id) == cursor


@explored(50)
@given(int64s)
def test_a_cursor_names_the_id_it_was_made_of(last_id: int) -> None:
    cursor = encode_cursor(last_id)
    assert re.search(CURSOR_PATTERN, cursor)
    assert decode_cursor(cursor) == last_id


@pytest.mark.parametrize("last_id", [INT64_MIN, -1, 0, 1, INT64_MAX])
def test_a_cursor_is_safe_in_an_address(last_id: int) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{11}", encode_cursor(last_id))
