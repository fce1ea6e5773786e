"""The pages of imports: send a file, look at what it would add, add it, get the refused rows.

In between, a person may choose columns, and decides about categories that there are not.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from petstore.console.allowance import affordable, allowance_of, charge
from petstore.console.downloads import CsvDownload, dated, delimiter_of
from petstore.console.fields import FieldSet, ShownForm, choice
from petstore.console.forms import INSTEAD, Problem, UploadedFile, problem_of
from petstore.console.notices import Notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.templates import isolated
from petstore.domain.csv_files import cells_writer
from petstore.domain.decoding import integer_in
from petstore.errors import Conflict, InvalidBody, PetstoreError
from petstore.http.messages import Response
from petstore.pets.columns import OPTIONAL, Columns, match_columns
from petstore.pets.console_imports import (
    IMPORTS_KEPT,
    MAX_IMPORTS,
    MAX_ROWS,
    ROWS_AT_ONCE,
    ConsoleImport,
    UndecidedCategory,
    add_batch,
    find_import,
    list_imports,
    next_pets,
    read_rows,
    stop_import,
)
from petstore.pets.files import FileRow, cells_of
from petstore.pets.import_categories_form import (
    chosen_categories,
    known_names,
    listed_categories,
)
from petstore.pets.import_preparation import (
    MAX_UNDECIDED,
    choose_columns,
    decide_categories,
    store_import,
)
from petstore.pets.model import NewPet
from petstore.pets.pages import FORM, TABLE
from petstore.pets.rows import keys_of_each
from petstore.time_slices import TimeSlices

_MAX_FILE = 8 * 2**20
# A browser adds some hundred bytes around the file. A larger one than the page allows is told so in
# the words of the page, and one twice as large is not even received.
_MAX_FORM = 2 * _MAX_FILE
_ROWS_A_REQUEST = 1_000
_SHOWN = 20
_SHOWN_NAME, _SHOWN_COLUMNS = 40, 12
_LABELS = FORM.labels
_NEXT_REASON = re.compile(rf"; (?=(?:{'|'.join(_LABELS)}): )")
_ADDED, _LEFT = "add", "leave"
# The fields of decisions. A category follows the first two, as the file has it.
_CATEGORY, _OTHER, _OTHERS = "category.", "other.", "others"
_LATER, _ADD, _LEAVE = ("", "Decide later"), (_ADDED, "Add this category"), (_LEFT, "Leave out")
# What a cell has to be, as a person would say it.
_IN_WORDS = {
    "a whole number of up to 18 digits": "the {}number of a category",
    "one of 'available', 'pending', 'sold'": "available, pending or sold",
    "required; expected": "expected",
}


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
        required=[label.lower() for field, label in _LABELS.items() if field not in OPTIONAL],
        optional=[label.lower() for field, label in _LABELS.items() if field in OPTIONAL],
        allowance=await allowance_of(visit),
        problem=None if error is None else _problem_of(error),
    )


def _problem_of(error: PetstoreError) -> Problem:
    """Return what is wrong with the file: the messages of files begin with a line, not a field."""
    problem = problem_of(error)
    return problem if isinstance(error, Conflict) else Problem("file", problem.text, "CSV file")


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    return await _import_page(visit, await _find(visit), error)


async def _go_on(visit: PageRequest) -> Response:
    """Add the next rows, as long as the key has requests left: each costs one.

    They are charged before they are added. Two tabs share what is to be added.
    """
    services, added = visit.services, 0
    found = await _find(visit)
    while (pets := await _affordable(visit, found, _ROWS_A_REQUEST - added)) and await charge(
        visit, len(pets)
    ):
        unit = add_batch(
            found.id,
            visit.caller.id,
            now=services.clock(),
            limit=len(pets),
            by=visit.author,
            known=await keys_of_each(pet.name for pet in pets),
        )
        found = await services.store.write(unit)
        added += len(pets)
    if await _affordable(visit, found, 1):
        return await _import_page(visit, found, goes_on=True)
    return await visit.redirect(f"/import/{found.id}")


async def _affordable(visit: PageRequest, found: ConsoleImport, limit: int) -> list[NewPet]:
    """Return the animals of an import that may be added next, at most ``limit``."""
    if not found.waiting:
        return []
    pets = await next_pets(visit.services.store, found.id)
    return pets[: await affordable(visit, min(len(pets), ROWS_AT_ONCE, limit))]


async def _choose(visit: PageRequest) -> Response:
    """Prepare the import anew, with the columns of the form."""
    services, found = visit.services, await _find(visit)
    if found.added:
        msg = "the import has added animals already; send the file again for other columns"
        raise Conflict(msg)
    import_id = await choose_columns(
        services.store,
        visit.caller.id,
        found,
        _chosen_columns(visit, found.layout.columns),
        services.clock,
        named_categories=visit.may("listCategories"),
    )
    return await visit.redirect(f"/import/{import_id}")


def _chosen_columns(visit: PageRequest, columns: Columns) -> Columns:
    """Return the columns with the fields that the form has.

    Raises:
        InvalidBody: a column is missing, or is to be two fields.
    """
    places: dict[str, int | None] = {}
    for field in _LABELS:
        number = integer_in(visit.form.text(field))
        place = number if number is not None and 0 <= number < len(columns.names) else None
        if place is None and field not in OPTIONAL:
            msg = f"{field}: choose the column that has it"
            raise InvalidBody(msg)
        if place is not None and place in places.values():
            msg = f"{field}: choose another column; one column cannot be two fields"
            raise InvalidBody(msg)
        places[field] = place
    return match_columns(columns.names, places)


class _DecisionsRefused(InvalidBody):
    """Decisions are refused: ``problems`` say what is wrong with each field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].text)
        self.problems = problems


