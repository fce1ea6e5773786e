"""Pets as rows of the database."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from msgspec import UNSET

from petstore.databases.contract import Row, Statement, Value, placeholders
from petstore.domain.words import name_key_of, word_keys_of, words_of
from petstore.pets.model import NewPet, Pet
from petstore.time_slices import TimeSlices

VALUES = NewPet.__struct_fields__
"""The columns that a client gives, in the order of ``values_of``."""

COLUMNS = ", ".join(Pet.__struct_fields__)
"""The columns of ``pet_of``."""

# A statement of so many takes some milliseconds, in which nothing else runs.
_WORDS_AT_ONCE = 100


def pet_of(row: Row) -> Pet:
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)


def values_of(pet: NewPet | Pet) -> tuple[Value, ...]:
    return (pet.name, pet.category_id, None if pet.status is UNSET else pet.status)


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
    """Return what a search finds a name by."""
    words = words_of(name)
    key = name_key_of(words)
    if len(words) == 1:
        return NameKeys(key)
    text = " ".join(words)
    return NameKeys(key, "" if key == text else text, word_keys_of(words))


async def keys_of_each(names: Iterable[str]) -> dict[str, NameKeys]:
    """Return what a search finds each of these names by.

    Those of a hundred long names take up to half a second, so others run in between.
    """
    slices, keys = TimeSlices(), dict[str, NameKeys]()
    for name in names:
        await slices.rest()
        keys[name] = keys_of(name)
    return keys


def inserted_words(keys: Iterable[tuple[int, Sequence[str]]]) -> Iterator[Statement]:
    """Yield what inserts the keys of words, those of each id of an animal."""
    values: list[Value] = []
    for pet_id, word_keys in keys:
        for key in word_keys:
            values += (key, pet_id)
    for start in range(0, len(values), 2 * _WORDS_AT_ONCE):
        some = values[start : start + 2 * _WORDS_AT_ONCE]
        sql = _insert_words(len(some) // 2)
        yield Statement(sql, some, may_wait=True, name="insert_pet_words")


@cache
def _insert_words(rows: int) -> str:
    return f"INSERT INTO pet_words (word_key, pet_id) VALUES {placeholders(2, rows)}"  # noqa: S608
