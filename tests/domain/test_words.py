"""Words of names: what they are, which text matches them, and by which keys they are found."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.domain.names import MAX_SEARCH_KEY
from petstore.domain.words import (
    MAX_NAME,
    MAX_PHRASE,
    MAX_WORD,
    SearchText,
    first_word,
    keys_of,
    keys_of_each,
    name_key_of,
    phrase_key_of,
    position_at_start,
    position_within,
    word_key_of,
    word_keys_of,
    words_of,
)
from support.exploration import explored
from support.strategies import pet_names

LONGEST_BTREE_ENTRY = 2704
"""Bytes that an entry of an index of PostgreSQL may have."""

DOG, SKIN, JOINER, PICTURE = "\U0001f436", "\U0001f3fd", "\u200d", "\ufe0f"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(("Bella", ["bella"]), ("Mr. Darcy", ["mr", "darcy"]), ("Mr.Darcy", ["mr", "darcy"])),
        *(("  Rex \t II ", ["rex", "ii"]), ("O'Brien", ["o", "brien"])),
        *(("O\u2019Brien", ["o", "brien"]), ("Jean-Luc", ["jean", "luc"])),
        *(("R2-D2", ["r2", "d2"]), ("snake_case", ["snake", "case"]), ("C++", ["c", "++"])),
        *(("a+b", ["a", "+", "b"]), ("$ave", ["$", "ave"]), ("#1", ["1"]), ("日本語", ["日本語"])),
        *(("日本 語", ["日本", "語"]), (DOG, [DOG]), (f"{DOG}Rex", [DOG, "rex"])),
        *((f"Rex{DOG}{SKIN}", ["rex", DOG + SKIN]), (f"{DOG}{JOINER}{DOG}", [DOG * 2])),
        *((f"\u2764{PICTURE}", ["\u2764"]), ("\U0010ffff", ["\U0010ffff"])),
    ],
)
def test_a_word_is_a_run_of_letters_and_digits_or_of_symbols(name: str, words: list[str]) -> None:
    assert [*words_of(name)] == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(("!!!", ["!!!"]), ("! ?", ["!", "?"]), ("\u2026", ["\u2026"]), ("\u0301", ["\u0301"])),
        *(("\u200b", ["\u200b"]), ("\u0001", ["\u0001"]), ("\u0001 !", ["!"])),
        *(("!\u2003?", ["!", "?"]), (" ", [" "])),
    ],
)
def test_a_name_without_words_is_divided_at_white_space(name: str, words: list[str]) -> None:
    assert [*words_of(name)] == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("K\u00e4the", "kathe"),
        ("Ka\u0308the", "kathe"),
        ("\u00c9COLE", "ecole"),
        ("Stra\u00dfe", "strasse"),
        ("STRA\u1e9eE", "strasse"),
        ("\u0130stanbul", "istanbul"),
        ("\u0131stanbul", "istanbul"),
        ("S\u00f8ren", "soren"),
        ("\u0141ukasz", "lukasz"),
        ("\u0110or\u0111e", "dorde"),
        ("\u0126al", "hal"),
        ("\u0166a", "ta"),
        ("\u00c6sir", "aesir"),
        ("\u0153uvre", "oeuvre"),
        ("\u00deor", "\u00feor"),
        ("\ufb01lou", "filou"),
        ("\uff32\uff45\uff58", "rex"),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3"),
        ("\u1fb3", "\u03b1"),
        ("\u0439", "\u0438"),
        ("\u05d1\u05bc\u05b0", "\u05d1"),
        ("\u0628\u064e", "\u0628"),
        ("\u0710\u0711", "\u0710"),
        ("o\u0327\u0321", "o"),
        ("\u1820\ufe00", "\u1820"),
        ("re\u00adx", "rex"),
        # Marks that make another letter, or a vowel.
        ("\u304c", "\u304c"),
        ("\u304b\u3099", "\u304c"),
        ("\u0915\u093f", "\u0915\u093f"),
        ("\u0915\u094d", "\u0915\u094d"),
        ("\u0e01\u0e38", "\u0e01\u0e38"),
        ("\u0928\u093c", "\u0929"),
        ("\ud55c", "\ud55c"),
    ],
)
def test_case_and_marks_on_letters_do_not_matter(name: str, words: str) -> None:
    assert " ".join(words_of(name)) == words


@explored(300)
@given(pet_names | st.text(st.sampled_from("a! \u0001\u0301\U0001f436"), min_size=2))
def test_words_have_no_white_space_and_no_control_characters(name: str) -> None:
    words = words_of(name)
    assert all(words)
    if len(words) > 1:
        assert all(character > " " for word in words for character in word)


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        *(("bel", "Bella", 0), ("darcy", "Mr. Darcy", 1), ("d", "Mr. Dog Darcy", 2)),
        *(("dog", "Mr. Darcy Dog", 2), ("b", "Bella Belinda", 1), ("b", "Bella Bella", 0)),
        *(("arcy", "Mr. Darcy", None), ("mr dar", "Mr. Darcy", 0)),
        *(("MR. D\u00c4R", "Mr. Darcy", 0), ("mr darcy", "Old Mr. Darcy", 1)),
        *(("mr dar", "Mr. Bean and Mr. Darcy", 3), ("mr d", "Mr. Dog and Mr. Darcy", 3)),
        *(("mr d", "Mr. Dan and Mr. Darcy", 0), ("mr d", "Mr. D and Mr. D", 3)),
        *(("bean mr", "Mr. Bean and Mr. Darcy", None), ("m dar", "Mr. Darcy", None)),
        *(("mr darcy x", "Mr. Darcy", None), ("a b c", "x a b cat", 1), ("a b c", "x a b", None)),
        *(("o'br", "O'Brien", 0), ("obrien", "O'Brien", None), ("rex ", "Rexona", 0)),
        ("?", "! ?", 1),
    ],
)
def test_a_text_matches_words_that_follow_each_other(
    text: str, name: str, place: int | None
) -> None:
    assert SearchText(words_of(text)).place_in(words_of(name)) == place


def test_keys_are_of_the_words_from_a_place_on() -> None:
    words = words_of("Scout the Molly")
    assert name_key_of(words) == "scout the molly"
    assert word_key_of(words, 1) == "the scout the molly"
    assert phrase_key_of(words, 1) == " the molly"
    # As long as the migrations say.
    assert (MAX_WORD, MAX_NAME, MAX_PHRASE) == (100, 100, 200)
    long = ("a" * 300, "b" * 300)
    assert word_key_of(long, 1) == f"{'b' * MAX_WORD} {'a' * MAX_NAME}"
    assert phrase_key_of(long, 1) == f" {'b' * MAX_PHRASE}"


LONG = "a" * 250
LONG_NAME = f"b {LONG} c"[:MAX_NAME]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (words_of("Bella"), []),
        (words_of("Mr. Darcy"), ["darcy mr darcy"]),
        (
            words_of("Mr. Bean and Mr. Rex"),
            [
                *(f"{word} mr bean and mr rex" for word in ("bean", "and", "mr", "rex")),
                *(" bean and mr rex", " and mr rex", " mr rex"),
            ],
        ),
        (("a", "b", "b"), ["b a b b", " b b"]),  # the same word has one key
        (
            ("b", LONG, "c"),
            [f"{LONG[:MAX_WORD]} {LONG_NAME}", f"c {LONG_NAME}", f" {LONG[:MAX_PHRASE]}"],
        ),
    ],
)
def test_the_keys_of_words_have_each_word_but_the_first_and_what_follows_it(
    words: tuple[str, ...], keys: list[str]
) -> None:
    assert word_keys_of(words) == keys


def test_the_keys_of_a_name_have_its_words_if_its_own_key_is_too_short() -> None:
    assert keys_of("Bella") == ("bella", "", ())
    assert keys_of("Mr. Darcy") == ("mr darcy", "", ["darcy mr darcy"])
    assert keys_of("Mr. Darcy").values == ("mr darcy", "")
    long = "a " + "\N{SQUARE APAATO}" * 200  # each becomes four letters
    whole = " ".join(words_of(long))
    assert len(whole) > MAX_SEARCH_KEY
    assert keys_of(long).values == (whole[:MAX_SEARCH_KEY], whole)


@pytest.mark.anyio
async def test_the_keys_of_many_names_are_those_of_each() -> None:
    names = ["Bella", "Mr. Darcy"]
    assert await keys_of_each(names) == {name: keys_of(name) for name in names}


@pytest.mark.parametrize("character", ["\U0001d1c0", "\ufb03", "\ufdfa", f"a{DOG}", "\U0010ffff"])
def test_the_longest_keys_fit_an_index(character: str) -> None:
    words = words_of((character * 255)[:255])
    keys = [name_key_of(words), *word_keys_of(("a", *words))]
    assert max(map(len, keys)) <= max(MAX_SEARCH_KEY, MAX_WORD + 1 + MAX_NAME)
    assert max(len(key.encode()) for key in keys) + 100 < LONGEST_BTREE_ENTRY


@pytest.mark.parametrize(
    ("key", "word"),
    [("mr darcy", "mr"), ("bella", "bella"), ("mr.\tdarcy", "mr."), (" rex", ""), ("\u0001", "")],
)
def test_the_first_word_of_a_key_ends_at_white_space(key: str, word: str) -> None:
    assert first_word(key) == word


def test_positions_have_the_word_that_leads_to_a_pet() -> None:
    at_start: Any = position_at_start("mr darcy", 7)
    assert at_start == ("mr", "mr darcy", 7)
    within: Any = position_within("darcy mr darcy", 7)
    assert within == ("darcy", "mr darcy", 7)


keys = st.text(st.sampled_from("ab!\u0001 \t\U0001f436"), min_size=1, max_size=6)


@explored(300)
@given(keys, keys)
def test_keys_are_in_the_order_of_their_first_words(one: str, other: str) -> None:
    by_key = one < other
    assert by_key == ((first_word(one), one) < (first_word(other), other))
