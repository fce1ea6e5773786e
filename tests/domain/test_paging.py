"""Cursors: every int64 has one, and nothing else is one."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.domain.names import search_key
from petstore.domain.paging import (
    CURSOR_PATTERN,
    MAX_CURSOR,
    MAX_PETS_CURSOR,
    PETS_CURSOR_PATTERN,
    NamePosition,
    decode_cursor,
    decode_name_cursor,
    decode_newest_cursor,
    encode_cursor,
    encode_name_cursor,
    encode_newest_cursor,
)
from support.exploration import explored
from support.strategies import int64s, pet_names

FIRST = encode_cursor(20)
NEWEST = encode_newest_cursor(20)
BY_NAME = encode_name_cursor(NamePosition("bella", 20))
DECODERS = (decode_cursor, decode_newest_cursor, decode_name_cursor)


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


# Cursors of lists in another order


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "bella",
        f"{FIRST}.",
        f"{FIRST}.YQ==",
        f"{FIRST}.YR",
        f"{FIRST}.Y",
        f"{FIRST}.YQ.YQ",
        f"{FIRST}.YQ\n",
        f"{FIRST}.Y Q",
        f"{FIRST}.AA",  # U+0000
        f"{FIRST}._w",  # no UTF-8
        f"{FIRST}.7aCA",  # a surrogate
        f"{FIRST}.\uff21",
        f"{FIRST[:-1]}B.YQ",
        f"-{FIRST}.YQ",
        f"{FIRST}.{'YWFh' * 134}",  # 402 characters
    ],
)
def test_an_invalid_cursor_of_a_search_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        decode_name_cursor(cursor)


@pytest.mark.parametrize("cursor", ["", "-", f"--{FIRST}", f"-{FIRST}\n", f"-{FIRST[:-1]}B"])
def test_an_invalid_cursor_of_a_list_of_the_newest_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        decode_newest_cursor(cursor)


@pytest.mark.parametrize("cursor", [FIRST, NEWEST, BY_NAME, encode_newest_cursor(-1)])
def test_only_the_list_that_gave_a_cursor_takes_it(cursor: str) -> None:
    taken = 0
    for decode in DECODERS:
        try:
            decode(cursor)
        except ValueError:
            continue
        taken += 1
    assert taken == 1


@explored(100)
@given(int64s, pet_names)
def test_a_cursor_of_a_search_has_the_position_it_was_made_of(last_id: int, name: str) -> None:
    position = NamePosition(search_key(name), last_id)
    cursor = encode_name_cursor(position)
    assert re.search(PETS_CURSOR_PATTERN, cursor)
    assert len(cursor) <= MAX_PETS_CURSOR
    assert decode_name_cursor(cursor) == position


@explored(50)
@given(int64s)
def test_a_cursor_of_a_list_of_the_newest_has_the_id_it_was_made_of(last_id: int) -> None:
    cursor = encode_newest_cursor(last_id)
    assert re.search(PETS_CURSOR_PATTERN, cursor)
    assert not re.search(CURSOR_PATTERN, cursor)
    assert decode_newest_cursor(cursor) == last_id


def test_the_longest_cursors_have_the_lengths_that_the_document_tells() -> None:
    longest = encode_name_cursor(NamePosition(search_key("\U0001d1c0" * 255), -1))
    assert (len(FIRST), len(longest)) == (MAX_CURSOR, MAX_PETS_CURSOR)
    assert decode_name_cursor(longest).id == -1
