"""The pages of imports: send a file, look at what it would add, add it, get the refused rows."""

import asyncio
import io
from collections.abc import Callable, Sequence
from typing import Any

from petstore.console.downloads import DELIMITERS, csv_download, dated
from petstore.console.forms import File, Problem, in_plain_words, problem_of
from petstore.console.notices import Notice
from petstore.console.page import Page, Visit
from petstore.console.templates import isolated
from petstore.errors import Conflict, InvalidBody, PetstoreError
from petstore.http.messages import Response
from petstore.store.console_imports import (
    MAX_IMPORTS,
    MAX_ROWS,
    ConsoleImport,
    add_batch,
    create_import,
    delete_import,
    find_import,
    find_named_categories,
    list_imports,
    read_batch,
    read_import_file,
)
from petstore.store.pet_files import FileRow, cells_of, cells_writer
from petstore.store.pet_imports import refuse_unknown

_MAX_FILE = 8 * 2**20
# A browser adds some hundred bytes around the file. A larger one than the page allows is told so in
# the words of the page, and one twice as large is not even received.
_MAX_FORM = 2 * _MAX_FILE
_BATCHES_AT_ONCE = 5
_SHOWN = 20
_EXAMPLE = "name,categoryId,status\nMuesli,4,available\nKnödel,1,\n"


async def _start(visit: Visit) -> Response:
    return await _start_page(visit)


async def _upload(visit: Visit) -> Response:
    services = visit.services
    try:
        file = await read_import_file(*_chosen(visit))
        if visit.may("listCategories"):
            file = await find_named_categories(services.store, file)
        if services.strict_categories:
            file = file._replace(rows=await refuse_unknown(services.store, file.rows))
        unit = create_import(visit.key.id, file, now=services.clock())
        import_id = await services.store.write(unit)
    except (InvalidBody, Conflict) as error:
        return await _start_page(visit, error)
    return await visit.redirect(f"/import/{import_id}")


def _chosen(visit: Visit) -> File:
    """Return the file of the form.

    Raises:
        InvalidBody: there is none, or it is too large.
    """
    file = visit.form.files.get("file")
    if file is None or not (file.name or file.content):
        msg = "file: choose a CSV file first"
        raise InvalidBody(msg)
    if len(file.content) > _MAX_FILE:
        msg = f"file: expected at most {_MAX_FILE // 2**20} MiB, got {len(file.content):,} bytes"
        raise InvalidBody(msg)
    return file


async def _start_page(visit: Visit, error: PetstoreError | None = None) -> Response:
    return visit.page(
        "import.html",
        200 if error is None else error.status,
        imports=await list_imports(visit.services.store, visit.key.id),
        max_imports=MAX_IMPORTS,
        max_rows=MAX_ROWS,
        max_mebibytes=_MAX_FILE // 2**20,
        problem=None if error is None else _problem_of(error),
    )


def _problem_of(error: PetstoreError) -> Problem:
    """Return what is wrong with the file: the messages of files begin with a line, not a field."""
    problem = problem_of(error)
    return problem if isinstance(error, Conflict) else Problem("file", problem.text, "CSV file")


async def _show(visit: Visit) -> Response:
    return await _import_page(visit, await _find(visit))


async def _go_on(visit: Visit) -> Response:
    """Add the next batches. Requests at the same time, such as of two tabs, share them."""
    services = visit.services
    for _ in range(_BATCHES_AT_ONCE):
        unit = add_batch(
            visit.path_id,
            visit.key.id,
            now=services.clock(),
            strict_categories=services.strict_categories,
        )
        found = await services.store.write(unit)
        if not found.waiting:
            break
    await services.readers.record_write(visit.key.id)
    if found.waiting:
        return await _import_page(visit, found, goes_on=True)
    return await visit.redirect(f"/import/{found.id}")


async def _import_page(visit: Visit, found: ConsoleImport, *, goes_on: bool = False) -> Response:
    store = visit.services.store
    others = await list_imports(store, visit.key.id)
    same = (
        other
        for other in others
        if other.digest == found.digest and other.added and other.id != found.id
    )
    return visit.page(
        "import_file.html",
        found=found,
        goes_on=goes_on,
        same=next(same, None),
        animals=(await read_batch(store, found.id, "waiting"))[0][:_SHOWN],
        refused=await _first_refused(visit, found),
    )


async def _first_refused(visit: Visit, found: ConsoleImport) -> list[FileRow]:
    rows: list[FileRow] = []
    start = 0
    while len(rows) < min(found.refused, _SHOWN):
        more, start = await read_batch(visit.services.store, found.id, "refused", start)
        rows += more
    return [row._replace(reason=in_plain_words(row.reason)) for row in rows[:_SHOWN]]


async def _refused(visit: Visit) -> Response:
    found = await _find(visit)
    file = io.StringIO(newline="")
    write = cells_writer(file, spreadsheet_safe=True, delimiter=found.delimiter)
    write(["line", "reason", *found.columns])
    start = 0
    while True:
        rows, start = await read_batch(visit.services.store, found.id, "refused", start)
        if not rows:
            return csv_download(dated("refused", visit.services.clock()), file.getvalue())
        # In a thread, since a row can have ten thousands of cells.
        await asyncio.to_thread(_write_rows, write, rows)


def _write_rows(write: Callable[[Sequence[Any]], None], rows: Sequence[FileRow]) -> None:
    for row in rows:
        write([row.line, in_plain_words(row.reason), *cells_of(row.text)])


async def _discard(visit: Visit) -> Response:
    gone = await visit.services.store.write(delete_import(visit.path_id, visit.key.id))
    text = f"The import of {isolated(gone.file)} is gone."
    if gone.added:
        text += f" The {gone.added:,} animals that it added stay."
    return await visit.redirect("/import", Notice(text))


async def _example(visit: Visit) -> Response:
    delimiter = DELIMITERS.get(visit.form.text("separator"), ",")
    return csv_download("animals.csv", _EXAMPLE.replace(",", delimiter))


async def _find(visit: Visit) -> ConsoleImport:
    return await find_import(visit.services.store, visit.path_id, visit.key.id)


PAGES = (
    Page("GET", "/import", _start, needs="createPet"),
    Page("POST", "/import", _upload, needs="createPet", max_bytes=_MAX_FORM),
    Page("GET", "/import/example.csv", _example, needs="createPet"),
    Page("GET", "/import/{importId}", _show, needs="createPet"),
    Page("POST", "/import/{importId}", _go_on, needs="createPet"),
    Page("GET", "/import/{importId}/refused.csv", _refused, needs="createPet"),
    Page("POST", "/import/{importId}/discard", _discard, needs="createPet"),
)
