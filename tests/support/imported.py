"""Imported files as a clerk sees them, in lines of text, and imports in a store."""

import asyncio
from io import BytesIO
from itertools import groupby
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.json import encode

from petstore.clock import Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.errors import InvalidBody
from petstore.imports.columns import ImportMapping, ImportSettings, cells_of, rows_below
from petstore.imports.columns import understood as understand
from petstore.imports.model import ImportPreview
from petstore.imports.operations import in_order, preview_of
from petstore.imports.reading import ROWS_AT_ONCE, Row, TableHead, decode_rows
from petstore.imports.store import StoredImport, create_import, judge_now
from petstore.imports.tables import write_rows

UNDECIDED = "?"
ROWS = [Row(1, ["Rex", "1"])]
SETTINGS = understand(
    ImportSettings("UTF-8", [], 2), ROWS, has_header=False, mapping=ImportMapping(0, 1)
)


def new_import(caller_id: int, digest: bytes, now: Milliseconds) -> Unit[StoredImport]:
    new = StoredImport(0, caller_id, "pets.csv", SETTINGS, ImportPreview(), 1, 0, 0, now)
    return create_import(new, digest, [encode(ROWS)])


def read(content: bytes) -> tuple[TableHead, list[Row]]:
    batches = BytesIO()
    head = write_rows(content, batches)
    if head.problem:
        raise InvalidBody(head.problem)
    return head, [row for line in batches.getvalue().splitlines() for row in decode_rows(line)]


def understood(
    text: str, *, has_header: bool | UnsetType = UNSET
) -> tuple[ImportSettings, list[Row]]:
    head, rows = read(text.encode())
    new = ImportSettings(head.encoding, head.notes, head.last_from)
    return understand(new, rows[:ROWS_AT_ONCE], has_header=has_header), rows


class EmptyStore:
    async def read(self, _: Statement) -> list[Any]:
        return []


async def seen(head: TableHead, rows: list[Row]) -> str:
    """Return what a clerk sees of a file whose categories are all to be created."""
    new = ImportSettings(
        *(head.encoding, head.notes, head.last_from),
        default_status="available",
        unknown_categories="create",
    )
    settings = understand(new, rows[:ROWS_AT_ONCE])
    preview = await preview_of(EmptyStore(), in_order([encode(rows)]), settings)
    lines = [head.encoding, *head.notes, f"rows: {head.rows}"]
    lines.append(f"header: line {settings.header_line}" if settings.header_line else "no header")
    for field in ("name", "category_id", "status", "id"):
        place = getattr(settings.mapping, field)
        if place is not UNSET:
            column = settings.columns[place]
            lines.append(f"{field}: {column.name} ({' | '.join(column.values)})")
    lines.append(f"categories: {', '.join(word.text for word in preview.categories)}"[:100])
    if preview.statuses:
        words = (f"{word.text} → {word.means or UNDECIDED}" for word in preview.statuses)
        lines.append(f"statuses: {', '.join(words)}")
    lines.append(f"pets: {preview.added}")
    below = rows_below(rows, settings)
    judged = await judge_now(EmptyStore(), cells_of(below, settings), settings, {})
    results = zip(below, judged, strict=True)
    refused = [(row.line, " ".join(each)) for row, each in results if isinstance(each, list)]
    for reason, group in groupby(refused, lambda each: each[1]):
        lines.append(f"{', '.join(str(line) for line, _ in group)}: {reason}")
    return "\n".join(lines)


def seen_in(content: bytes) -> str:
    try:
        return asyncio.run(seen(*read(content)))
    except InvalidBody as error:
        return error.message
