"""Search pets by the words of their names, along the indexes of their keys.

The service writes the keys with the name (``petstore.domain.words``). ``name_key`` has the whole
name and so its first word; the other words are rows of ``pet_words``.
"""

import re
from typing import NamedTuple

from msgspec import UNSET

from petstore.databases.contract import Reader, Row, Statement, Value
from petstore.databases.pages import (
    SHORT,
    Matches,
    lateral_join,
    limited_subquery,
    opaque_parameter,
)
from petstore.domain.names import MAX_SEARCH_KEY, end_of_prefix
from petstore.domain.words import (
    MAX_WORD,
    MatchPosition,
    SearchText,
    first_word,
    name_key_of,
    phrase_key_of,
    position_at_start,
    position_within,
    word_key_of,
    words_of,
)
from petstore.pets.model import PETS, Pet, PetFilter
from petstore.pets.store import list_pets
from petstore.time_slices import TimeSlices

MAX_SCANNED = 2_000
"""The most pets that one page of a search looks at."""

# The text of the words of the name.
_TEXT = "CASE words WHEN '' THEN name_key ELSE words END"
_BY_NAME = f"SELECT {PETS.columns}, name_key, {_TEXT}, 0 FROM pets"  # noqa: S608 - only names
_BY_WORD = (
    f"SELECT p.{', p.'.join(Pet.__struct_fields__)}, word_key, {_TEXT}, 1"  # noqa: S608
    f" FROM pet_words {lateral_join('JOIN', 'pets', 'p', 'id', 'pet_id')}"
)
# The columns of a pet in a row; then come its key, text, and whether that is the key of a word.
_PET = len(Pet.__struct_fields__)
_CHUNK = 200
_CONTROL = re.compile(r"[\0-\x1f]")
_MAX_IDS = 100


class _Range(NamedTuple):
    """A part of an index: the keys that begin with a text, after a key and an id."""

    prefix: str
    after: tuple[str, int]
    is_of_words: bool = False


class _NameSearch:
    """What a search asks for, and where the pets are that it may find."""

    def __init__(self, text: str) -> None:
        self._text = SearchText(words_of(text))
        self._prefix = name_key_of(self._text.words)
        self._has_one_word = len(self._text.words) == 1
        self._word_prefix = (
            self._prefix[:MAX_WORD] if self._has_one_word else phrase_key_of(self._text.words, 0)
        )

    def ranges(self, after: MatchPosition | None) -> list[_Range]:
        """Return the parts of indexes with all that the search may find after a position."""
        of_names, of_words = _after_names(after), _after_words(after)
        if not self._has_one_word:
            key, pet_id = of_names
            of_words = (f" {key}", pet_id)
        names = _Range(self._prefix, max((self._prefix, 0), of_names))
        if self._has_one_word and self._word_prefix.startswith(" "):
            return [names]  # a text of white space: there the keys of several words are
        start = max((self._word_prefix, 0), of_words)
        return [names, _Range(self._word_prefix, start, is_of_words=True)]

    def position_of(self, row: Row) -> MatchPosition:
        pet_id, (key, _, is_of_words) = row[0], row[_PET:]
        if is_of_words and self._has_one_word:
            return position_within(key, pet_id)
        return position_at_start(key[1:] if is_of_words else key, pet_id)

    def order(self, row: Row) -> tuple[MatchPosition, int]:
        """Return what sorts rows. Of two in one position, that of the first word is found."""
        return self.position_of(row), row[-1]

    def finds(self, pet: Pet, row: Row) -> bool:
        """Return whether the search finds the pet of a row, and finds it there."""
        key, text, is_of_words = row[_PET:]
        words = _words_in(text, pet.name)
        place = self._text.place_in(words)
        if not place or not is_of_words:
            return place == 0 and not is_of_words
        return bool(key == self._key_of(words, place))

    def position_in(self, name: str, pet_id: int) -> MatchPosition | None:
        """Return the position of a pet with a name, ``None`` if the search does not find it."""
        words = words_of(name)
        place = self._text.place_in(words)
        if not place:
            return None if place is None else position_at_start(name_key_of(words), pet_id)
        key = self._key_of(words, place)
        if self._has_one_word:
            return position_within(key, pet_id)
        return position_at_start(key[1:], pet_id)

    def _key_of(self, words: tuple[str, ...], place: int) -> str:
        return word_key_of(words, place) if self._has_one_word else phrase_key_of(words, place)


