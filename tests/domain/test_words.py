"""Words of names: what they are, which texts find them, and the terms of their index."""

import asyncio

import pytest
from hypothesis import given

from petstore.domain.words import (
    finds,
    indexed_beginning,
    terms_of,
    terms_of_each,
    typed_words,
    whole_term,
    words_of,
)
from support.exploration import explored
from support.strategies import pet_names

DOG, SKIN, JOINER, PICTURE = "\U0001f436", "\U0001f3fd", "\u200d", "\ufe0f"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(("Bella", ["bella"]), ("Mr. Darcy", ["mr", "darcy"]), ("  Rex \t II ", ["rex", "ii"])),
        *(("O'Brien", ["obrien", "brien"]), ("O\u2019Brien", ["obrien", "brien"])),
        *(("Jean-Luc", ["jeanluc", "luc"]), ("R2-D2", ["r2d2", "d2"]), ("K-9", ["k9", "9"])),
        *(("snake_case", ["snakecase", "case"]), ("C++", ["c++", "++"]), ("#1", ["1"])),
        *(
            ("a\x7fb", ["ab", "b"]),
            ("$ave", ["$ave", "ave"]),
            ("小花猫", ["小花猫", "花猫", "猫"]),
            (DOG, [DOG]),
        ),
        *(("日本 語", ["日本", "本", "語"]), (f"{DOG}Rex", [f"{DOG}rex", "rex"])),
        *((f"Rex{DOG}{SKIN}", [f"rex{DOG}{SKIN}", DOG + SKIN]), (f"\u2764{PICTURE}", ["\u2764"])),
        *((f"{DOG}{JOINER}{DOG}", [DOG * 2]), (DOG, [DOG]), ("\U0010ffff", ["\U0010ffff"])),
        *(("กิน", ["กิน", "น"]), ("猫 - Bella", ["猫", "bella"]), ("\u093fa", ["\u093fa"])),
        # A name without letters.
        *(("!!!", ["!!!"]), ("! ?", ["!", "?"]), ("\u0301", ["\u0301"]), (" ", [])),
        # The first eight words, and sixteen places inside them.
        (" ".join("abcdefghij"), [*"abcdefgh"]),
        (f"{'猫' * 18} 犬犬犬", ["猫" * left for left in range(18, 1, -1)] + ["犬犬犬"]),
    ],
)
def test_a_word_begins_at_a_space_and_where_one_may_begin_to_type(
    name: str, words: list[str]
) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("K\u00e4the Ka\u0308the \u00c9COLE re\u00adx", "kathe kathe ecole rex"),
        (
            "Stra\u00dfe STRA\u1e9eE \u0130stanbul \u0131stanbul",
            "strasse strasse istanbul istanbul",
        ),
        ("\u00f8\u0141\u0111\u0126\u0166\u00c6\u0153 \u00deor", "oldhtaeoe \u00feor"),
        ("\ufb01lou \uff32\uff45\uff58", "filou rex"),
        ("\u039f\u0394\u039f\u03a3 \u1fb3 \u0439", "\u03bf\u03b4\u03bf\u03c3 \u03b1 \u0438"),
        ("\u05d1\u05bc\u05b0 \u0628\u064e \u0710\u0711", "\u05d1 \u0628 \u0710"),
        ("o\u0327\u0321 \u1820\ufe00", "o \u1820"),
        # Marks that make another letter, or a vowel.
        ("\u304c \u304b\u3099 \ud55c", "\u304c \u304c \ud55c"),
        ("\u0915\u093f \u0915\u094d \u0928\u093c", "\u0915\u093f \u0915\u094d \u0929"),
        ("\u0e01\u0e38", "\u0e01\u0e38"),
    ],
)
def test_case_and_marks_on_letters_do_not_matter(typed: str, words: str) -> None:
    assert typed_words(typed) == words.split()


@pytest.mark.parametrize(
    ("text", "name", "is_found"),
    [
        *(("bel", "Bella", True), ("darcy", "Mr. Darcy", True), ("arcy", "Mr. Darcy", False)),
        *(("brown bel", "Bella the brown one", True), ("brown bell x", "Bella brown", False)),
        *(("MR. D\u00c4R", "Mr. Darcy", True), ("obrien", "O'Brien", True), ("k9", "K-9", True)),
        *(("o'b", "OBrien", True), ("猫", "小花猫", True), ("luc jean", "Jean-Luc", True)),
        *(("rex ", "Rexona", True), ("?", "! ?", True), ("%", "100", False), ("_", "a_b", False)),
        *(("", "Bella", True), ("bella bella", "Bella", True)),
    ],
)
def test_a_text_finds_names_with_all_its_words_in_any_order(
    text: str, name: str, *, is_found: bool
) -> None:
    assert finds(typed_words(text), words_of(name)) is is_found


@explored(300)
@given(pet_names)
def test_a_name_is_found_by_itself_and_by_any_part_of_its_words(name: str) -> None:
    words = words_of(name)
    assert finds(typed_words(name), words)
    assert set(terms_of(name).split(" ")).issuperset(map(indexed_beginning, words))
    assert all(len(word) and not word[0].isspace() for word in words)


def test_the_terms_of_a_name_are_the_beginnings_of_its_words_and_the_whole() -> None:
    assert terms_of("Mr. Bella") == "m mr b be bel bell mr\xa0bella\xa0"
    assert (indexed_beginning("bella"), whole_term("Mr. Bella")) == ("bell", "mr\xa0bella\xa0")
    beginnings = ["x" * size for size in (1, 2, 3, 4, 6, 8, 12)]
    assert terms_of("x" * 255) == " ".join([*beginnings, "x" * 100])


@pytest.mark.parametrize("character", ["\U0001d1c0", "\ufdfa", f"a{DOG}", "猫", "a-", "b "])
def test_the_terms_of_the_longest_names_are_few(character: str) -> None:
    name = (character * 255)[:255]
    (terms,) = asyncio.run(terms_of_each([name])).values()
    assert len(terms.split(" ")) <= 300
    assert max(map(len, terms.split(" "))) <= 100
