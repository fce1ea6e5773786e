"""The pages of imports: send a file, see how it is read, add its pets, undo that."""

import csv
from collections.abc import Sequence
from functools import partial
from io import StringIO
from operator import eq
from typing import Any

from msgspec import UNSET, to_builtins
from msgspec.structs import replace

from petstore.categories.pages import first_categories
from petstore.console.downloads import dated
from petstore.console.forms import FieldSet, choice, isolated, optional
from petstore.console.page import ConsolePage, Notice, PageRequest
from petstore.domain.decoding import integer_in
from petstore.domain.names import name_key
from petstore.errors import InvalidBody
from petstore.http.messages import Response
from petstore.imports.columns import ImportColumn, ImportMapping
from petstore.imports.model import Import, ImportPreview, ImportWord
from petstore.imports.reading import MAX_ROWS
from petstore.interface.bodies import MAX_UPLOAD, digest_of
from petstore.interface.operation import FileBody
from petstore.pets.model import STATUSES

# A browser adds some hundred bytes around the file. A larger one than the page allows is told so in
# the words of the page, and one twice as large is not even received.
_MAX_FORM = 2 * MAX_UPLOAD
_REFUSED = 20
_WORDS = 30
_FIELDS = {name: name.capitalize() for name in ImportMapping.__struct_encode_fields__} | {
    "categoryId": "Category",
    "id": "Number in this store",
}
_VALUE, _CATEGORY, _OTHERS = "value.", "category.", "others"
_SETTINGS = ("defaultStatus", "defaultCategoryId", "unknownCategories")
_status, _number = partial(choice, parse=optional), partial(choice, parse=integer_in)
_STATUSES = [(status, status) for status in STATUSES]
_MEANINGS = (("", "Skip these rows"), *_STATUSES, ("none", "no status"))
_KEPT = {
    "changed": "It was changed after the import.",
    "ordered": "It was ordered.",
    "deleted": "It was deleted already.",
}


async def _start(request: PageRequest) -> Response:
    found = await request.list_page("listImports")
    return request.page(
        "imports.html",
        imports=found.value,
        cursor=found.next,
        form=FieldSet().new(request.form, request.error),
        max_rows=MAX_ROWS,
        max_mebibytes=MAX_UPLOAD // 2**20,
    )


async def _upload(request: PageRequest) -> Response:
    file = request.form.file
    if file is None or file.field != "file" or not (file.name or file.size):
        raise InvalidBody("file: choose a file first")
    if file.size > MAX_UPLOAD:
        raise InvalidBody(f"file: the file is larger than {MAX_UPLOAD // 2**20} MB; divide it")
    body = FileBody(file.content, "text/csv", await digest_of(file.content))
    query = {"fileName": file.name.replace("\0", "")[-255:]}
    found: Import = (await request.execute("createImport", body, query=query)).value
    if found.state == "open" and not found.default_status:
        listed = await first_categories(request)
        ids = {_singular(name): number for number, name in listed.items()}
        words = {each.text: ids.get(_singular(each.text)) for each in _preview(found).categories}
        patch = {"defaultStatus": STATUSES[0], "categories": words}
        await request.execute("updateImport", patch, path_id=found.id)
    told = None if found.state == "open" else Notice("You sent this file before. Nothing is added.")
    return await request.redirect(f"/import/{found.id}", told)


def _singular(category: str) -> str:
    return name_key(category).removesuffix("s")


async def _show(request: PageRequest) -> Response:
    return await _page(request, await _find(request))


async def _page(request: PageRequest, found: Import, *, continues: str = "") -> Response:
    preview, categories = _preview(found), list[tuple[str, str]]()
    if found.state == "open":
        listed = await first_categories(request)
        categories += [(str(number), isolated(name)) for number, name in listed.items()]
    # Without names, there is one reason for all rows, and it is at the top.
    has_refused = found.refused or (preview.refused and found.mapping.name is not UNSET)
    form = _form(found, categories)
    return request.page(
        "import_preview.html" if found.state == "open" else "import.html",
        found=found,
        continues=continues,
        refused=await _refused_rows(request) if has_refused else [],
        kept_because=_KEPT,
        form=form.new(request.form, request.error, _texts(found)),
        columns=[*_FIELDS],
        words=[name for name in form.labels if name.startswith(_VALUE) or name == _OTHERS],
        categories=[name for name in form.labels if name.startswith(_CATEGORY)],
    )


def _preview(found: Import) -> ImportPreview:
    return ImportPreview() if found.preview is UNSET else found.preview


async def _refused_rows(request: PageRequest) -> list[list[str]]:
    result = await request.execute("getImportRefused", query={"limit": _REFUSED})
    assert result.response is not None  # noqa: S101 - it is a file
    assert result.response.file is not None  # noqa: S101
    with result.response.file as file:
        file.seek(0)
        text = file.read().decode("utf-8-sig")
    return [*csv.reader(StringIO(text, newline=""))][1:]