async def _decide(visit: PageRequest) -> Response:
    """Decide about categories that there are not: add one, take another, or leave rows out.

    If a decision is refused, none is made.
    """
    found, services = await _find(visit), visit.services
    decisions: dict[str, int | None] = {}
    # The fields that decide, by the keys of the categories, and what they have.
    fields, chosen, new = dict[str, str](), dict[str, str](), dict[str, str]()
    for category in found.undecided:
        field, text = _decided(visit, category)
        is_typed = field.startswith(_OTHER)
        if text == _LEFT and not is_typed:
            decisions[category.key] = None
        elif text and (text != _ADDED or is_typed):
            fields[category.key], chosen[field] = field, text
        elif text and category.is_name:
            field = _CATEGORY + category.text
            fields[category.key], new[field] = field, category.text
    ids = await chosen_categories(visit, chosen, new)
    if isinstance(ids, list):
        raise _DecisionsRefused(ids)
    decisions |= {key: ids[field] for key, field in fields.items()}
    if not decisions:
        return await visit.redirect(f"/import/{found.id}")
    await decide_categories(services.store, visit.caller.id, found.id, decisions, services.clock)
    count = len(decisions)
    told = f"You decided about {count} {'category' if count == 1 else 'categories'}."
    return await visit.redirect(f"/import/{found.id}", Notice(told))


def _decided(visit: PageRequest, category: UndecidedCategory) -> tuple[str, str]:
    """Return the field that decides about a category, and what it has."""
    if other := _typed_for(visit, category):
        return _OTHER + category.text, other
    if chosen := visit.form.line(_CATEGORY + category.text):
        return _CATEGORY + category.text, chosen
    return _OTHERS, visit.form.line(_OTHERS)


def _typed_for(visit: PageRequest, category: UndecidedCategory) -> str:
    """Return the name that a person typed for a category, or the one that they took instead."""
    name = _OTHER + category.text
    return visit.form.line(INSTEAD + name) or visit.form.line(name)


