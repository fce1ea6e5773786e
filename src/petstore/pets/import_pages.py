"""The pages of imports: send a file, look at what it would add, add it, get the refused rows."""

from petstore.console.allowance import affordable, allowance_of, charge
from petstore.console.downloads import CsvDownload, dated, delimiter_of
from petstore.console.forms import Problem, UploadedFile, in_plain_words, problem_of
from petstore.console.notices import Notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.templates import isolated
from petstore.errors import Conflict, InvalidBody, PetstoreError
from petstore.http.messages import Response
from petstore.pets.console_imports import (
    IMPORTS_KEPT,
    MAX_IMPORTS,
    MAX_ROWS,
    ROWS_AT_ONCE,
    ConsoleImport,
    add_batch,
    count_next_batch,
    find_import,
    list_imports,
    read_rows,
    stop_import,
    store_import,
)
from petstore.pets.exports import cells_writer
from petstore.pets.files import cells_of
from petstore.time_slices import TimeSlices

_MAX_FILE = 8 * 2**20
# A browser adds some hundred bytes around the file. A larger one than the page allows is told so in
# the words of the page, and one twice as large is not even received.
_MAX_FORM = 2 * _MAX_FILE
_ROWS_A_REQUEST = 1_000
_SHOWN = 20
_EXAMPLE = "name,categoryId,status\nMuesli,4,available\nKnödel,1,\n"


async def _start(visit: PageRequest) -> Response:
    return await _start_page(visit)


async def _upload(visit: PageRequest) -> Response:
    services = visit.services
    try:
        chosen = _chosen(visit)
        import_id = await store_import(
            services.store,
            visit.caller.id,
            chosen.name,
            chosen.content,
            services.clock,
            named_categories=visit.may("listCategories"),
            strict_categories=services.strict_categories,
        )
    except (InvalidBody, Conflict) as error:
        return await _start_page(visit, error)
    return await visit.redirect(f"/import/{import_id}")


def _chosen(visit: PageRequest) -> UploadedFile:
    """Return the file of the form.

    Raises:
        InvalidBody: there is none, or it is too large.
    """
    file = visit.form.file
    if file is None or file.field != "file" or not (file.name or file.size):
        msg = "file: choose a CSV file first"
        raise InvalidBody(msg)
    if file.size > _MAX_FILE:
        msg = f"file: expected at most {_MAX_FILE // 2**20} MiB, got {file.size:,} bytes"
        raise InvalidBody(msg)
    return file


async def _start_page(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    return visit.page(
        "import.html",
        200 if error is None else error.status,
        imports=await list_imports(visit.services.store, visit.caller.id),
        max_imports=MAX_IMPORTS,
        max_rows=MAX_ROWS,
        max_mebibytes=_MAX_FILE // 2**20,
        allowance=await allowance_of(visit),
        problem=None if error is None else _problem_of(error),
    )


def _problem_of(error: PetstoreError) -> Problem:
    """Return what is wrong with the file: the messages of files begin with a line, not a field."""
    problem = problem_of(error)
    return problem if isinstance(error, Conflict) else Problem("file", problem.text, "CSV file")


async def _show(visit: PageRequest) -> Response:
    return await _import_page(visit, await _find(visit))


async def _go_on(visit: PageRequest) -> Response:
    """Add the next rows, as long as the key has requests left: each costs one.

    They are charged before they are added. Two tabs share what is to be added.
    """
    services, added = visit.services, 0
    found = await _find(visit)
    while (rows := await _affordable(visit, found, _ROWS_A_REQUEST - added)) and await charge(
        visit, rows
    ):
        unit = add_batch(
            found.id,
            visit.caller.id,
            now=services.clock(),
            limit=rows,
            strict_categories=services.strict_categories,
            by=visit.author,
        )
        found = await services.store.write(unit)
        added += rows
    await services.readers.record_write(visit.caller.id)
    if await _affordable(visit, found, 1):
        return await _import_page(visit, found, goes_on=True)
    return await visit.redirect(f"/import/{found.id}")


async def _affordable(visit: PageRequest, found: ConsoleImport, limit: int) -> int:
    """Return how many rows of an import may be added next, at most ``limit``."""
    if not found.waiting:
        return 0
    rows = await count_next_batch(visit.services.store, found.id)
    return await affordable(visit, min(rows, ROWS_AT_ONCE, limit))


async def _import_page(
    visit: PageRequest, found: ConsoleImport, *, goes_on: bool = False
) -> Response:
    store = visit.services.store
    others = await list_imports(store, visit.caller.id)
    same = (
        other
        for other in others
        if other.digest == found.digest and other.added > other.undone and other.id != found.id
    )
    return visit.page(
        "import_file.html",
        found=found,
        goes_on=goes_on,
        allowance=await allowance_of(visit),
        kept_until=found.created_at + IMPORTS_KEPT,
        same=next(same, None),
        animals=[row async for row in read_rows(store, found.id, "waiting", _SHOWN)],
        refused=[
            row._replace(reason=in_plain_words(row.reason))
            async for row in read_rows(store, found.id, "refused", _SHOWN)
        ],
    )


async def _refused(visit: PageRequest) -> Response:
    found = await _find(visit)
    file = CsvDownload()
    if not visit.is_head:
        await _write_refused(visit, found, file)
    return file.response(dated("refused", visit.services.clock()))


async def _write_refused(visit: PageRequest, found: ConsoleImport, file: CsvDownload) -> None:
    write = cells_writer(file, spreadsheet_safe=True, delimiter=found.delimiter)
    write(["line", "reason", *found.columns])
    slices = TimeSlices()
    async for row in read_rows(visit.services.store, found.id, "refused"):
        cells = cells_of(row.text, found.delimiter)
        write([row.line, in_plain_words(row.reason), *cells])
        await slices.rest()


async def _discard(visit: PageRequest) -> Response:
    services = visit.services
    unit = stop_import(visit.path_id, visit.caller.id, now=services.clock())
    stopped = await services.store.write(unit)
    name = isolated(stopped.file)
    if not stopped.added:
        return await visit.redirect("/import", Notice(f"The import of {name} is gone."))
    text = f"The import of {name} has stopped. The {stopped.added:,} animals that it added stay."
    return await visit.redirect(f"/import/{stopped.id}", Notice(text))


async def _example(visit: PageRequest) -> Response:
    delimiter = delimiter_of(visit.form)
    file = CsvDownload()
    file.write(_EXAMPLE.replace(",", delimiter))
    return file.response("animals.csv")


async def _find(visit: PageRequest) -> ConsoleImport:
    return await find_import(visit.services.store, visit.path_id, visit.caller.id)


PAGES = (
    ConsolePage("GET", "/import", _start, needs="createPet"),
    ConsolePage("POST", "/import", _upload, needs="createPet", max_bytes=_MAX_FORM, has_file=True),
    ConsolePage("GET", "/import/example.csv", _example, needs="createPet"),
    ConsolePage("GET", "/import/{importId}", _show, needs="createPet"),
    ConsolePage("POST", "/import/{importId}", _go_on, needs="createPet", has_file=True),
    ConsolePage(
        "GET", "/import/{importId}/refused.csv", _refused, needs="createPet", has_file=True
    ),
    ConsolePage("POST", "/import/{importId}/discard", _discard, needs="createPet"),
)
