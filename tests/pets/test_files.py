"""Files of animals: which are read, and which of their rows are refused, and why."""

from hashlib import sha256
from io import BytesIO

import pytest

from petstore.errors import InvalidBody
from petstore.pets.files import FileFormat, FileLimits, FileRow, ImportFile, open_import_file
from petstore.pets.model import NewPet

HEADER = b"name,categoryId,status\n"
NAME = "expected 1 to 255 characters, not only spaces"
INTEGER = "expected a whole number of up to 18 digits"
STATUS = "expected one of 'available', 'pending', 'sold'"


def opened(content: bytes, file_format: FileFormat = "csv") -> ImportFile:
    return open_import_file(BytesIO(content), file_format)


def read(
    content: bytes, file_format: FileFormat = "csv", limits: FileLimits | None = None
) -> list[FileRow]:
    """Return the rows that are not blank."""
    file = open_import_file(
        BytesIO(content), file_format, limits or FileLimits(1_000_000, 131_072, 1_000_000)
    )
    return [row for row in file.rows if row is not None]


def names(found: list[FileRow]) -> list[str]:
    return [row.pet.name for row in found if row.pet is not None]


def refused(found: list[FileRow]) -> list[FileRow]:
    return [row for row in found if row.pet is None]


EMPTY = "expected a CSV file; this one is empty"
NOT_TEXT = "expected a CSV file in UTF-8, which is text; save the spreadsheet as “CSV UTF-8”"
NO_COLUMNS = "line 1: expected the names of the columns, name and categoryId among them,"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", EMPTY),
        (b" \r\n\n", EMPTY),
        (b"PK\x03\x04\x14\0\x06\0", NOT_TEXT),
        (b"\xef\xbb\xbf", EMPTY),
        (b"name\nBella\n", NO_COLUMNS),
        (b"\n;;\n\nname\n", NO_COLUMNS.replace("1", "4")),
        (b'name,"categoryId\nBella,1\n', NO_COLUMNS),
        (b'"name"x,categoryId\nBella,1\n', NO_COLUMNS),
        (b"name,categoryId\rBella,1\r", NO_COLUMNS),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", NO_COLUMNS),
        (b"{}\n", NO_COLUMNS),
    ],
)
def test_a_file_without_a_header_of_columns_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InvalidBody) as error:
        opened(content)
    assert error.value.message.startswith(message)