async def _import_page(
    visit: PageRequest,
    found: ConsoleImport,
    error: PetstoreError | None = None,
    *,
    goes_on: bool = False,
) -> Response:
    refused = error.problems if isinstance(error, _DecisionsRefused) else ()
    questions = await _questions(visit, found, refused)
    store, columns = visit.services.store, found.layout.columns
    others = await list_imports(store, visit.caller.id)
    same = (
        other
        for other in others
        if other.digest == found.digest and other.added > other.undone and other.id != found.id
    )
    animals = [row async for row in read_rows(store, found.id, "waiting", _SHOWN)]
    return visit.page(
        "import_file.html",
        error=error,
        found=found,
        goes_on=goes_on,
        allowance=await allowance_of(visit),
        kept_until=found.created_at + IMPORTS_KEPT,
        same=next(same, None),
        animals=animals,
        shown=TABLE.fields,
        names=await visit.category_names({row.pet.category_id for row in animals if row.pet}),
        refused=[
            row._replace(reason=_in_words(visit, found, row))
            async for row in read_rows(store, found.id, "refused", _SHOWN)
        ],
        problem=_problem_of_page(error, questions),
        columns=_shown_names(columns.names)[:_SHOWN_COLUMNS],
        unsure=[_LABELS[field].lower() for field in _unsure(columns)],
        used=_used(columns),
        unused=_shown_names(columns.unused),
        form=_columns_form(visit, columns, error),
        cells_of=lambda row: cells_of(row.text, found.layout.delimiter)[:_SHOWN_COLUMNS],
        questions=questions,
        for_others=next((each for each in refused if each.field == _OTHERS), None),
        others=[_LATER, *([_ADD] if visit.may("createCategory") else []), _LEAVE],
        max_undecided=MAX_UNDECIDED,
        known_names=await known_names(visit) if found.undecided else [],
    )


def _columns_form(visit: PageRequest, columns: Columns, error: PetstoreError | None) -> ShownForm:
    """Return the form in which a person chooses columns, with those that are so or likely."""
    names = [(str(place), name) for place, name in enumerate(_shown_names(columns.names))]
    fields = FieldSet(
        *(
            choice(field, label, ("", "none" if field in OPTIONAL else "choose one"), *names)
            for field, label in _LABELS.items()
        )
    )
    places = {field: columns.place(field) for field in _LABELS}
    texts = {field: "" if place is None else str(place) for field, place in places.items()}
    is_sent = texts.keys() <= visit.form.fields.keys()
    return fields.new(visit.form, error if is_sent else None, texts)


def _unsure(columns: Columns) -> Sequence[str]:
    """Return the fields for which a person chooses a column first."""
    return () if any(columns.fields) else match_columns(columns.names).unsure


def _used(columns: Columns) -> list[tuple[str, str]]:
    """Return the fields whose columns have other names, with these."""
    pairs = zip(_shown_names(columns.names), columns.fields, strict=True)
    return [
        (_LABELS[field], name)
        for name, field in pairs
        if field in _LABELS and name.casefold() not in (field.casefold(), _LABELS[field].casefold())
    ]


def _shown_names(columns: Sequence[str]) -> list[str]:
    """Return what a page calls columns: a name may be missing, or very long."""
    return [
        f"{name[:_SHOWN_NAME]}…" if len(name) > _SHOWN_NAME else name or f"column {number}"
        for number, name in enumerate(columns, 1)
    ]


class _Question(NamedTuple):
    """What a person may decide about a category, and what they chose or typed last.

    ``problem`` is what is wrong with that, and ``hint`` asks which category they may mean.
    """

    category: UndecidedCategory
    options: Sequence[tuple[str, str]]
    chosen: str
    typed: str
    hint: str
    problem: Problem | None


