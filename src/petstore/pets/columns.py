"""Which columns of a table are the fields of a pet: by their names, and names that are near."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple
from unicodedata import normalize

from msgspec.structs import fields

from petstore.pets.model import NewPet

_LONGEST = 100
# Near names are looked for among few and short ones: a file may have any number of columns.
_NEAR_COLUMNS, _LONGEST_NEAR = 100, 14
_LONG_WORD = 7
# What the column of a field is called beside its own name, the surest names first. A later group
# counts only without a column of an earlier one.
_NAMES: Mapping[str, Sequence[Sequence[str]]] = {
    "name": (("animal", "animalname", "pet", "petname", "title"),),
    "categoryId": (("category", "categoryname"), ("kind", "species", "type")),
    "status": (("state",),),
}
FIELDS = NewPet.__struct_encode_fields__
"""The fields of a pet that a table has."""

OPTIONAL = frozenset(field.encode_name for field in fields(NewPet) if not field.required)
"""The fields that a table may lack."""

# The file of refused rows has these.
_UNNAMED = frozenset({"", "line", "reason"})


class Columns(NamedTuple):
    """The columns of a table, as its header names them.

    ``fields`` has for each the field of a pet, empty if it is not used. ``unsure`` has the fields
    that no column is surely; then no field is taken from the table.
    """

    names: Sequence[str]
    fields: Sequence[str]
    unsure: Sequence[str] = ()

    @property
    def unused(self) -> list[str]:
        """The names of the columns that are not used."""
        return [
            name
            for name, field in zip(self.names, self.fields, strict=True)
            if not field and _plain(name) not in _UNNAMED
        ]

    @property
    def header(self) -> list[str]:
        """The header that a file of the same columns has, so that they are sure."""
        pairs = zip(self.names, self.fields, strict=True)
        return [field or name for name, field in pairs]

    def place(self, field: str) -> int | None:
        """Return the place of the column of a field, the likely one if it is not sure."""
        if field in self.fields:
            return self.fields.index(field)
        found, _ = _candidates(field, self.names)
        return found[0] if found and not any(self.fields) else None


def match_columns(header: Sequence[str], chosen: Mapping[str, int | None] | None = None) -> Columns:
    """Return which columns are the fields of a pet, by their names in a ``header``.

    Case, spaces, signs and marks on letters do not matter. A name that is merely near leaves a
    field unsure, and so do two of the same name. ``chosen`` has the places of fields that somebody
    chose, ``None`` for a field that is none of the columns.
    """
    places, unsure = dict(chosen or {}), list[str]()
    for field in [field for field in FIELDS if field not in places]:
        found, is_sure = _candidates(field, header)
        if is_sure and found[0] not in places.values():
            places[field] = found[0]
        elif found or field not in OPTIONAL:
            unsure.append(field)
    by_place = {} if unsure else {place: field for field, place in places.items()}
    return Columns(header, [by_place.get(place, "") for place in range(len(header))], unsure)


def _candidates(field: str, header: Sequence[str]) -> tuple[list[int], bool]:
    """Return the places of the columns that a field may be, and whether it is surely the first."""
    if header.count(field) == 1:
        return [header.index(field)], True
    names = [*map(_plain, header)]
    for group in _names(field):
        if found := [place for place, name in enumerate(names) if name in group]:
            return found, len(found) == 1
    near = _near_names(field)
    return [
        place
        for place, name in enumerate(names[:_NEAR_COLUMNS])
        if 1 < len(name) <= _LONGEST_NEAR and not near.isdisjoint(_shortened(name))
    ], False


def _names(field: str) -> Sequence[Sequence[str]]:
    return ((_plain(field),), *_NAMES.get(field, ()))


def _plain(name: str) -> str:
    """Return the letters and digits of a name, without their case and marks."""
    return "".join(filter(str.isalnum, normalize("NFKD", name[:_LONGEST].casefold())))


@cache
def _near_names(field: str) -> frozenset[str]:
    words = (_shortened(word) for group in _names(field) for word in group)
    return frozenset(chain.from_iterable(words))


def _shortened(word: str) -> set[str]:
    """Return a word without up to one of its letters, and without up to two if it is long.

    Two words that are near have one of these in common, wherever a letter was left out, added,
    exchanged or misplaced.
    """
    words = {word}
    for _ in range(2 if len(word) >= _LONG_WORD else 1):
        words |= {each[:place] + each[place + 1 :] for each in words for place in range(len(each))}
    return words
