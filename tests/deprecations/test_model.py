"""Calls to deprecated operations: how they add up, and what is kept of the client's name."""

from itertools import permutations

import pytest

from petstore.deprecations.model import KEPT_DAYS, Calls, user_agent_text


def test_calls_are_added_up_with_the_time_of_the_latest() -> None:
    for one, other in permutations([Calls(2, 1_000, "old", "a"), Calls(3, 2_000, "new", "b")]):
        assert one.and_also(other) == Calls(5, 2_000, "new", "b")


def test_calls_are_counted_for_30_days() -> None:
    assert KEPT_DAYS == 30


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (None, ""),
        (b"shop/1.0 \xe2\x98\x83", "shop/1.0 \N{SNOWMAN}"),
        (b"a\x1b\xff\nb", "a?\N{REPLACEMENT CHARACTER}?b"),
        (b"x" * 101, "x" * 100),
        ("\N{DOG FACE}".encode() * 101, "\N{DOG FACE}" * 100),
    ],
)
def test_a_user_agent_is_up_to_100_printable_characters(field: bytes | None, text: str) -> None:
    assert user_agent_text(field) == text
