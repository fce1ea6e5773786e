"""Names without regard to case: which begin with which, and in what order they come."""

import sys
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.domain.names import end_of_prefix, name_key
from support.exploration import explored
from support.strategies import pet_names

SURROGATES = range(0xD800, 0xE000)


@pytest.mark.parametrize(
    ("prefix", "name", "is_found"),
    [
        *(("bel", "BELLA", True), ("STRASS", "Straße", True), ("straß", "STRASSE", True)),
        *(("İ", "i̇stanbul", True), ("i", "İstanbul", True), ("ΟΔΟΣ", "οδος", True)),
        ("\u03bf\u03b4\u03bf\u03c3", "\u039f\u0394\u039f\u03c2", True),  # the final sigma
        *(("école", "E\u0301COLE", True), ("E\u0301", "école", True), ("ﬁ", "Filou", True)),
        *(("\U0001f436", "\U0001f436 Rex", True), (" ", " Rex", True)),
        *(("\uff48und", "HUNDE", True), ("\uff76\uff9e", "ガラ", True), ("a b", "a\u3000b", True)),
        ("\U0010ffff", "\U0010ffff\U0010ffff", True),
        *(("ella", "Bella", False), ("Bella ", "Bella", False), ("e", "école", False)),
        *(("e", "e\u0301cole", False), ("\u0131", "Ida", False)),
    ],
)
def test_a_prefix_matches_in_any_case(prefix: str, name: str, *, is_found: bool) -> None:
    assert name_key(name).startswith(name_key(prefix)) == is_found


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        *(("GROẞTIERE", "großtiere", True), ("\u212bl", "åL", True), ("ΣΊΣΥΦΟΣ", "σίσυφος", True)),
        *(("\u1fb3", "\u0391\u0399", True), ("q\u0323\u0307", "Q\u0307\u0323", True)),
        *(("Vögel", "Vogel", False), ("İ", "i", False), ("\u0131", "i", False)),
        *(("Dogs", "Dogs ", False), ("Å", "A", False)),
    ],
)
def test_names_that_differ_only_in_case_or_normalization_are_equal(
    one: str, other: str, *, are_equal: bool
) -> None:
    assert (name_key(one) == name_key(other)) is are_equal


def test_no_character_folds_to_more_than_four() -> None:
    everything = (chr(n) for n in range(sys.maxunicode + 1) if n not in SURROGATES)
    changed = (one for one in everything if not one.isascii() and normalize("NFD", one) != one)
    assert max(len(normalize("NFD", one).casefold()) for one in changed) == 4
    assert max(len(chr(n).casefold()) for n in range(sys.maxunicode + 1)) == 3


def test_a_text_too_long_for_a_name_is_its_own_key() -> None:
    longest = "A\N{COMBINING ACUTE ACCENT}" * 510
    assert name_key(longest) == "\u00e1" * 510
    assert name_key(f"{longest}A") == f"{longest}A"


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        *(("a", "b"), ("bex", "bey"), ("\ud7ff", "\ue000"), ("a\U0010ffff", "b")),
        *(("a\U0010ffff\U0010ffff", "b"), ("\ud7ff\U0010ffff", "\ue000")),
        *(("\U0010fffe", "\U0010ffff"), ("\U0010ffff", None), ("\U0010ffff" * 2, None)),
    ],
)
def test_the_end_of_a_prefix_range_is_the_next_text_without_the_prefix(
    prefix: str, end: str | None
) -> None:
    assert end_of_prefix(prefix) == end


near_the_edges = st.text(st.sampled_from("aAb\ud7ff\ue000\U0010fffe\U0010ffff"), min_size=1)


@explored(200)
@given(prefix=near_the_edges | pet_names, name=near_the_edges | pet_names)
def test_the_range_of_a_prefix_has_exactly_the_matching_names(prefix: str, name: str) -> None:
    first, key = name_key(prefix), name_key(name)
    end = end_of_prefix(first)
    assert key.startswith(first) == (first <= key and (end is None or key < end))
    # Databases compare UTF-8, Python code points.
    assert (key < first) == (key.encode() < first.encode())
