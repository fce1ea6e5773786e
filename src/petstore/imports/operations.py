"""The operations on imports: a file is sent, decided about, run, and perhaps undone."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from io import TextIOWrapper
from operator import attrgetter
from tempfile import TemporaryFile
from time import monotonic
from typing import Annotated, Any, BinaryIO, TypeAlias, TypeVar, cast

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, astuple, replace

from petstore.categories.store import list_categories, unknown_category
from petstore.databases.contract import Reader, Unit, mapped
from petstore.domain.csv_files import cells_writer
from petstore.domain.cursors import NEWEST_FIRST
from petstore.domain.fields import any_text, merged
from petstore.domain.names import name_key
from petstore.domain.words import whole_term
from petstore.errors import ImportClosed, InvalidBody, TooManyImports, UnknownCategory
from petstore.http.messages import Response
from petstore.imports.columns import (
    ImportMapping,
    ImportMappingPatch,
    ImportSettings,
    cells_of,
    meaning_of,
    rows_below,
    understood,
    word_key,
)
from petstore.imports.model import (
    MAX_LISTED,
    MAX_WORD,
    Import,
    ImportPatch,
    ImportPreview,
    ImportWord,
)
from petstore.imports.reading import MAX_ROWS, Row, decode_rows, read_table
from petstore.imports.store import (
    Batches,
    StoredImport,
    add_rows,
    change_settings,
    count_next_pets,
    create_import,
    current,
    delete_import,
    find_categories,
    find_same,
    get_import,
    judge_now,
    list_imports,
    names_here,
    new_categories,
    prepare,
    read_batch,
    read_batches,
    refused_rows,
    undo_rows,
)
from petstore.interface.bodies import room_for_file
from petstore.interface.idempotency import change, find_replay
from petstore.interface.operation import Call, Context, FileBody, Result, Success
from petstore.interface.pages import PageQuery, cursor_of, limit_of, page_result
from petstore.interface.resource import Resource
from petstore.pets.model import STATUSES, NewPet
from petstore.pets.store import PETS_BY_WORD
from petstore.time_slices import TimeSlices

MEDIA_TYPES = (
    "text/csv",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.ms-excel",
)

_RUN_SECONDS = 1.0
_RUN_ROWS = 2_000
_shown = attrgetter("shown")
_FileName = Annotated[str, any_text(0, 255, "The name of the file, which lists show.", "pets.csv")]
_RowLimit = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_ROWS,
        description="Maximum number of rows. Default: all of them.",
        extra={"expected": f"an integer from 1 to {MAX_ROWS}, in plain digits"},
    ),
]

_Step: TypeAlias = tuple[int, Callable[..., Unit[StoredImport]]]
"""How many rows a step has, and what returns its unit of work for so many of them."""


class CreateImportQuery(Struct, frozen=True, rename="camel"):
    file_name: _FileName | UnsetType = UNSET


class ListImportsQuery(PageQuery, frozen=True):
    limit: Annotated[int, limit_of("imports")] = 20
    cursor: Annotated[str, cursor_of(NEWEST_FIRST)] | UnsetType = UNSET


class RefusedQuery(Struct, frozen=True):
    limit: _RowLimit | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListImportsQuery]) -> Result[list[Import]]:
    before, limit = call.query.start(NEWEST_FIRST), call.query.limit
    page = await list_imports(context.services.store, context.caller.id, before, limit)
    return page_result(page, NEWEST_FIRST)


async def _get(context: Context, call: Call[None, None]) -> Result[Import]:
    return Result((await _find(context, call)).shown)


async def _create(context: Context, call: Call[FileBody, CreateImportQuery]) -> Result[Import]:
    if replay := await find_replay(context):
        return replay
    store, caller_id, name = context.services.store, context.caller.id, call.query.file_name
    present = await store.write(find_same(caller_id, call.body.digest))
    if present is None or present.undo_request is not None:
        with room_for_file():
            present = await _store_file(context, call.body, name or "")
    return await change(context, mapped(current(present.id, caller_id), _shown))


async def _store_file(context: Context, file: FileBody, name: str) -> StoredImport:
    services = context.services
    with TemporaryFile() as table:
        async with services.admission.reading:
            head = await asyncio.to_thread(read_table, file.content, table)
        first = decode_rows(next(_lines(table)))
        settings = understood(ImportSettings(head.encoding, head.notes, head.last_from), first)
        start = len(first) - len(rows_below(first, settings))
        if start == head.rows:
            raise InvalidBody("The file has no row for a pet.")
        preview = await preview_of(services.store, in_order(_lines(table)), settings)
        new = StoredImport(
            *(0, context.caller.id, name, settings, preview),
            *(head.rows, start, start, services.clock()),
        )
        return await services.store.write(create_import(new, file.digest, _lines(table)))


def _lines(table: BinaryIO) -> Iterator[bytes]:
    table.seek(0)
    return iter(table)


async def _update(context: Context, call: Call[ImportPatch, None]) -> Result[Import]:
    store, patch, present = context.services.store, call.body, await _find(context, call)
    chosen = {f"categories.{word}": number for word, number in (patch.categories or {}).items()}
    chosen["defaultCategoryId"] = patch.default_category_id or None
    wanted = {field: number for field, number in chosen.items() if number is not None}
    page = await list_categories(store, None, len(wanted), [*wanted.values()])
    known = {each.id for each in page.items}
    for field, number in wanted.items():
        if number not in known:
            raise unknown_category(number, field)
    first = await read_batch(store, present.id)
    settings = patched(present.settings, patch, first)
    preview = await preview_of(store, read_batches(store, present.id), settings)
    start, now = len(first) - len(rows_below(first, settings)), context.services.clock()
    unit = change_settings(present, settings, start, preview, now, context.check)
    return await change(context, mapped(unit, _shown))


async def _next_rows(store: Reader, present: StoredImport) -> _Step | None:
    if present.undo_request is not None or not present.waiting:
        return None
    prepared = await prepare(store, present)
    return len(prepared.rows), partial(add_rows, present, prepared)


async def _next_pets(store: Reader, present: StoredImport) -> _Step | None:
    if present.undo_request is not None and not present.waiting:
        return None
    return await count_next_pets(store, present.id), partial(undo_rows, present)


async def _run(context: Context, call: Call[None, None]) -> Result[Import]:
    if replay := await find_replay(context):
        return replay
    present = await _find(context, call)
    if present.undo_request is not None:
        raise ImportClosed(f"import {present.id} was undone: its rows are not added any more")
    return await _in_steps(context, present, _next_rows)


async def _undo(context: Context, call: Call[None, None]) -> Result[Import]:
    if replay := await find_replay(context):
        return replay
    present = await _find(context, call)
    if not present.added:
        raise ImportClosed(f"import {present.id} has added nothing that could be undone")
    return await _in_steps(context, present, _next_pets)


async def _in_steps(
    context: Context,
    present: StoredImport,
    next_step: Callable[[Reader, StoredImport], Awaitable[_Step | None]],
) -> Result[Import]:
    """Take steps for about a second, so that the client can show the progress."""
    context.check(present.shown)
    services, ends, rows = context.services, monotonic() + _RUN_SECONDS, 0
    while (
        rows < _RUN_ROWS
        and monotonic() < ends
        and (step := await next_step(services.store, present))
    ):
        size, unit = step
        count = await _paid(context, size, is_first=not rows)
        if count or not size:
            made = unit(count, now=services.clock(), by=context.author)
            present = await services.store.write(made)
        if count < size:
            break
        rows += size
    return await change(context, mapped(current(present.id, context.caller.id), _shown))


async def _paid(context: Context, rows: int, *, is_first: bool) -> int:
    """Charge rows to the day of a key, and return for how many it has room."""
    caller, limiter = context.caller, context.services.limiter
    if caller.kind != "key" or rows <= is_first:
        return rows
    cost = rows - is_first
    if (await limiter.charge(caller, cost)).verdict != "admitted":
        cost = min(cost, (await limiter.look(caller)).day.remaining)
        if cost and (await limiter.charge(caller, cost)).verdict != "admitted":
            cost = 0
    return cost + is_first


async def _refused(context: Context, call: Call[None, RefusedQuery]) -> Result[None]:
    present = await _find(context, call)
    with room_for_file():
        file = await _file_of_refused(context.services.store, present, call.query.limit)
    headers = [b"content-type: text/csv; charset=utf-8"]
    return Result(None, response=Response(200, b"", headers, file=file))


async def _file_of_refused(
    store: Reader, present: StoredImport, limit: int | UnsetType
) -> BinaryIO:
    # Without the mark, a spreadsheet expects the encoding of the country.
    file = TemporaryFile()  # noqa: SIM115 - the server closes it
    text = TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        write = cells_writer(text, spreadsheet_safe=True)
        settings = present.settings
        names = [column.name for column in settings.columns]
        if settings.header_line is UNSET:
            fields = {place: field for field, place in asdict(settings.mapping).items()}
            fields |= {settings.mapping.category_id: "category"}
            names = [fields.get(place, "") for place, _ in enumerate(names)]
        write([*names, "Line", "Reason"])
        left = MAX_ROWS if limit is UNSET else limit
        async for row, reasons in refused_rows(store, present):
            cells = [*row.cells, *[""] * len(names)][: len(names)]
            write([*cells, row.line, " ".join(reasons)])
            left -= 1
            if not left:
                break
    except BaseException:
        text.close()
        raise
    return cast("BinaryIO", text.detach())


async def _find(context: Context, call: Call[Any, Any]) -> StoredImport:
    return await get_import(context.services.store, call.path_id, context.caller.id)


_EXAMPLE = {
    "id": 7,
    "fileName": "supplier.csv",
    "encoding": "UTF-8",
    "state": "open",
    "rows": 3,
    "waiting": 3,
    "added": 0,
    "refused": 0,
    "deleted": 0,
    "kept": 0,
    "keptPets": [],
    "columns": [
        {"name": "Name", "values": ["Bella", "Oskar", "Tiger"]},
        {"name": "Species", "values": ["Dogs", "Ferrets", "Cats"]},
        {"name": "Status", "values": ["available", "Adopted"]},
    ],
    "hasHeader": True,
    "headerLine": 1,
    "mapping": {"name": 0, "categoryId": 1, "status": 2},
    "unknownCategories": "refuse",
    "values": {},
    "categories": {},
    "notes": [],
    "createdAt": "2026-11-28T10:00:00Z",
    "preview": {
        "added": 1,
        "refused": 2,
        "alreadyHere": 0,
        "withoutCategory": 0,
        "categories": [{"text": "Ferrets", "rows": 1}],
        "statuses": [{"text": "Adopted", "rows": 1, "means": "sold"}],
    },
}
_FINISHED = {name: value for name, value in _EXAMPLE.items() if name != "preview"} | {
    "state": "finished",
    "waiting": 0,
    "added": 1,
    "refused": 2,
}

_RESOURCE = Resource(
    *(Import, "/imports", "Imports", "an import", "pets:write", "pets:write", _EXAMPLE)
)

OPERATIONS = (
    _RESOURCE.list(
        _list,
        ListImportsQuery,
        "Returns a page of your imports, the newest first. An import is kept for 7 days after"
        " its last use.",
        cached=False,
    ),
    _RESOURCE.row(
        *("createImport", "POST", "/imports", "Send a file of pets"),
        "Takes a file, CSV or a workbook of up to 8 MiB and 20,000 rows, and adds nothing yet:"
        " the response says how the file was read, and what a run would do. A file that you"
        " have sent before returns the import that it has, unless that was undone.",
        _create,
        Success(201, "The import, with the `id` the service assigned.", Import, _EXAMPLE),
        query=CreateImportQuery,
        body=FileBody,
        media_types=MEDIA_TYPES,
        body_example="name,category,status\nBella,Dogs,available\n",
        errors=(TooManyImports,),
        tagged=True,
    ),
    _RESOURCE.get(_get, "Returns one of your imports."),
    _RESOURCE.row(
        *("updateImport", "PATCH", "/imports/{importId}", "Change how a file is read"),
        "Changes the fields in the body (RFC 7396), as long as nothing is added: which columns"
        " are the fields, what words and categories mean, and what happens to unknown categories."
        " The `preview` of the response is a new one, even if the body is empty.",
        *(_update, Success(200, "The import as it is now.", Import, _EXAMPLE)),
        body=ImportPatch,
        body_example={
            "unknownCategories": "create",
            "values": {"Adopted": "sold"},
            "categories": {"Dog": 1},
        },
        in_turn=True,
        errors=(UnknownCategory, ImportClosed),
    ),
    _RESOURCE.row(
        *("runImport", "POST", "/imports/{importId}/run", "Run an import"),
        "Adds the pets of the next rows, for about a second. Call it until `waiting` is 0. Each"
        " row costs a request of the day of your key, the first one for the call. Rows that"
        " cannot be added are refused; `getImportRefused` says why.",
        *(_run, Success(200, "The import as it is now.", Import, _FINISHED)),
        in_turn=True,
        waits=True,
        errors=(ImportClosed,),
        tagged=True,
    ),
    _RESOURCE.row(
        *("undoImport", "POST", "/imports/{importId}/undo", "Undo an import"),
        "Deletes the pets that the import added and that were not changed or ordered since,"
        " for about a second. Call it until `waiting` is 0; `keptPets` says which pets stay and"
        " why. Each pet costs a request of the day of your key, as a row of a run does.",
        _undo,
        Success(
            200, "The import as it is now.", Import, _FINISHED | {"state": "undone", "deleted": 1}
        ),
        in_turn=True,
        waits=True,
        errors=(ImportClosed,),
        tagged=True,
    ),
    _RESOURCE.row(
        "getImportRefused",
        "GET",
        "/imports/{importId}/refused",
        "Get the refused rows",
        "Returns the rows that were refused as CSV, with their lines and every reason that"
        " holds now; before the first run, those that would be. Correct them and send the file"
        " again."
        " Cells that a spreadsheet would run as a formula begin with an apostrophe.",
        _refused,
        Success(
            200,
            "The refused rows.",
            example="name,category,line,reason\nTiger,Lions,4,There is no category “Lions”.\n",
            media_type="text/csv",
        ),
        query=RefusedQuery,
        in_turn=True,
        tagged=False,
    ),
    _RESOURCE.delete(delete_import, "Deletes an import. The pets that it has added stay."),
)


T = TypeVar("T")


async def in_order(lines: Iterable[bytes]) -> Batches:
    for line in lines:
        yield decode_rows(line), []


def patched(settings: ImportSettings, patch: ImportPatch, rows: Sequence[Row]) -> ImportSettings:
    if patch.has_header is not UNSET or patch.mapping is not UNSET:
        had_header = settings.header_line is not UNSET
        has_header = had_header if patch.has_header is UNSET else patch.has_header
        mapping: ImportMapping | UnsetType = UNSET
        if patch.mapping is not UNSET:
            mapping = _changed_mapping(settings, patch.mapping)
        settings = understood(settings, rows, has_header=has_header, mapping=mapping)
    return replace(
        merged(settings, patch, "default_status", "default_category_id", "unknown_categories"),
        values=_changed("values", settings.values, patch.values or {}, word_key),
        categories=_changed("categories", settings.categories, patch.categories or {}, name_key),
    )


def _changed_mapping(settings: ImportSettings, patch: ImportMappingPatch) -> ImportMapping:
    mapping = merged(settings.mapping, patch)
    places = [place for place in astuple(mapping) if place is not UNSET]
    if any(place >= len(settings.columns) for place in places):
        msg = f"mapping: expected places of columns, from 0 to {len(settings.columns) - 1}"
        raise InvalidBody(msg)
    if len({*places}) < len(places):
        raise InvalidBody("mapping: expected another column for each field")
    return mapping


def _changed(
    field: str, meanings: dict[str, T], patch: dict[str, T | None], key_of: Callable[[str], str]
) -> dict[str, T]:
    keys = {*map(key_of, patch)}
    kept = {word: meaning for word, meaning in meanings.items() if key_of(word) not in keys}
    changed = kept | {word: meaning for word, meaning in patch.items() if meaning is not None}
    if len(changed) > MAX_LISTED or any(len(word) > MAX_WORD for word in changed):
        msg = f"{field}: expected at most {MAX_LISTED} words of {MAX_WORD} characters in all"
        raise InvalidBody(msg)
    return changed


async def preview_of(reader: Reader, batches: Batches, settings: ImportSettings) -> ImportPreview:
    slices, choices = TimeSlices(), settings.choices({})
    added = refused = already_here = without_category = 0
    # The words of rows, by their keys.
    categories, statuses = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    # Read first: what is indexed meanwhile is found below.
    waiting = set[str]()
    async for texts in PETS_BY_WORD.waiting(reader):
        waiting |= {whole_term(name) for name in texts.values()}
        await slices.rest()
    async for batch, _ in batches:
        rows = cells_of(rows_below(batch, settings), settings)
        known = await find_categories(reader, rows)
        judged = await judge_now(reader, rows, settings, known)
        new, names = new_categories(rows, known), []
        for row, pet in zip(rows, judged, strict=True):
            await slices.rest()
            if isinstance(pet, NewPet):
                names.append(whole_term(pet.name))
            if not row.may_be_pet:
                continue
            without_category += not row.category
            key = name_key(row.category)
            if key in new:
                categories[key].append(row.category)
            key = word_key(row.status)
            if key not in ("", *STATUSES):
                statuses[key].append(row.status)
        here = waiting | await names_here(reader, {*names})
        already_here += sum(name in here for name in names)
        added, refused = added + len(names), refused + len(rows) - len(names)
    mapped = settings.category_ids({})
    unknown = [
        ImportWord(words[0][:MAX_WORD], len(words), category_id=mapped.get(key, UNSET))
        for key, words in categories.items()
    ]
    others = [
        ImportWord(words[0][:MAX_WORD], len(words), meaning_of(key, choices))
        for key, words in statuses.items()
    ]
    unknown.sort(key=lambda word: -word.rows)
    others.sort(key=lambda word: (word.means is not UNSET, -word.rows))
    return ImportPreview(
        added=added,
        refused=refused,
        already_here=already_here,
        without_category=without_category,
        categories=unknown[:MAX_LISTED],
        statuses=others[:MAX_LISTED],
    )