def test_a_category_column_replaces_the_category_id_column() -> None:
    assert [row.pet for row in read(b"category,name\n7,Bella\n")] == [NewPet("Bella", 7)]
    both = read(b"category,name,categoryId\nDogs,Rex,8\n")
    assert [row.pet for row in both] == [NewPet("Rex", 8)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b",1,sold", f"name: {NAME}"),
        (b"  ,1,sold", f"name: {NAME}"),
        (b"Be\0lla,1,sold", f"name: {NAME}"),
        (b"x" * 256 + b",1,sold", f"name: {NAME}"),
        (b"Bella,,sold", f"categoryId: {INTEGER}"),
        (b"Bella,one,sold", f"categoryId: {INTEGER}"),
        (b"Bella,1.0,sold", f"categoryId: {INTEGER}"),
        (b"Bella,1_0,sold", f"categoryId: {INTEGER}"),
        (b"Bella,+1,sold", f"categoryId: {INTEGER}"),
        (b"Bella,9223372036854775808,sold", f"categoryId: {INTEGER}"),
        ("Bella,\N{FULLWIDTH DIGIT ONE},sold".encode(), f"categoryId: {INTEGER}"),
        (b"Bella,1,gone", f"status: {STATUS}"),
        (b"Bella,1,for sale", f"status: {STATUS}"),
        (b"Bella", f"categoryId: required; {INTEGER}"),
        (b"M\xfcsli,1,sold", "expected UTF-8"),
        (b"Bella,1,sold,red", "expected 3 cells, one for each column; got 4"),
        (b"\xed\xa0\x80,1,sold", "expected UTF-8"),
        (b'"Bella"x,1,', "expected CSV ("),
        (b'"Bel"la",1,', "expected CSV ("),
        (b"Bel\rla,1,", "expected CSV (new-line character seen"),
        (b'"M\xfcsli"x,1,', "expected UTF-8"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line_and_the_others_are_read(
    row: bytes, reason: str
) -> None:
    found = read(HEADER + b"first,1,\n" + row + b"\nlast,1,\n")
    (bad,) = refused(found)
    assert bad.line == 3
    assert bad.reason.startswith(reason)
    assert bad.text.encode("utf-8", "surrogateescape") == row + b"\n"
    assert names(found) == ["first", "last"]


def test_an_unclosed_quote_is_refused_with_the_line_where_it_opens() -> None:
    found = read(HEADER + b'first,1,\n"second,1,\nthird,1,\n')
    (bad,) = refused(found)
    assert (bad.line, bad.reason) == (3, "expected CSV (unexpected end of data)")
    assert bad.text == '"second,1,\nthird,1,\n'
    assert names(found) == ["first"]


def test_an_unclosed_quote_does_not_swallow_a_large_file() -> None:
    found = read(HEADER + b'"first,1,\n' + b"Rex,1,\n" * 20_000 + b"last,1,\n")
    assert [row.line for row in refused(found)] == [2]
    assert names(found)[-1] == "last"


def test_line_numbers_include_quoted_line_breaks_and_blank_lines() -> None:
    content = b'"Bel\n\nla",1,\r\n\n\r\nbad,x,\n"also\nbad",x,\nlast,1,"so\nld"\n'
    found = read(HEADER + content)
    assert [(row.line, row.text) for row in refused(found)] == [
        (7, "bad,x,\n"),
        (8, '"also\nbad",x,\n'),
        (10, 'last,1,"so\nld"\n'),
    ]
    assert names(found) == ["Bel\n\nla"]


@pytest.mark.parametrize(
    "content",
    [
        b"name,categoryId\nBella,1\nOskar,2",
        b"name,categoryId\r\nBella,1\r\nOskar,2\r\n",
        b"\xef\xbb\xbfname,categoryId\nBella,1\nOskar,2\n",
        b'\xef\xbb\xbf"name","categoryId"\n"Bella","1"\nOskar,2\n',
        b"categoryId,name\n1,Bella\n2,Oskar\n",
        b"id,name,note,categoryId,status\n9,Bella,,1,\nx,Oskar,\xc3\xa4,2,\n",
        b"name,categoryId,\nBella,1,\nOskar,2,,,,\n",
        b"name,categoryId,status\nBella,1,\nOskar,2\n",
        b"\xef\xbb\xbfname,categoryId\n\n\nBella,1\n\nOskar,2\n\n",
        b"name;categoryId\nBella;1\nOskar;2\n",
        b"name\tcategoryId\nBella\t1\nOskar\t2\n",
        b"sep=;\r\nname;categoryId\r\nBella;1\r\nOskar;2\r\n",
        b'\xef\xbb\xbf"sep=\t"\nname\tcategoryId\nBella\t1\nOskar\t2\n',
        b"SEP=,\nname,categoryId;,x\nBella,1\nOskar,2\n",
        b'name;"price, in EUR, gross";categoryId\nBella;1,5;1\nOskar;2,5;2\n',
        b'name;"a\nb";categoryId\nBella;;1\nOskar;;2\n',
        b"\n;;\n\nname;categoryId;\nBella;1;\n;;\n ; ;\nOskar;2;\n;\n",
        b"Name;Category ID\nBella; 1 \nOskar;\xc2\xa02\n",
        b"CATEGORY,Animal name\n1,Bella\n2,Oskar\n",
        "name\tcategoryId\r\nBella\t1\r\nOskar\t2\r\n".encode("utf-16"),
        b"\xfe\xff" + "name,categoryId\nBella,1\nOskar,2".encode("utf-16-be"),
        b"categoryId,name,gr\xf6\xdfe\n1,Bella\n2,Oskar\n",
    ],
)
def test_many_csv_variants_are_read(content: bytes) -> None:
    assert [row.pet for row in read(content)] == [NewPet("Bella", 1), NewPet("Oskar", 2)]


def test_a_file_with_semicolons_is_read_as_one_with_commas() -> None:
    content = b'\xef\xbb\xbf"name";categoryId\r\n"B;e\nl,a";1\r\n\r\n;2\r\nRex;1\n'
    file, found = opened(content), read(content)
    assert file.layout.columns.fields == ["name", "categoryId"]
    assert [(row.line, row.pet) for row in found] == [
        (2, NewPet("B;e\nl,a", 1)),
        (5, None),
        (6, NewPet("Rex", 1)),
    ]
    assert found[1].text == ";2\r\n"
    assert file.digest == sha256(content).digest()
    assert file.layout.delimiter == ";"


def test_the_text_before_the_rows_and_that_of_a_row_stay_as_they_were() -> None:
    content = b"sep=;\n\nName;Preis;Kind\n Bella ; 1,50;x\n"
    (row,) = read(content)
    assert (row.line, row.text) == (4, " Bella ; 1,50;x\n")
    assert opened(content).header == "sep=;\nName;Preis;Kind\n"


def test_a_large_file_in_utf_16_is_read_line_by_line() -> None:
    lines = [f"Käfer {number},{number}\n" for number in range(10_000)]
    found = read(("name,categoryId\n" + "".join(lines)).encode("utf-16"))
    assert [row.text for row in found] == lines
    assert {row.pet is None for row in found} == {False}


def test_what_is_not_text_in_a_file_in_utf_16_is_refused() -> None:
    content = "name,categoryId\nBella,1\n".encode("utf-16") + b"\x00\xd8,\x001\x00\n\x00"
    assert [row.reason for row in read(content)] == ["", "expected UTF-8"]


def test_without_a_sure_column_no_row_has_an_animal() -> None:
    file = opened(b"Nmae,Category,Status\nBella,1,sold\n")
    assert file.layout.columns.unsure == ["name"]
    assert [row.pet for row in file.rows if row] == [None]


def test_a_chosen_column_is_a_field() -> None:
    content = BytesIO(b"Tier,name,Art\nBella,x,1\n")
    file = open_import_file(content, chosen={"name": "Tier", "categoryId": "Art"})
    assert [row.pet for row in file.rows if row] == [NewPet("Bella", 1)]
    with pytest.raises(InvalidBody, match="line 1: expected a column 'Price'; got 'Tier, name,"):
        open_import_file(content, chosen={"name": "Price"})


LAYOUT = opened(b"status;name;category\n").layout


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (";Bella; Dogs \n", "Dogs"),
        (";Bella;1.0\n", "1.0"),
        (";Bella;+5\n", "+5"),
        (";Bella;\uff15\n", "\uff15"),
        (";Bella;1_0\n", "1_0"),
        (";Bella;\n", None),
        (";Bella;7\n", None),
        (";Bella;9223372036854775808\n", None),
        (";;Dogs\n", "Dogs"),
        ("gone;Bella;Dogs\n", "Dogs"),
    ],
)
def test_a_category_that_is_no_number_may_be_a_name(text: str, category: str | None) -> None:
    row = LAYOUT.read(FileRow(2, text, None))
    names = LAYOUT.category_names([row])
    assert names == ({} if category is None else {0: category})