def _form(found: Import, categories: Sequence[tuple[str, str]]) -> FieldSet:
    names = [
        (str(number), isolated(each.name[:40] or f"{number + 1}: {_values_of(each)[:40]}"))
        for number, each in enumerate(found.columns)
    ]
    places: dict[str, int] = to_builtins(found.mapping)
    line = found.header_line if found.has_header else 1
    header = (
        ("true", f"Line {line} has the names of the columns"),
        ("false", "Every line is a pet"),
    )
    statuses, unknown = _preview(found).statuses, _preview(found).categories
    new = sum(word.category_id is UNSET for word in unknown)
    return FieldSet(
        choice("hasHeader", "Names of the columns", *header, parse=partial(eq, "true")),
        *(
            _number(
                field,
                label,
                ("", "no column"),
                *names,
                hint=_values_of(found.columns[places[field]]) if field in places else "",
            )
            for field, label in _FIELDS.items()
        ),
        _status("defaultStatus", "Rows without a status", ("", "no status"), *_STATUSES),
        _number("defaultCategoryId", "Rows without a category", ("", "Skip them"), *categories),
        choice(
            "unknownCategories",
            "New categories",
            ("refuse", "Skip their rows"),
            ("create", "Add this category" if new == 1 else f"Add these {new} categories"),
        ),
        *(_status(_VALUE + word.text, _label(word), *_MEANINGS) for word in statuses[:_WORDS]),
        *([_status(_OTHERS, "All that are not decided", *_MEANINGS)] if len(statuses) > 1 else []),
        *(
            _number(_CATEGORY + word.text, _label(word), ("", "none of these"), *categories)
            for word in unknown[:_WORDS]
        ),
    )


def _values_of(column: ImportColumn) -> str:
    return ", ".join(map(isolated, column.values)) or "empty"


def _label(word: ImportWord) -> str:
    return f"{isolated(word.text)}, {word.rows} {'row' if word.rows == 1 else 'rows'}"


def _texts(found: Import) -> dict[str, str]:
    places: dict[str, int] = to_builtins(found.mapping)
    return {
        "hasHeader": "true" if found.has_header else "false",
        **{field: str(places.get(field, "")) for field in _FIELDS},
        "defaultStatus": found.default_status or "",
        "defaultCategoryId": str(found.default_category_id or ""),
        "unknownCategories": found.unknown_categories,
        **{_VALUE + word.text: word.means or "" for word in _preview(found).statuses},
        **{
            _CATEGORY + word.text: str(word.category_id or "")
            for word in _preview(found).categories
        },
    }


async def _update(request: PageRequest) -> Response:
    await _apply(request, await _find(request))
    return await request.redirect(f"/import/{request.path_id}")


async def _apply(request: PageRequest, found: Import) -> Import:
    form, preview = _form(found, []), _preview(found)
    texts = {name: request.form.line(name) for name in form.labels if name in request.form.fields}
    typed = form.values(texts)
    others = typed.get(_OTHERS)
    patch: dict[str, Any] = {name: typed[name] for name in _SETTINGS if name in typed}
    if typed.get("hasHeader", found.has_header) != found.has_header:
        patch["hasHeader"] = typed["hasHeader"]  # and the columns are found again
    else:
        patch["mapping"] = {name: typed[name] for name in _FIELDS if name in typed}
    patch["values"] = {
        word.text: typed.get(_VALUE + word.text) or others
        for word in preview.statuses
        if _VALUE + word.text in typed or others
    }
    patch["categories"] = {
        word.text: typed[_CATEGORY + word.text]
        for word in preview.categories
        if _CATEGORY + word.text in typed
    }
    changed: Import = (await request.execute("updateImport", patch)).value
    return changed


async def _run(request: PageRequest) -> Response:
    found = await _find(request)
    if found.state == "open" and request.form.fields:
        found = await _apply(request, found)
    return await _step(request, "runImport", "run")


async def _step(request: PageRequest, operation_id: str, part: str) -> Response:
    found: Import = (await request.execute(operation_id)).value
    if found.waiting:
        return await _page(request, found, continues=part)
    return await request.redirect(f"/import/{found.id}")


_undo = partial(_step, operation_id="undoImport", part="undo")


async def _save_refused(request: PageRequest) -> Response:
    response = (await request.execute("getImportRefused")).response
    assert response is not None  # noqa: S101 - it is a file
    name = dated("refused", request.services.clock())
    disposition = f'content-disposition: attachment; filename="{name}"'.encode("ascii")
    headers = [*response.headers, disposition, b"cache-control: no-store"]
    return replace(response, headers=headers)


async def _delete(request: PageRequest) -> Response:
    found = await _find(request)
    await request.execute("deleteImport")
    name = isolated(found.file_name or "a file")
    told = f"The import of {name} is deleted." + (" Its pets stay." if found.added else "")
    return await request.redirect("/import", Notice(told))


async def _find(request: PageRequest) -> Import:
    found: Import = (await request.execute("getImport")).value
    return found


PAGES = (
    ConsolePage("GET", "/import", _start, "listImports"),
    ConsolePage(
        "POST", "/import", _upload, "createImport", _start, max_bytes=_MAX_FORM, has_file=True
    ),
    ConsolePage("GET", "/import/{importId}", _show, "getImport", has_file=True),
    ConsolePage("POST", "/import/{importId}", _update, "updateImport", _show, has_file=True),
    ConsolePage("POST", "/import/{importId}/run", _run, "runImport", _show, has_file=True),
    ConsolePage("POST", "/import/{importId}/undo", _undo, "undoImport", _show, has_file=True),
    ConsolePage(
        "GET", "/import/{importId}/refused.csv", _save_refused, "getImportRefused", has_file=True
    ),
    ConsolePage("POST", "/import/{importId}/delete", _delete, needs="deleteImport"),
)
