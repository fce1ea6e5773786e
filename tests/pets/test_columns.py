"""Columns of a table that are fields of an animal: by their names, or chosen."""

from time import process_time

import pytest

from petstore.pets.columns import match_columns

FIELDS = ["name", "categoryId", "status"]


@pytest.mark.parametrize(
    "header",
    [
        ["name", "categoryId", "status"],
        ["Name", "Category", "Status"],
        [" NAME ", "category_id", "STATE"],
        ["Animal", "Category-ID", "stàtus"],
        ["Pet name", "Species", "Status:"],
        ["Title", "Type", "\uff33\uff34\uff21\uff34\uff35\uff33"],
    ],
)
def test_the_names_of_columns_count_in_any_case_and_spelling(header: list[str]) -> None:
    assert match_columns(header).fields == FIELDS
    assert match_columns(header[::-1]).fields == FIELDS[::-1]


def test_the_surest_name_of_a_column_counts() -> None:
    header = ["Title", "Type", "category", "Name", "categoryId", "name"]
    assert match_columns(header).fields == ["", "", "", "", "categoryId", "name"]
    assert match_columns(header[:4]).fields == ["", "", "categoryId", "name"]


@pytest.mark.parametrize(
    ("header", "unsure", "likely"),
    [
        (["Nmae", "category"], ["name"], 0),
        (["category", "Names"], ["name"], 1),
        (["Nam", "category"], ["name"], 0),
        (["Name", "NAME", "category"], ["name"], 0),
        (["name", "name", "category"], ["name"], 0),
        (["name", "Categroy"], ["categoryId"], 1),
        (["name", "Catgory Id"], ["categoryId"], 1),
        (["name", "kind", "type"], ["categoryId"], 1),
        (["name", "category", "Statuss"], ["status"], 2),
        (["name", "Art"], ["categoryId"], None),
        (["name", "c", "x" * 200], ["categoryId"], None),
        ([], ["name", "categoryId"], None),
    ],
)
def test_a_name_that_is_near_and_one_of_two_leave_a_field_unsure(
    header: list[str], unsure: list[str], likely: int | None
) -> None:
    columns = match_columns(header)
    assert columns.unsure == unsure
    assert columns.fields == [""] * len(header)
    assert columns.place(unsure[0]) == likely


def test_chosen_columns_are_sure_and_no_other_field() -> None:
    header = ["name", "type", "Category"]
    assert match_columns(header, {"name": 1}).fields == ["", "name", "categoryId"]
    columns = match_columns(header, {"name": 0, "categoryId": 1, "status": None})
    assert columns.fields == ["name", "categoryId", ""]
    assert [columns.place(field) for field in FIELDS] == [0, 1, None]
    assert match_columns(header, {"status": 0}).unsure == ["name"]


def test_columns_that_are_not_used_are_named() -> None:
    columns = match_columns(["line", "Reason", "id", "Name", "", "Type", "Preis"])
    assert columns.unused == ["id", "Preis"]
    assert columns.header == ["line", "Reason", "id", "name", "", "categoryId", "Preis"]


@pytest.mark.parametrize(
    "header",
    [["abcdefghijklmn"] * 256, ["ab"] * 10_000, ["\ufdfa" * 100_000], ["categorie"] * 10_000],
    ids=["long names", "many columns", "one large cell", "near names"],
)
def test_a_hostile_header_is_cheap(header: list[str]) -> None:
    match_columns(["a"])  # which prepares the near names
    start = process_time()
    match_columns(header)
    assert process_time() - start < 0.5
