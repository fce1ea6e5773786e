"""Files of pets as shops have them: what a clerk sees of each, and what no file can do."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.errors import InvalidBody
from petstore.imports.reading import MAX_FILE, MAX_ROWS, decode_rows, read_table
from petstore.imports.tables import MAX_COLUMNS, MAX_ROW_TEXT, write_rows
from support.imported import read, seen_in
from support.workbooks import excel, open_document, relations, row, shared_strings

FILES = Path(__file__).with_name("files")
# Of each file: its encoding, rows, header, columns with their first values, words, and refusals.
SEEN = dict(
    section.split("\n", 1)
    for section in Path(__file__).with_name("seen.txt").read_text("utf-8")[2:].split("\n# ")
)
TOO_LARGE = "The file is too large once it is unpacked, or it is damaged."
UNUSUAL = "the file is not in a usual encoding."
DAMAGED = "This file cannot be read, or it is damaged."
EMPTY = "The file is empty."
QUOTE = "has a cell that does not end: close the quotation mark"


def test_every_file_is_in_the_table() -> None:
    assert sorted(SEEN) == sorted(path.name for path in FILES.iterdir())


@pytest.mark.parametrize("name", SEEN)
def test_a_clerk_sees_what_a_file_has(name: str) -> None:
    assert seen_in((FILES / name).read_bytes()) == SEEN[name].rstrip("\n")


SPACE = ["x" * 2**20] * 250
CELL = '<table:table-cell office:value-type="string"><text:p>Rex</text:p></table:table-cell>'
REPEATED = f'<table:table-row table:number-rows-repeated="9999999">{CELL}</table:table-row>'
SHARED = "".join(
    f"<row r='{line}'>" + "<c t='s'><v>0</v></c>" * 200 + "</row>" for line in range(1, 9999)
)
FAR_CELL = '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1048576"><v>1</v></c></row>'
ENTITY = '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "commas": (lambda: b"," * MAX_FILE, EMPTY),
    "a row of millions of cells": (lambda: b"a" + b"," * (MAX_FILE - 1), TOO_LARGE),
    "a million columns": (lambda: b",".join([b"1"] * 1_000_000), "Line 1 has 1,000,000 cells"),
    "one cell": (lambda: b"a" * MAX_FILE, QUOTE),
    "a quote without end": (lambda: b'a\n"' + b"\n" * (MAX_FILE - 3), f"Line 2 {QUOTE}"),
    "rows": (lambda: b"a\n" * (MAX_ROWS + 1), "The file has more than 20,000 rows"),
    "a text that unpacks": (lambda: excel("<row><c><v>", *SPACE, "</v></c></row>"), TOO_LARGE),
    "a remark that unpacks": (lambda: excel("<!--", *SPACE, "-->"), TOO_LARGE),
    "depth": (lambda: excel(*["<a>" * 1000] * 5000), EMPTY),
    "a cell far away": (lambda: excel(FAR_CELL), TOO_LARGE),
    "a shared text": (lambda: excel(SHARED, others=[shared_strings("y" * 32_000)]), TOO_LARGE),
    "columns of Excel": (lambda: excel(row(1, *"a" * (MAX_COLUMNS + 1))), "Line 1 has 257 cells"),
    "entities": (lambda: excel(row(1, "&a;"), before=ENTITY), DAMAGED),
    "repeated rows": (lambda: open_document(REPEATED), "The file has more than 20,000 rows"),
    "half a workbook": (lambda: (FILES / "14-pets.xlsx").read_bytes()[:5000], DAMAGED),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("petstore.imports.reading._SECONDS", 100)  # on a busy machine it is slow
    content, message = HOSTILE[name]
    with TemporaryFile() as file, TemporaryFile() as table:
        file.write(content())
        with pytest.raises(InvalidBody, match=re.escape(message)):
            read_table(file, table)


WESTERN = "Name;Art\nZoë;Katze\nJosé  Peña;Ñandú\nO’Malley´s «Rex» – 5°;Größe\nL·lop;Fœtus\n"  # noqa: RUF001 # as shops write them
SEPARATED = "name{0}categoryId\nBella{0}7\nTom{0}8\n"


@pytest.mark.parametrize(
    ("text", "codec", "expected"),
    [
        (WESTERN, "cp1252", "Windows-1252"),
        (WESTERN, "utf-8", "UTF-8"),
        (WESTERN, "utf-8-sig", "UTF-8"),
        (WESTERN, "utf-16", "UTF-16"),
        (WESTERN, "utf-16-le", "UTF-16"),
        (WESTERN, "utf-16-be", "UTF-16"),
        ("名前,種類\nポチ,犬\n", "utf-16-le", "UTF-16"),
        ("Name;Tier\nBär;Bär\nKätzchen;Hündin\n", "mac-roman", UNUSUAL),
        ("imię;gatunek\nŁatka;żółw\n", "cp1250", UNUSUAL),
        ("Κουτάβι;Γάτα\n", "cp1253", UNUSUAL),
        ("Имя;Вид\nЮлия;Йод\n", "koi8-r", UNUSUAL),
        ("שלום;חתול\n", "cp1255", UNUSUAL),
        ("名称,种类\n小花猫,猫\n", "gbk", UNUSUAL),
        ("이름,종류\n나비,고양이\n", "euc-kr", UNUSUAL),
        ("ポチ,犬\n", "shift-jis", UNUSUAL),
    ],
)
def test_an_encoding_is_told_or_the_file_is_refused(text: str, codec: str, expected: str) -> None:
    content = text.encode(codec)
    if expected is UNUSUAL:
        with pytest.raises(InvalidBody, match=UNUSUAL):
            read(content)
    else:
        head, rows = read(content)
        assert head.encoding == expected
        assert [row.cells for row in rows] == [re.split("[;,]", line) for line in text.splitlines()]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("first", ["", "sep={0}\n", '"sep={0}"\n'])
def test_separators_and_line_ends_are_found(end: str, separator: str, first: str) -> None:
    text = (first + SEPARATED).format(separator).replace("\n", end)
    _, rows = read(text.encode())
    start = 2 if first else 1
    assert [(row.line, *row.cells) for row in rows] == [
        (start, "name", "categoryId"),
        (start + 1, "Bella", "7"),
        (start + 2, "Tom", "8"),
    ]


MISPLACED = 'A quotation mark (") stands where no cell begins or ends.'
LONG = "The row has more than 65,536 characters."


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Rex", [(1, ["Rex"], "")]),
        ("\n\n a ,b\n,\n\n\xa0c\t,d\n", [(3, ["a", "b"], ""), (6, ["c", "d"], "")]),
        ('a,"b\nc"\nd, "e;f"\n', [(1, ["a", "b\nc"], ""), (3, ["d", "e;f"], "")]),
        ("name;price\nRex;1,5\n", [(1, ["name", "price"], ""), (2, ["Rex", "1,5"], "")]),
        ('a,b\n"24" long,c\nd,e\n', [(1, ["a", "b"], ""), (2, [], MISPLACED), (3, ["d", "e"], "")]),
        ("a" + "," * 300, [(1, ["a"] + [""] * (MAX_COLUMNS - 1), "")]),
        ("a," + "b" * MAX_ROW_TEXT, [(1, ["a", "b" * 100], LONG)]),
    ],
)  # fmt: skip
def test_rows_have_lines_and_cells(text: str, rows: list[tuple[int, list[str], str]]) -> None:
    assert [(row.line, row.cells, row.problem) for row in read(text.encode())[1]] == rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", EMPTY),
        (b"\xef\xbb\xbf \r\n;;\n", EMPTY),
        (excel(), EMPTY),
        (b"\x89PNG\r\n\x1a\n\0", "This is a document or a picture."),
        (b"%PDF-1.7\n", "This is a document or a picture."),
        (b"\x7fELF\0\0\1", DAMAGED),
        (b"\xff\xfea\0b", DAMAGED),
        (b"<!DOCTYPE html><table>", "This is a web page, whatever its name."),
        (b'[{"name": "Max"}]', "This is data for programs (JSON), not a table."),
        (b'a,b\n"c,d\ne,f\n', f"Line 2 {QUOTE}"),
        (b'a,b\n"c,d\ne,"f\n', f"Line 2 {QUOTE}"),
        (b"PK\x03\x04", DAMAGED),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "The workbook is protected with a password. Save a copy without one.",
        ),
    ],
)
def test_what_is_no_table_is_told(content: bytes, message: str) -> None:
    with pytest.raises(InvalidBody, match=re.escape(message)):
        read(content)


def test_cells_of_a_workbook_are_as_people_see_them() -> None:
    _, rows = read((FILES / "37-pets.xls").read_bytes())
    birth, arrival = "2024-05-01", "2024-06-01 08:30:00"
    assert rows[1].cells == ["Zoë", "Cat", "Available", birth, "3.5", "True", arrival]
    assert rows[2].line == 4


def test_macros_and_external_links_of_a_workbook_are_not_even_read() -> None:
    link = relations(("externalLinkPath", "file:///etc/passwd")).encode()
    others = [
        ("xl/vbaProject.bin", b"\xd0\xcf\x11\xe0"),
        ("xl/externalLinks/externalLink1.xml", b"<externalLink/>"),
        ("xl/externalLinks/_rels/externalLink1.xml.rels", link),
    ]
    formula = '<row r="2"><c r="A2" t="str"><f>[1]Pets!A1</f><v>Max</v></c></row>'
    _, rows = read(excel(row(1, "Name"), formula, others=others))
    assert [each.cells for each in rows] == [["Name"], ["Max"]]


PIECES = ["name", "Rex", "ë", "é", '"', *",;\t|\r\n7=\0🐶"]
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)
CONTENTS = (
    st.binary()
    | st.tuples(TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-16-le", "cp1252"])).map(
        lambda found: found[0].encode(found[1], "ignore")
    )
    | st.tuples(st.sampled_from([b"PK\x03\x04", b"\xff\xfe", b"<html>", b"[{"]), st.binary()).map(
        b"".join
    )
)
UNTOLD = re.compile(r"categoryId|category_id|byte|pars|decod|U\+|\ufffd|codec|None|Error")


@given(CONTENTS)
def test_any_file_gives_rows_within_bounds_or_a_sentence(content: bytes) -> None:
    written = BytesIO()
    problem = write_rows(content, written).problem
    if problem:
        assert re.fullmatch(r"[A-Z].*\.", problem)
        assert not UNTOLD.search(problem)
        return
    rows = [row for line in written.getvalue().splitlines() for row in decode_rows(line)]
    assert 0 < len(rows) <= MAX_ROWS
    assert all(len(row.cells) <= MAX_COLUMNS for row in rows)
    assert all(any(row.cells) or row.problem for row in rows)
    assert "\0" not in "".join(cell for row in rows for cell in row.cells)
    lines = [row.line for row in rows]
    assert lines == sorted(set(lines))
