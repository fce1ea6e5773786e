"""Imported files as a clerk sees them, in lines of text."""

from collections.abc import Iterable
from io import BytesIO
from itertools import groupby, islice

from msgspec import UNSET
from msgspec.json import Decoder

from petstore.domain.names import name_key
from petstore.errors import InvalidBody
from petstore.imports.columns import (
    FIRST_ROWS,
    Choices,
    Layout,
    Words,
    find_layout,
    pet_of_row,
    rows_below,
    status_of,
)
from petstore.imports.reading import Row, TableHead
from petstore.imports.tables import write_rows

SEPARATORS = {",": ", commas", ";": ", semicolons", "\t": ", tabs", "": ""}
UNDECIDED = "?"


def read(content: bytes) -> tuple[TableHead, list[Row]]:
    """Return what a file is, and its rows, read in this process."""
    rows = BytesIO()
    head = write_rows(content, rows)
    if head.problem:
        raise InvalidBody(head.problem)
    return head, [Decoder(Row).decode(line) for line in rows.getvalue().splitlines()]


def understood(text: str, *, has_header: bool | None = None) -> tuple[Layout, list[Row]]:
    """Return the layout of a CSV file, and its rows."""
    head, rows = read(text.encode())
    return find_layout(rows[:FIRST_ROWS], head.last_from, has_header=has_header), rows


def seen(head: TableHead, rows: list[Row]) -> Iterable[str]:
    """Yield what a clerk sees of a file whose categories are all to be created."""
    layout = find_layout([*islice(rows, FIRST_ROWS)], head.last_from)
    words = Words().count(rows, layout)
    categories = {name_key(word): 1 for word in words.categories if word}
    choices = Choices("available", categories=categories)
    yield f"{head.encoding}{SEPARATORS[head.separator]}"
    yield from head.notes
    yield f"rows: {len(rows)}"
    yield f"header: line {layout.header_line}" if layout.header_line else "no header"
    for field in ("name", "category_id", "status", "id"):
        place = getattr(layout.mapping, field)
        if place is not UNSET:
            column = layout.columns[place]
            yield f"{field}: {column.name} ({' | '.join(column.values)})"
    yield f"categories: {', '.join(words.categories)}"[:100]
    if layout.mapping.status is not UNSET:
        meanings = ((word, status_of(word, choices)) for word in words.statuses)
        found = (f"{word} → {status or UNDECIDED}" for word, status in meanings if word)
        yield f"statuses: {', '.join(found)}"
    results = [(row.line, pet_of_row(row, layout, choices)) for row in rows_below(rows, layout)]
    yield f"pets: {sum(not isinstance(result, list) for _, result in results)}"
    refused = [(line, " ".join(result)) for line, result in results if isinstance(result, list)]
    for reason, group in groupby(refused, lambda each: each[1]):
        lines = [line for line, _ in group]
        yield f"{', '.join(map(str, lines))}: {reason}"


def seen_in(content: bytes) -> str:
    """Return what a clerk sees of a file, or why it cannot be read."""
    try:
        return "\n".join(seen(*read(content)))
    except InvalidBody as error:
        return error.message
