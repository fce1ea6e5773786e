"""What the columns and words of a table mean: its header, its mapping, and the pet of each row."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from petstore.categories.model import CategoryCreate
from petstore.domain.decoding import convert, integer_in
from petstore.domain.names import name_key
from petstore.errors import InvalidBody
from petstore.imports.reading import Row
from petstore.pets.model import STATUSES, NewPet, PetStatus

MAX_NAME, MAX_CATEGORY_NAME = 255, 100

Meaning: TypeAlias = Literal["available", "pending", "sold", "none"]

# What a column is called, the surest names first; ``word_key`` is how they are compared.
COLUMN_NAMES: Mapping[str, Sequence[str]] = {
    "name": (
        "name", "pet name", "animal name", "pet", "animal", "title",
        "Tiername", "Tier", "Titel",
        "nombre", "nombre del animal", "mascota", "título", "nome", "nom", "titre", "naam",
        "navn", "hundenes navn", "imię", "кличка", "имя", "名前",
    ),
    "category_id": (
        "category id", "category", "category name", "categories", "species", "animal type",
        "pet type", "product category", "type", "kind",
        "Kategorie", "Tierart", "Art", "categoría", "especie", "tipo", "specie", "catégorie",
        "espèce", "soort", "kategori", "dyreart", "kategoria",
        "gatunek", "категория", "вид", "種類",
        "breed", "Rasse", "raza", "raça", "razza", "race", "ras", "hunderace", "rasa", "порода",
    ),
    "status": (
        "status", "pet status", "animal status", "adoption status", "availability", "state",
        "Zustand", "Verfügbarkeit", "estado", "disponibilidad", "stato", "situação", "statut",
        "état", "stan", "статус", "状態",
    ),
}  # fmt: skip

STATUS_WORDS: Mapping[PetStatus, Sequence[str]] = {
    "available": (
        "available", "available for adoption", "for adoption", "adoptable", "for sale",
        "verfügbar", "zu vermitteln", "disponible", "en adopción", "disponibile", "disponível",
        "beschikbaar", "ledig", "dostępny", "dostępna", "доступен", "доступна",
    ),
    "pending": (
        "pending", "adoption pending", "on hold", "hold", "reserved",
        "reserviert", "reservado", "reservada", "pendiente", "réservé", "réservée", "riservato",
        "gereserveerd", "reserveret", "zarezerwowany", "zarezerwowana",
    ),
    "sold": (
        "sold", "adopted", "adoption",
        "verkauft", "vermittelt", "vendido", "vendida", "adoptado", "adoptada", "vendu", "vendue",
        "adopté", "adoptée", "venduto", "venduta", "adottato", "adottata", "verkocht",
        "geadopteerd", "solgt", "sprzedany", "sprzedana", "adoptowany", "adoptowana",
    ),
}  # fmt: skip

TOTAL_WORDS = (
    "total", "totals", "grand total", "subtotal", "sum", "Summe", "Gesamt", "total general",
    "totale", "totaal", "i alt", "suma", "razem", "итого", "всего", "合計",
)  # fmt: skip
"""What a row at the end is called that is no pet."""

EMPTY_WORDS = ("null", "n/a", "#n/a", "nan", "#name?", "#ref!", "#value!")
"""What programs write into an empty cell, or one whose formula failed."""

_HEADER_ROWS, _LONGEST_COLUMN = 20, 50
_LONGEST = 1024  # more than any cell that is right has, so that no row takes long
_SHOWN_VALUES, _SHOWN = 3, 100
# These are the status whatever their cells say; the later names have other meanings as well.
_SURE_STATUS_NAMES = 4
_is_number = re.compile(r"[-+]?\d[\d.,:/\s-]{,40}%?").fullmatch
_REMARK = re.compile(r"\([^()]*\)")
_LOST = "\N{REPLACEMENT CHARACTER}"
# What a file for spreadsheets has before a name that is like a formula.
_FORMULA_GUARD = re.compile(r"(^|[,;])'(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def _place(what: str) -> Meta:
    return Meta(ge=0, le=2**31 - 1, description=f"The place in `columns`, from 0, of {what}.")


_Name = Annotated[int, _place("the name of a pet")]
_Category = Annotated[int, _place("its category, a name or a number")]
_Status = Annotated[int, _place("its status")]
_Id = Annotated[int, _place("its id in this store, in an edited export")]


class ImportMapping(Struct, frozen=True, rename="camel"):
    """Which column has which field. A field without a column is absent.

    A column is ``id`` only if it has exactly that name, as in an export.
    """

    name: _Name | UnsetType = UNSET
    category_id: _Category | UnsetType = UNSET
    status: _Status | UnsetType = UNSET
    id: _Id | UnsetType = UNSET


class ImportMappingPatch(Struct, frozen=True, rename="camel"):
    """Changes to a mapping; null leaves a field without a column."""

    name: _Name | UnsetType | None = UNSET
    category_id: _Category | UnsetType | None = UNSET
    status: _Status | UnsetType | None = UNSET
    id: _Id | UnsetType | None = UNSET


class ImportColumn(Struct, frozen=True):
    """A column of a file."""

    name: Annotated[str, Meta(description="Its name, empty if there is no header.")]
    values: Annotated[list[str], Meta(description="Its first three values that are not empty.")]


class ImportSettings(Struct, frozen=True, omit_defaults=True):
    """How the rows of a file are understood.

    The names of the columns are in line ``header_line``, and rows up to it are no pets. In the rows
    from line ``last_from`` on totals may stand (see ``TableHead``).
    """

    encoding: str
    notes: list[str]
    last_from: int
    columns: list[ImportColumn] = []
    mapping: ImportMapping = ImportMapping()
    header_line: int | UnsetType = UNSET
    default_status: PetStatus | UnsetType = UNSET
    default_category_id: int | UnsetType = UNSET
    unknown_categories: Literal["refuse", "create"] = "refuse"
    values: dict[str, Meaning] = {}
    categories: dict[str, int] = {}

    def category_ids(self, known: Mapping[str, int]) -> dict[str, int]:
        return {**known, **{name_key(word): number for word, number in self.categories.items()}}

    def choices(self, categories: Mapping[str, int]) -> "Choices":
        if self.default_category_id is not UNSET:
            categories = {**categories, "": self.default_category_id}
        statuses = {word_key(word): meaning for word, meaning in self.values.items()}
        return Choices(self.default_status, statuses, categories)


class Cells(NamedTuple):
    name: str
    category: str
    status: str
    id: int | None
    fault: str

    @property
    def may_be_pet(self) -> bool:
        return bool(self.name) and not self.fault


class Choices(NamedTuple):
    """What words mean: ``statuses`` by ``word_key``, ``categories`` by ``name_key``."""

    default_status: PetStatus | UnsetType = UNSET
    statuses: Mapping[str, Meaning] = {}
    categories: Mapping[str, int] = {}


@lru_cache(1024)
def word_key(word: str) -> str:
    """Return a key without case, marks, spaces, signs and what stands in brackets."""
    plain = normalize("NFKD", _REMARK.sub("", word[:_SHOWN]).casefold())
    return "".join(filter(str.isalnum, plain)) or word[:_SHOWN].strip().casefold()


_COLUMN_KEYS = {field: [*map(word_key, names)] for field, names in COLUMN_NAMES.items()}
_STATUS_KEYS = {word_key(word): status for status in STATUSES for word in STATUS_WORDS[status]}
_TOTAL_KEYS = frozenset(map(word_key, TOTAL_WORDS))
_EMPTY_KEYS = frozenset(EMPTY_WORDS)


def understood(
    settings: ImportSettings,
    rows: Sequence[Row],
    *,
    has_header: bool | UnsetType = UNSET,
    mapping: ImportMapping | UnsetType = UNSET,
) -> ImportSettings:
    rows = [row for row in rows if not row.problem]
    header = None if has_header is False else _find_header(rows)
    if has_header and header is None and rows:
        header = rows[0]
    names = header.cells if header else []
    below = [row.cells for row in rows if header is None or row.line > header.line]
    width = len(names) or max(map(len, below), default=0)
    cells = [
        [row[place] for row in below if place < len(row) and row[place] and not any(row[width:])]
        for place in range(width)
    ]
    columns = [
        ImportColumn(_line(names[place]) if names else "", [*map(_line, column[:_SHOWN_VALUES])])
        for place, column in enumerate(cells)
    ]
    found = _find_mapping(names, cells) if mapping is UNSET else mapping
    line = header.line if header else UNSET
    return replace(settings, header_line=line, columns=columns, mapping=found)


def meaning_of(key: str, choices: Choices) -> Meaning | UnsetType:
    if not key:
        return choices.default_status or "none"
    return choices.statuses[key] if key in choices.statuses else _STATUS_KEYS.get(key, UNSET)


def can_be_category(word: str) -> bool:
    """Return whether a word that is not in the store may be the name of a new category."""
    if integer_in(word) is not None or _LOST in word:
        return False
    try:
        convert({"name": word}, CategoryCreate, InvalidBody)
    except InvalidBody:
        return False
    return True


def cells_of(rows: Iterable[Row], settings: ImportSettings) -> list[Cells]:
    mapping, found = settings.mapping, []
    places = (mapping.name, mapping.category_id, mapping.status, mapping.id)
    for row in rows:
        width = len(row.cells)
        name, category, status, row_id = (
            _cell(row.cells[place]) if place is not UNSET and place < width else ""
            for place in places
        )
        fault = _fault(row, name, settings)
        found.append(Cells(name, category, status, integer_in(row_id), fault))
    return found


def rows_below(rows: Iterable[Row], settings: ImportSettings) -> list[Row]:
    return [row for row in rows if row.line > (settings.header_line or 0)]


def pet_of(cells: Cells, choices: Choices) -> NewPet | list[str]:
    """Return the pet of a row, or every reason that it has none, as sentences for a clerk."""
    if cells.fault:
        return [cells.fault]
    category, word = cells.category, cells.status
    category_id = choices.categories.get(name_key(category))
    status = meaning_of(word_key(word), choices)
    name = _FORMULA_GUARD.sub(r"\1", cells.name)
    reasons = [_text_fault("name", name, MAX_NAME)]
    if category_id is None:
        unknown = f"There is no category “{category}”."
        reasons.append(_text_fault("category", category, MAX_CATEGORY_NAME) or unknown)
    if status is UNSET:
        reasons.append(f"The meaning of the status “{_line(word)}” is not decided.")
    if category_id is None or any(reasons):
        return [*filter(None, reasons)]
    return NewPet(name, category_id, UNSET if status == "none" else status)


def _text_fault(field: str, text: str, longest: int) -> str:
    if not text:
        return f"The row has no {field}."
    if _LOST in text:
        return f"A letter of the {field} was lost in the file. Type the {field} again."
    return f"The {field} has more than {longest} characters." if len(text) > longest else ""


def _cell(text: str) -> str:
    return "" if text.lower() in _EMPTY_KEYS else " ".join(text[:_LONGEST].splitlines())


def _fault(row: Row, name: str, settings: ImportSettings) -> str:
    width = len(settings.columns)
    if row.problem or settings.mapping.name is UNSET:
        return row.problem or "No column is chosen for the names."
    if any(row.cells[width:]):
        return (
            f"The row has {len(row.cells)} cells, but there are {width} columns. If a name has a"
            " comma or a semicolon, put it in quotation marks."
        )
    if settings.header_line and row.cells[:width] == [each.name for each in settings.columns]:
        return "The row repeats the names of the columns."
    if row.line >= settings.last_from:
        filled = sum(map(bool, row.cells))
        is_sum = word_key(name) in _TOTAL_KEYS and filled < width
        if is_sum or _is_number(name):
            return "This looks like a total, not like a pet."
        if filled == 1 < width - 1:
            return "This looks like a remark at the end, not like a pet."
    return ""


def _line(text: str) -> str:
    return " ".join(text[:_SHOWN].splitlines())


def _find_header(rows: Sequence[Row]) -> Row | None:
    first = rows[:_HEADER_ROWS]
    best = max(first, key=_understood, default=None)
    if best is None or _understood(best) > 1:
        return best
    # A title and a pet may have one such word as well, but they have fewer cells, or others.
    filled = [word_key(cell) for cell in best.cells if cell]
    is_full = len(filled) * 2 > max(sum(map(bool, row.cells)) for row in first)
    is_text = not any(_is_number(key) or key in _STATUS_KEYS for key in filled)
    is_header = _understood(best) and is_full and is_text and len({*filled}) == len(filled)
    return best if is_header else None


def _understood(row: Row) -> int:
    keys = {word_key(cell) for cell in row.cells if len(cell) < _LONGEST_COLUMN}
    return sum(not keys.isdisjoint(names) for names in _COLUMN_KEYS.values()) + ("id" in keys)


def _find_mapping(names: Sequence[str], cells: Sequence[Sequence[str]]) -> ImportMapping:
    keys = [word_key(name) for name in names]
    places = {"id": names.index("id")} if names.count("id") == 1 else {}
    for field, understood in _COLUMN_KEYS.items():
        for rank, key in enumerate(understood):
            is_sure = field != "status" or rank < _SURE_STATUS_NAMES
            if key in keys and (is_sure or _are_statuses(cells[keys.index(key)])):
                if keys.count(key) == 1:
                    places[field] = keys.index(key)
                break
    return ImportMapping(**places)


def _are_statuses(cells: Sequence[str]) -> bool:
    return sum(word_key(cell) in _STATUS_KEYS for cell in cells) * 2 > len(cells)
