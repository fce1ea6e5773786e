"""What the columns and words of a table mean: its header, its mapping, and the pet of each row."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from petstore.imports.reading import Row
from petstore.pets.model import NewPet, PetStatus

FIRST_ROWS = 200
"""How many rows ``find_layout`` looks at."""


class ColumnMapping(Struct, frozen=True, rename="camel"):
    """Which column, from 0, is which field; ``None`` for a field that has none.

    A column is ``id`` only if it has exactly that name, as in an export.
    """

    name: int | None = None
    category_id: int | None = None
    status: int | None = None
    id: int | None = None


class Column(Struct, frozen=True):
    """A column: its name, empty without a header, and its first three values that are not empty."""

    name: str
    values: list[str]


class Layout(Struct, frozen=True, rename="camel"):
    """How the rows of a table are understood. The names of columns are in line ``header_line``.

    Rows up to that line are no pets; without a header every row may be one.
    """

    header_line: int | None
    columns: list[Column]
    mapping: ColumnMapping


class Words(Struct, frozen=True, rename="camel"):
    """The statuses and categories that rows have, as first written, with the number of rows.

    Words that differ in case, marks or signs are one; their keys are ``word_key`` of them. The
    empty word stands for empty cells.
    """

    statuses: dict[str, int]
    categories: dict[str, int]


class Choices(Struct, frozen=True):
    """What words mean: by ``word_key``, a status (``None``: no status) or the id of a category.

    ``statuses`` come before ``KNOWN_STATUSES``; ``default_status`` is for rows without a status.
    ``categories`` has the registered ones by name and by number, and what was decided of others,
    also of the empty word.
    """

    default_status: PetStatus | None = None
    statuses: Mapping[str, PetStatus | None] = {}
    categories: Mapping[str, int] = {}


def word_key(word: str) -> str:
    """Return a key that is equal for words that differ only in case, spaces and signs."""
    raise NotImplementedError


def find_layout(
    rows: Sequence[Row], *, has_header: bool | None = None, mapping: ColumnMapping | None = None
) -> Layout:
    """Return how a table is understood whose first ``FIRST_ROWS`` rows are given.

    ``has_header`` and ``mapping`` are what somebody chose; the rest is found.
    """
    raise NotImplementedError


def rows_of(rows: Iterable[Row], layout: Layout) -> Iterable[Row]:
    """Return the rows behind the header."""
    raise NotImplementedError


def words_of(rows: Iterable[Row], layout: Layout) -> Words:
    """Return the words of the rows behind the header."""
    raise NotImplementedError


def status_of(word: str, choices: Choices) -> PetStatus | None | UnsetType:
    """Return what a status word means, ``UNSET`` if that has to be decided."""
    return UNSET


def id_of_row(row: Row, mapping: ColumnMapping) -> int | None:
    """Return the id in a row of an edited export; the caller refuses it if that pet is here."""
    raise NotImplementedError


def pet_of_row(row: Row, layout: Layout, choices: Choices) -> NewPet | list[str]:
    """Return the pet of a row, or every reason that it has none, as sentences for a clerk."""
    raise NotImplementedError
