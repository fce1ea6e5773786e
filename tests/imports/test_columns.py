"""What the columns and words of a table mean; the files of test_reading.py show the usual cases."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from petstore.imports.columns import (
    COLUMN_NAMES,
    EMPTY_WORDS,
    STATUS_WORDS,
    TOTAL_WORDS,
    Choices,
    ImportColumn,
    ImportMapping,
    ImportSettings,
    Meaning,
    cells_of,
    pet_of,
    word_key,
)
from petstore.imports.reading import Row
from petstore.pets.model import NewPet
from support.imported import understood

PAGE = Path(__file__).parents[2] / "docs" / "importing.md"
COLUMNS = [ImportColumn(name, []) for name in ("name", "kind", "status", "id")]
SETTINGS = ImportSettings("UTF-8", [], 100, COLUMNS, ImportMapping(0, 1, 2, 3), 1)


@pytest.mark.parametrize(
    ("header", "mapping"),
    [
        ("name,categoryId,status,id", ImportMapping(0, 1, 2, 3)),
        ("STATUS, category_id ,Pet-Name,ID", ImportMapping(2, 1, 0)),
        ("Weight (kg),Name (as called),Espèce", ImportMapping(1, 2)),
        ("species,type,breed,title,animal", ImportMapping(4, 0)),
        ("Nmae,Speices,Stauts,ident", ImportMapping()),  # nothing is guessed
        ("inv_name,owner name,animal id", ImportMapping()),
        ("name,Name,species,status,Status", ImportMapping(category_id=2)),  # two of one name
    ],
)
def test_columns_are_understood_by_their_names(header: str, mapping: ImportMapping) -> None:
    settings, _ = understood(f"{header}\na,b,c,d,e\n", has_header=True)
    assert settings.mapping == mapping


@pytest.mark.parametrize(
    ("text", "chosen", "line"),
    [
        ("name,type\nRex,Dog\n", None, 1),
        ("name,type\nRex,Dog\n", False, None),
        ("Rex,Dog\nMia,Cat\n", None, None),
        ("Rex,Dog\nMia,Cat\n", True, 1),
        ("Rex,sold\nMia,sold\n", None, None),
        ("name\nRex\n", None, 1),
    ],
)
def test_a_header_is_found_or_chosen(text: str, *, chosen: bool | None, line: int | None) -> None:
    settings, _ = understood(text, has_header=UNSET if chosen is None else chosen)
    assert (settings.header_line or None) == line
    assert all(bool(column.name) == bool(line) for column in settings.columns)


def result(row: Row, choices: Choices) -> NewPet | list[str]:
    (cells,) = cells_of([row], SETTINGS)
    return pet_of(cells, choices)


NO_NAME, NO_CATEGORY = "The row has no name.", "The row has no category."
QUOTE_IT = "If a name has a comma or a semicolon, put it in quotation marks."
TOTAL = "This looks like a total, not like a pet."


@pytest.mark.parametrize(
    ("row", "reasons"),
    [
        (Row(2, ["", "", ""]), [NO_NAME, NO_CATEGORY]),
        (Row(2, ["n/a", "NULL", "#N/A"]), [NO_NAME, NO_CATEGORY]),
        (Row(2, ["a" * 256, "Bird", "reservation"]), [
            "The name has more than 255 characters.",
            "There is no category “Bird”.",
            "The meaning of the status “reservation” is not decided.",
        ]),
        (Row(2, ["Caf\ufffd", "\ufffd"]), [
            "A letter of the name was lost in the file. Type the name again.",
            "A letter of the category was lost in the file. Type the category again.",
        ]),
        (Row(2, ["Rex", "c" * 101]), ["The category has more than 100 characters."]),
        (Row(2, ["name", "kind", "status", "id"]), ["The row repeats the names of the columns."]),
        (Row(2, [], "It is broken."), ["It is broken."]),
        (Row(100, ["12", "dog"]), [TOTAL]),
        (Row(100, ["Grand total", "", "12"]), [TOTAL]),
        (Row(100, ["Page 1 of 1"]), ["This looks like a remark at the end, not like a pet."]),
        (Row(2, ["Rex", "dog", "", "", "x"]), [
            f"The row has 5 cells, but there are 4 columns. {QUOTE_IT}",
        ]),
    ],
)  # fmt: skip
def test_a_row_says_every_reason_that_it_is_no_pet(row: Row, reasons: list[str]) -> None:
    assert result(row, Choices(categories={"dog": 1})) == reasons


@pytest.mark.parametrize(
    ("row", "pet"),
    [
        (Row(2, ["Rex", "Dog"]), NewPet("Rex", 1, "available")),
        (Row(2, ["Rex\nthe old", "DOG", "Sold!"]), NewPet("Rex the old", 1, "sold")),
        (Row(2, ["007", "7", "lost"]), NewPet("007", 7)),
        (Row(2, ["=SUM(A1)", "", "On hold"]), NewPet("=SUM(A1)", 2, "sold")),
        (Row(2, ["'=SUM(A1);'-1", "dog"]), NewPet("=SUM(A1);-1", 1, "available")),
        (Row(100, ["Total", "dog", "sold", "7"]), NewPet("Total", 1, "sold")),
        (Row(2, ["Rex", "dog", "", "", ""]), NewPet("Rex", 1, "available")),
    ],
)
def test_a_row_is_a_pet_by_the_choices(row: Row, pet: NewPet) -> None:
    decided: dict[str, Meaning] = {"lost": "none", "onhold": "sold"}
    assert result(row, Choices("available", decided, {"dog": 1, "7": 7, "": 2})) == pet


def test_no_word_means_two_things() -> None:
    for lists in (COLUMN_NAMES, STATUS_WORDS):
        keys = [word_key(word) for words in lists.values() for word in words]
        assert len(keys) == len(set(keys))


def test_the_page_lists_every_word_that_is_understood() -> None:
    page = PAGE.read_text("utf-8")
    for words in [*COLUMN_NAMES.values(), *STATUS_WORDS.values(), TOTAL_WORDS, EMPTY_WORDS]:
        assert ", ".join(f"`{word}`" for word in words) in " ".join(page.split())


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(2, 200))
def test_any_row_is_a_pet_or_gives_sentences(cells: list[str], line: int) -> None:
    row = Row(line, [cell.strip().replace("\0", "") for cell in cells])
    found = result(row, Choices(categories={"dog": 1, "": 1}))
    if isinstance(found, NewPet):
        assert found.name.strip()
        assert len(found.name) <= 255
    else:
        assert found
        assert all(re.fullmatch(r"(?s)[A-Z].*\.", reason) for reason in found)
