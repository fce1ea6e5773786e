"""The page on scale has the tables that follow from what was measured."""

from measured import read_measured
from pages import quoted
from scale import PAGE, tables

MEASURED = read_measured()


def test_the_page_has_the_tables_of_the_saved_measurements() -> None:
    text = PAGE.read_text()
    assert text == quoted(text, tables(MEASURED))
