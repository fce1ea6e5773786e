"""The words of names, by which names are searched and sorted, without regard to case and marks."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from unicodedata import category, combining, normalize

from petstore.domain.names import MAX_SEARCH_KEY, search_key
from petstore.time_slices import TimeSlices

MAX_WORD = 100
"""The most characters of a word in the key of a word."""

# A word and a name of this length fit into an index of PostgreSQL (2,704 bytes).
MAX_NAME = 100
"""The most characters of the name in the key of a word."""

MAX_PHRASE = 200
"""The most characters of the key of several words, without its space."""

# Each word costs up to two rows of 800 bytes, and 255 characters may be 600 words.
MAX_WORDS = 8
"""How many words of a name are searched; those after them are as if they were not there."""

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
# A ligature may decompose into 18 characters, and a name has hundreds.
_REMEMBERED = 4096
_VARIATIONS = range(0xFE00, 0xFE10)
_ASCII_WORDS = re.compile(r"[a-z0-9]+|[$+<=>^`|~]+")
_END_OF_WORD = re.compile("[\0- ]")
_BETWEEN_WORDS = re.compile(r"[\0- \s]+")


class MatchPosition(NamedTuple):
    """A position in the result of a search: just after an item.

    The result is sorted by the word that matched, then by the name and the id. If several words
    matched, the name begins with the first one of them: what is before it does not count.
    """

    word: str
    name: str
    id: int


class SearchText(NamedTuple):
    """What a search asks for: words, of which the last one is the beginning of a word."""

    words: tuple[str, ...]

    def place_in(self, words: tuple[str, ...]) -> int | None:
        """Return the place of the word in a name that the text matches, ``None`` if there is none.

        Of several, the one that comes first by code point counts, with what follows it if the text
        has several words, too.
        """
        *whole, beginning = self.words
        size = len(whole)
        places = [
            place
            for place in range(len(words) - size)
            if words[place + size].startswith(beginning)
            and words[place : place + size] == tuple(whole)
        ]
        if not size:
            return min(places, key=words.__getitem__, default=None)
        return min(places, key=lambda place: words[place:], default=None)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name or of a text that is searched for; there is at least one.

    A word is a run of letters and digits, or one of symbols, such as emoji. Marks on letters are
    left out, and so is what is between the words. A text without words is divided at white space.
    Of many words, it is the first ``MAX_WORDS``.
    """
    words = _ASCII_WORDS.findall(text.lower()) if text.isascii() else _divided(_folded(text))
    if not words:
        key = search_key(text)
        words = [word for word in _BETWEEN_WORDS.split(key) if word] or [key]
    return tuple(words[:MAX_WORDS])


def name_key_of(words: tuple[str, ...]) -> str:
    """Return the key of a name with these words: a search by its beginning compares it."""
    return " ".join(words)[:MAX_SEARCH_KEY]


def word_key_of(words: tuple[str, ...], place: int) -> str:
    """Return the key of the word at a place: it has the name, by which equal words are sorted."""
    return f"{words[place][:MAX_WORD]} {' '.join(words)[:MAX_NAME]}"


def phrase_key_of(words: tuple[str, ...], place: int) -> str:
    """Return the key of the words from a place on. No key of a word begins with a space."""
    return f" {' '.join(words[place:])[:MAX_PHRASE]}"


def word_keys_of(words: tuple[str, ...]) -> list[str]:
    """Return the keys of the words after the first one, and of those that others follow."""
    name = " ".join(words)[:MAX_NAME]
    keys = [f"{word[:MAX_WORD]} {name}" for word in words[1:]]
    keys += [phrase_key_of(words, place) for place in range(1, len(keys))]
    return [*dict.fromkeys(keys)]


class NameKeys(NamedTuple):
    """What a search finds a name by: the key of the name, and those of its words but the first.

    ``words`` has all words of the name, if its key is too short for them.
    """

    name_key: str
    words: str = ""
    word_keys: Sequence[str] = ()

    @property
    def values(self) -> tuple[str, str]:
        return self[:2]


def keys_of(name: str) -> NameKeys:
    words = words_of(name)
    key = name_key_of(words)
    if len(words) == 1:
        return NameKeys(key)
    text = " ".join(words)
    return NameKeys(key, "" if key == text else text, word_keys_of(words))


async def keys_of_each(names: Iterable[str]) -> dict[str, NameKeys]:
    """Return the keys of many names.

    Those of a hundred long names take up to half a second, so others run in between.
    """
    slices, keys = TimeSlices(), dict[str, NameKeys]()
    for name in names:
        await slices.rest()
        keys[name] = keys_of(name)
    return keys


def position_at_start(name_key: str, item_id: int) -> MatchPosition:
    return MatchPosition(first_word(name_key), name_key, item_id)


def position_within(word_key: str, item_id: int) -> MatchPosition:
    word, _, name = word_key.partition(" ")
    return MatchPosition(word, name, item_id)


def first_word(key: str) -> str:
    return _END_OF_WORD.split(key)[0]


def _folded(text: str) -> str:
    return normalize("NFC", _unmarked(_unmarked(text).casefold().translate(_LETTERS)))


def _unmarked(text: str) -> str:
    """Return a text decomposed, without marks and without what is not seen."""
    return "".join(filter(_is_kept, normalize("NFKD", text)))


@lru_cache(_REMEMBERED)
def _is_kept(character: str) -> bool:
    mark = combining(character)
    return not (
        mark in _POINTS
        or mark in _ACCENTS
        or category(character) == "Cf"
        or ord(character) in _VARIATIONS
    )


def _divided(text: str) -> list[str]:
    return ["".join(run) for kind, run in groupby(text, _kind) if kind]


@lru_cache(_REMEMBERED)
def _kind(character: str) -> str:
    """Return whether a character is of a "word", a "symbol", or neither: what divides words."""
    general = category(character)
    if general[0] in "LNM":
        return "word"
    return "" if general[0] in "PZ" or general == "Cc" else "symbol"