def test_a_row_of_a_category_that_is_not_there_says_what_else_is_wrong_with_it() -> None:
    rows = [LAYOUT.read(FileRow(2, text, None)) for text in ("gone;Bella;Dogs\n", ";Rex;Dogs\n")]
    LAYOUT.name_categories(rows, LAYOUT.category_names(rows), {})
    unknown = "categoryId: no category has the name 'Dogs'"
    assert [row.reason for row in rows] == [f"{unknown}; status: {STATUS}", unknown]


def test_a_row_is_read_again_with_another_layout_and_what_is_not_csv_stays_refused() -> None:
    content = HEADER + b'Bella,1,sold\n"Rex"x,1,\n'
    bella, rex = read(content)
    other = opened(b"status,categoryId,name\n").layout
    assert other.read(bella).reason == f"status: {STATUS}"
    assert opened(b"x,categoryId,name\n").layout.read(bella).pet == NewPet("sold", 1)
    assert other.read(rex) == rex


def test_every_status_is_read_in_any_case_and_an_empty_one_is_none() -> None:
    found = read(HEADER + b"a,1,Available\nb,1, pending\nc,1,SOLD \nd,1, \n")
    assert [row.pet for row in found] == [
        NewPet("a", 1, "available"),
        NewPet("b", 1, "pending"),
        NewPet("c", 1, "sold"),
        NewPet("d", 1),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Bella", "the line: expected a JSON object; invalid character"),
        (b'["Bella"]', "the line: expected a JSON object, got an array"),
        (b'{"name": "Bella"}', f"categoryId: required; {INTEGER}"),
        (b'{"name": "Bella", "categoryId": "1"}', f"categoryId: {INTEGER}"),
        (b'{"name": "Bella", "categoryId": 1, "status": ""}', f"status: {STATUS}"),
        (b'{"name": "\xff", "categoryId": 1}', "the line: expected JSON in UTF-8"),
        (b"[" * 60_000, "the line: expected a JSON object; it is nested too deeply"),
    ],
)
def test_an_invalid_json_line_is_refused_and_the_others_are_read(line: bytes, reason: str) -> None:
    good = b'{"name": "%s", "categoryId": 1}\n'
    found = read(good % b"first" + b"\n \r\n" + line + b"\n" + good % b"last", "jsonl")
    (bad,) = refused(found)
    assert bad.line == 4
    assert bad.reason.startswith(reason)
    assert bad.text.encode("utf-8", "surrogateescape") == line + b"\n"
    assert names(found) == ["first", "last"]