async def _questions(
    visit: PageRequest, found: ConsoleImport, refused: Sequence[Problem]
) -> list[_Question]:
    """Return a question for each undecided category. Without a long list, its options are all."""
    if not found.undecided:
        return []
    may_add = visit.may("createCategory")
    unknown = [category.text if category.is_name else "" for category in found.undecided]
    lists = zip(found.undecided, await listed_categories(visit, unknown), strict=True)
    return [
        _Question(
            category,
            [
                *(_LATER, *([_ADD] if may_add and category.is_name else []), _LEAVE),
                *((str(each), f"Use {isolated(name)}") for each, name in listed.items()),
            ],
            visit.form.line(_CATEGORY + category.text),
            _typed_for(visit, category),
            hint,
            _problem_of_category(category, refused),
        )
        for category, (listed, hint) in lists
    ]


def _problem_of_category(category: UndecidedCategory, refused: Sequence[Problem]) -> Problem | None:
    fields = _CATEGORY + category.text, _OTHER + category.text
    return next((problem for problem in refused if problem.field in fields), None)


def _problem_of_page(error: PetstoreError | None, questions: Sequence[_Question]) -> Problem | None:
    """Return what the top of the page says of an error, with links to the controls."""
    if not isinstance(error, _DecisionsRefused):
        return None if error is None else problem_of(error, _LABELS)
    controls = {
        prefix + question.category.text: (f"{prefix[:-1]}-{number}", question.category.text)
        for number, question in enumerate(questions, 1)
        for prefix in (_CATEGORY, _OTHER)
    }
    linked: list[Problem] = []
    for problem in error.problems:
        control, name = controls.get(problem.field, (_OTHERS, "All the others"))
        linked.append(problem._replace(field=control, label=isolated(name)))
    return linked[0]._replace(others=linked[1:])


def _in_words(visit: PageRequest, found: ConsoleImport, row: FileRow) -> str:
    """Return why a row is refused, all of it in the words of the page."""
    reasons = _NEXT_REASON.split(row.reason)
    return ". ".join(_reason_in_words(visit, found, row, reason) for reason in reasons)


def _reason_in_words(visit: PageRequest, found: ConsoleImport, row: FileRow, reason: str) -> str:
    named = "name or the " if visit.may("listCategories") else ""
    problem = problem_of(InvalidBody(reason), _LABELS)
    text = f"{problem.label}: {problem.text}" if problem.field else reason
    for exact, plain in _IN_WORDS.items():
        text = text.replace(exact, plain.format(named))
    got = found.layout.cells(row).get("status", "") if problem.field == "status" else ""
    return f"{text}; got {got.strip()[:_SHOWN_NAME]!r}" if got else text


async def _refused(visit: PageRequest) -> Response:
    found = await _find(visit)
    file = CsvDownload()
    if not visit.is_head:
        await _write_refused(visit, found, file)
    return file.response(dated("refused", visit.services.clock()))


async def _write_refused(visit: PageRequest, found: ConsoleImport, file: CsvDownload) -> None:
    columns, delimiter = found.layout
    write = cells_writer(file, spreadsheet_safe=True, delimiter=delimiter)
    write(["line", "reason", *columns.header])
    slices = TimeSlices()
    async for row in read_rows(visit.services.store, found.id, "refused"):
        write([row.line, _in_words(visit, found, row), *cells_of(row.text, delimiter)])
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
    names = await known_names(visit) or ["1"]
    file = CsvDownload()
    write = cells_writer(file, spreadsheet_safe=True, delimiter=delimiter_of(visit.form))
    write(["name", "category", "status"])
    write(["Muesli", names[0], "available"])
    write(["Knödel", names[-1], ""])
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
    ConsolePage(
        "POST", "/import/{importId}/columns", _choose, "createPet", refused=_show, has_file=True
    ),
    ConsolePage(
        "POST", "/import/{importId}/categories", _decide, "createPet", refused=_show, has_file=True
    ),
    ConsolePage("POST", "/import/{importId}/discard", _discard, needs="createPet"),
)
