"""Cursors: every int64 has one, and nothing else is one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.domain.cursors import BY_DELIVERY, BY_ID, NEWEST_FIRST, CursorForm
from petstore.domain.fields import INT64_MAX, INT64_MIN
from support.exploration import explored

FIRST = BY_ID.encode(20)
NEWEST = NEWEST_FIRST.encode(20)
ODD_IDS = (
    *("", "20", FIRST[:-1], FIRST + "A", FIRST + "=", FIRST + "\n", " " + FIRST, FIRST[:-1] + "B"),
    *(FIRST.replace("A", odd, 1) for odd in ("+", "/", "\uff21", "\0")),
)
ODD_NEWEST = ("", "-", f"x{FIRST}", f"--{FIRST}", f"-{FIRST}\n", f"-{FIRST[:-1]}B")


@pytest.mark.parametrize(
    ("form", "cursor"),
    [
        *((BY_ID, odd) for odd in ODD_IDS),
        *((NEWEST_FIRST, odd) for odd in ODD_NEWEST),
        *((form, BY_DELIVERY.encode((1, 2))) for form in (BY_ID, NEWEST_FIRST)),
        *((BY_DELIVERY, odd) for odd in (FIRST, NEWEST, f"~{FIRST}", f"{FIRST}{FIRST}")),
        *((BY_ID, NEWEST), (NEWEST_FIRST, FIRST)),
    ],
)
def test_an_invalid_cursor_is_refused(form: CursorForm[Any], cursor: str) -> None:
    with pytest.raises(ValueError, match=r"^not a cursor$"):
        form.decode(cursor)


@explored(50)
@given(st.from_regex(BY_ID.pattern, fullmatch=True))
def test_text_that_matches_the_pattern_is_the_only_cursor_of_its_id(cursor: str) -> None:
    last_id = BY_ID.decode(cursor)
    assert INT64_MIN <= last_id <= INT64_MAX
    assert BY_ID.encode(last_id) == cursor
    assert NEWEST_FIRST.encode(last_id) == f"-{cursor}"
    assert NEWEST_FIRST.decode(f"-{cursor}") == last_id
    assert BY_DELIVERY.encode((last_id, 20)) == f"~{cursor}{FIRST}"
    assert BY_DELIVERY.decode(f"~{FIRST}{cursor}") == (20, last_id)


def test_the_longest_cursors_have_the_documented_lengths() -> None:
    assert (len(FIRST), len(NEWEST)) == (BY_ID.max_length, NEWEST_FIRST.max_length)
    assert len(BY_DELIVERY.encode((1, 2))) == BY_DELIVERY.max_length