def test_json_lines_are_read() -> None:
    content = b'{"name": "Bella", "categoryId": 1, "id": 9}\r\n\n{"categoryId":2,"name":"\\u0041"}'
    assert [row.pet for row in read(content, "jsonl")] == [NewPet("Bella", 1), NewPet("A", 2)]


LIMITS = FileLimits(lines=20, characters=300, cells=5)


def test_a_row_that_is_too_long_is_refused_and_shown_shortened() -> None:
    content = HEADER + b"Rex," + b"x" * 200_000 + b"\nBella,1,\n"
    long, short = read(content, limits=LIMITS)
    assert (long.line, long.reason) == (2, "expected CSV (row larger than 300 characters)")
    assert long.text == "Rex," + "x" * 196 + "…\n"
    assert (short.line, short.pet) == (3, NewPet("Bella", 1))
    assert read(content)[0].reason == "expected CSV (row larger than 131072 characters)"


def test_an_unclosed_quote_swallows_no_more_than_a_row_may_have() -> None:
    found = read(HEADER + b'"' + b"a" * 99 + b"\n" + b"a" * 99 + b"\n" + b"a" * 150, limits=LIMITS)
    assert [row.reason for row in found] == ["expected CSV (row larger than 300 characters)"]
    assert len(found[0].text) == 351


def test_a_row_with_many_lines_is_one_row() -> None:
    name = b"a\n" * 15
    (row,) = read(HEADER + b'"' + name + b'",1,\n', limits=LIMITS)
    assert row.pet == NewPet(name.decode(), 1)


def test_a_row_with_too_many_cells_is_refused() -> None:
    (row, _) = read(HEADER + b"Rex,1,sold,,,\nBella,1,\n", limits=LIMITS)
    assert row.reason == "expected at most 5 cells, got 6"


def test_a_file_with_too_many_columns_is_refused() -> None:
    with pytest.raises(InvalidBody, match="line 1: expected at most 5 columns, got 6"):
        read(HEADER[:-1] + b",a,b,c\nBella,1,\n", limits=LIMITS)


def test_a_file_with_too_many_lines_is_refused() -> None:
    with pytest.raises(InvalidBody, match="expected at most 20 lines; remove the blank ones"):
        read(HEADER + b"\n" * 20, limits=LIMITS)
