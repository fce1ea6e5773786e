"""Words of names, by which pets and buyers are found, without regard to case and marks."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias
from unicodedata import category, combining, normalize

from petstore.time_slices import TimeSlices

MAX_WORDS = 8
"""How many words of a name are searched; those after them are as if they were not there."""

TERM_SIZES = (1, 2, 3, 4, 6, 8, 12)
"""How long the indexed beginnings of a word are. Each costs space, so others are compared."""

# Places inside words where one may begin to type: behind a hyphen, or anywhere in Chinese.
_MAX_INNER = 16
_MAX_WHOLE = 100

# The accents of Latin, Greek and Cyrillic letters, and the points of Hebrew and Arabic ones. The
# other classes are vowels and voicing: they make another letter.
_POINTS = range(10, 37)
_ACCENTS = range(200, 256)
# Unicode does not take these for letters with marks.
_LETTERS = str.maketrans(
    {
        "\N{LATIN SMALL LETTER O WITH STROKE}": "o",
        "\N{LATIN SMALL LETTER L WITH STROKE}": "l",
        "\N{LATIN SMALL LETTER D WITH STROKE}": "d",
        "\N{LATIN SMALL LETTER H WITH STROKE}": "h",
        "\N{LATIN SMALL LETTER T WITH STROKE}": "t",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
        "\N{LATIN SMALL LETTER AE}": "ae",
        "\N{LATIN SMALL LIGATURE OE}": "oe",
    }
)
_REMEMBERED = 4096
# A ligature may decompose into 18 characters, and a name has hundreds. A letter has 3 at most.
_MAX_DECOMPOSED = 1_000
_VARIATIONS = range(0xFE00, 0xFE10)
# Thai, Lao; Myanmar; Khmer; kana, bopomofo and Han: they have no spaces between words.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_SPACE = re.compile(r"[\0-\x20\s]+")

_Word: TypeAlias = tuple[str, list[int]]
"""A word, and the places inside it where one may begin to type."""


def typed_words(text: str) -> list[str]:
    """A text that is punctuation alone has it as its words."""
    return [word for word, _ in _words(text)]


def words_of(name: str) -> list[str]:
    """Return the words of a name, and what is left of each from a place where one may begin.

    That is behind punctuation, at a change between letters and symbols such as emoji, and at any
    letter of a script without spaces: O'Brien is ``obrien`` and ``brien``.
    """
    return _with_inner(_words(name))


def finds(typed: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether each word of a search is the beginning of a word of a name."""
    return all(any(word.startswith(each) for word in words) for each in typed)


def terms_of(name: str) -> str:
    """Return the terms of a name, between spaces: the beginnings of its words, and the whole."""
    words = _words(name)
    terms = {
        word[:size]: None for word in _with_inner(words) for size in TERM_SIZES if size <= len(word)
    }
    return " ".join([*terms, _whole(words)])


def indexed_beginning(word: str) -> str:
    """Return the longest beginning of a word that the index has."""
    return word[: max(size for size in TERM_SIZES if size <= len(word))]


def whole_term(name: str) -> str:
    """Return the term of a whole name: a no-break space, which no word has, ends each word."""
    return _whole(_words(name))


async def terms_of_each(names: Iterable[str]) -> dict[str, str]:
    """The words of a hundred long names take a while, so others run in between."""
    slices, terms = TimeSlices(), dict[str, str]()
    for name in names:
        await slices.rest()
        terms[name] = terms_of(name)
    return terms


def _whole(words: Iterable[_Word]) -> str:
    return "".join([f"{word}\N{NO-BREAK SPACE}" for word, _ in words])[:_MAX_WHOLE]


def _with_inner(divided: Iterable[_Word]) -> list[str]:
    words, inner = list[str](), _MAX_INNER
    for word, starts in divided:
        words.append(word)
        words += [word[start:] for start in starts[:inner]]
        inner -= len(starts[:inner])
    return words


def _words(text: str) -> list[_Word]:
    if text.isalnum() and text.isascii():
        return [(text.lower(), [])]
    folded = text.lower()
    if not text.isascii():
        folded = normalize("NFC", _unmarked(_unmarked(text).casefold().translate(_LETTERS)))
    chunks = [*filter(None, _SPACE.split(folded))] or _SPACE.split(text.strip())
    words = [each for chunk in chunks if (each := _divided(chunk))[0]]
    # FTS5 takes DEL for a space.
    return (words or [(chunk, []) for chunk in chunks if chunk.strip("\x7f")])[:MAX_WORDS]


def _divided(chunk: str) -> tuple[str, list[int]]:
    if chunk.isascii() and chunk.isalnum():
        return chunk, []
    word, starts, before = "", list[int](), ""
    for character in chunk:
        kind = _kind(character)
        if kind == "mark":
            kind = before or "word"
        elif kind and word and (kind != before or kind == "alone"):
            starts.append(len(word))
        word, before = word + character if kind else word, kind
    return word, starts


def _unmarked(text: str) -> str:
    """Return a text decomposed, without marks and without what is not seen."""
    return "".join(filter(_is_kept, normalize("NFKD", text)[:_MAX_DECOMPOSED]))


@lru_cache(_REMEMBERED)
def _is_kept(character: str) -> bool:
    mark = combining(character)
    return not (
        mark in _POINTS
        or mark in _ACCENTS
        or category(character) == "Cf"
        or ord(character) in _VARIATIONS
    )


@lru_cache(_REMEMBERED)
def _kind(character: str) -> str:
    """Return "mark", "symbol", "word", "alone" for a whole word, or "" for what divides words."""
    general = category(character)
    if general[0] == "M":
        return "mark"
    if general[0] in "LN":
        return "alone" if _WITHOUT_SPACES.match(character) else "word"
    return "" if general[0] in "PZ" or general == "Cc" else "symbol"