def _words_in(text: str, name: str) -> tuple[str, ...]:
    """Return the words of a name from their text: to divide a name anew takes far longer.

    The text may lack the end of a name that is one long word, and a name that is all control
    characters may be a word with spaces.
    """
    is_whole = " " in text or len(text) < MAX_SEARCH_KEY
    return tuple(text.split(" ")) if is_whole and not _CONTROL.search(text) else words_of(name)


def _after_names(after: MatchPosition | None) -> tuple[str, int]:
    """Return the key and the id after which the keys of names are after a position."""
    if after is None:
        return ("", 0)
    word, name, pet_id = after
    if first_word(name) == word:
        return (name, pet_id)
    # All keys with this word are before the name, or all of them are after it.
    return (word, 0) if name < word else (f"{word}!", 0)


def _after_words(after: MatchPosition | None) -> tuple[str, int]:
    """Return the key and the id after which the keys of words are after a position."""
    return ("", 0) if after is None else (f"{after.word} {after.name}", after.id)


async def search_pets(
    store: Reader, text: str, wanted: PetFilter, after: MatchPosition | None, limit: int
) -> Matches[Pet]:
    """Return the first ``limit`` pets behind ``after`` with a word that begins with ``text``.

    Neither case nor marks on letters matter. A text of several words finds names with these words
    one after the other. One page looks at ``MAX_SCANNED`` pets at most. So with filters it may
    have fewer than ``limit``, even none, while there is a next one.
    """
    search = _NameSearch(text)
    if wanted.ids is not UNSET:
        return await _search_ids(store, search, wanted, after, limit)
    # One more than the page holds shows whether there is a next one.
    size = limit + 1 if wanted == PetFilter() else _CHUNK
    found: list[Pet] = []
    scanned, slices = 0, TimeSlices()
    await slices.begin()
    while True:
        ranges = search.ranges(after)
        rows = await store.read(_select_ranges(ranges, size))
        # The first ones of each range have the first ones of all.
        for row in sorted(rows, key=search.order)[:size]:
            pet = PETS.read(row[:_PET])
            if wanted.admits(pet) and search.finds(pet, row):
                if len(found) == limit:
                    return Matches(found, after)
                found.append(pet)
            after = search.position_of(row)
            await slices.rest()
        scanned += size
        if len(rows) < size:
            return Matches(found, None)
        if scanned >= MAX_SCANNED:
            return Matches(found, after)
        size = _CHUNK  # the pets were found by other words of theirs, and more may have been


async def _search_ids(
    store: Reader, search: _NameSearch, wanted: PetFilter, after: MatchPosition | None, limit: int
) -> Matches[Pet]:
    """Search the pets with the wanted ids: they are read at once, and sorted here."""
    pets = (await list_pets(store, wanted, None, _MAX_IDS)).items
    by_position, slices = {}, TimeSlices()
    for pet in pets:
        by_position[search.position_in(pet.name, pet.id)] = pet
        await slices.rest()
    positions = sorted(
        position
        for position in by_position
        if position is not None and (after is None or position > after)
    )
    next_after = positions[limit - 1] if len(positions) > limit else None
    return Matches([by_position[position] for position in positions[:limit]], next_after)


def _select_ranges(ranges: list[_Range], limit: int) -> Statement:
    """Return the SELECT of the first pets of each range: each row has its key near the end."""
    selects = []
    parameters: list[Value] = [limit]
    for prefix, after, is_of_words in ranges:
        number = len(parameters) + 1
        end = end_of_prefix(prefix)
        parameters += (*after, end) if end else after
        key, pet_id = ("word_key", "pet_id") if is_of_words else ("name_key", "id")
        # Without a collation, SQLite would look up the key alone, and pass over the ids.
        conditions = (
            f"/*sqlite*/ ({key}, {pet_id}) > (?{number}, ?{number + 1} COLLATE BINARY) /*end*/"
            f" /*pg ({key}, {pet_id}) > ({opaque_parameter(number, str)}, ?{number + 1}) */"
        )
        if end:
            last = number + 2
            end_pg = opaque_parameter(last, str)
            conditions += f" AND {key} < /*sqlite*/ ?{last} /*end*/ /*pg {end_pg} */"
        select = _BY_WORD if is_of_words else _BY_NAME
        sql = f"{select} WHERE {conditions} ORDER BY {key}, {pet_id}"
        selects.append(f"{limited_subquery(sql) if limit <= SHORT + 1 else sql} LIMIT ?1")
    every = " UNION ALL ".join(f"SELECT * FROM ({select}) AS found" for select in selects)  # noqa: S608
    return Statement(every, parameters, name="search_pets")
