"""Animals in files: CSV and JSON Lines, in and out.

An import goes in batches, and each batch commits together with how far the file has been read. So
an import that was interrupted is run again and goes on where it stopped: a file is known by the
digest of its content.
"""

import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from petstore.clock import Clock
from petstore.databases.categories import select_category
from petstore.databases.contract import Store, T, Unit
from petstore.databases.pet_imports import begin_import, import_batch
from petstore.domain.decoding import decode_json, expectation, field_types, number_or_text
from petstore.domain.pets import NewPet, Pet, PetFilter
from petstore.errors import InvalidBody, Unavailable
from petstore.store.pets import list_pets, unknown_category

FileFormat: TypeAlias = Literal["csv", "jsonl"]

COLUMNS = ("id", "name", "categoryId", "status")

# The last are =, +, - and @ in full width, which some spreadsheets take for the others.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")

_BATCH = 1000
_BREATH = 0.005
_RETRY_SECONDS = 0.5


class Output(Protocol):
    """What text is written to."""

    def write(self, text: str, /) -> object:
        """Write ``text``."""
        ...


class FileRow(NamedTuple):
    """A row of a file: the line it starts at, its text, and its animal or why it has none."""

    line: int
    text: str
    pet: NewPet | None
    reason: str = ""


class ImportResult(NamedTuple):
    """What an import did. ``resumed_at`` is the number of rows done before."""

    added: int
    refused: int
    resumed_at: int
    was_complete: bool


class ImportCallbacks(NamedTuple):
    """What an import tells meanwhile.

    ``on_refused`` takes each refused row, ``on_progress`` the rows and the bytes of the file that
    are done. ``may_retry`` takes the error of a write that the database did not confirm, and tells
    whether to try again after a pause; then no row goes in twice.
    """

    on_refused: Callable[[FileRow], None]
    on_progress: Callable[[int, int], object]
    may_retry: Callable[[Unavailable], bool] = lambda _: False


async def import_pets(
    store: Store,
    path: Path,
    file_format: FileFormat,
    clock: Clock,
    *,
    again: bool = False,
    strict_categories: bool = False,
    callbacks: ImportCallbacks,
) -> ImportResult:
    """Add the animals of a file.

    An import that goes on calls back with the rows refused before, too. With
    ``strict_categories`` an animal of a category that is not registered is refused.

    Raises:
        InvalidBody: the file is no table of animals at all.
        Conflict: the same file is being imported by somebody else.
        OSError: the file cannot be read.
        Unavailable: the database is out of reach; run it again to go on.
    """
    import asyncio  # here, so that `petstore --help` is instant

    with path.open("rb") as file:
        digest = file_digest(file, "sha256").digest()
        file.seek(0)
        rows = _read_csv(file) if file_format == "csv" else _read_json_lines(file)

        async def next_batch(size: int) -> list[FileRow]:
            batch = list(islice(rows, size))
            return await _refuse_unknown(store, batch) if strict_categories else batch

        def report(batch: list[FileRow]) -> int:
            refused = [row for row in batch if row.pet is None]
            for row in refused:
                callbacks.on_refused(row)
            return len(refused)

        async def write(attempt: Callable[[bool], Unit[T]]) -> T:
            return await _write_patiently(store, attempt, callbacks.may_retry)

        start, was_complete = await write(lambda _: begin_import(digest, again=again))
        if was_complete:
            return ImportResult(0, 0, start, was_complete=True)
        added = refused = done = 0
        while done < start:
            batch = await next_batch(min(_BATCH, start - done))
            refused += report(batch)
            done += len(batch)
            callbacks.on_progress(done, file.tell())
        finished = False
        while not finished:
            batch = await next_batch(_BATCH)
            finished = len(batch) < _BATCH
            pets = [row.pet for row in batch if row.pet is not None]
            span = range(done, done + len(batch))
            finished_at = clock() if finished else None
            await write(partial(import_batch, digest, span, pets, finished_at))
            refused += report(batch)
            done, added = span.stop, added + len(pets)
            callbacks.on_progress(done, file.tell())
            # A running service waits for the same lock: let it in between.
            await asyncio.sleep(_BREATH)
    return ImportResult(added, refused, start, was_complete=False)


async def _write_patiently(
    store: Store, attempt: Callable[[bool], Unit[T]], may_retry: Callable[[Unavailable], bool]
) -> T:
    """Run a unit of work until it is durable; ``attempt`` makes it, told whether it is a retry.

    Raises:
        Unavailable: it is not, and may not be tried again.
    """
    import asyncio

    is_retry = False
    while True:
        try:
            return await store.write(attempt(is_retry))
        except Unavailable as error:
            if not may_retry(error):
                raise
        is_retry = True
        await asyncio.sleep(_RETRY_SECONDS)


async def _refuse_unknown(store: Store, rows: list[FileRow]) -> list[FileRow]:
    """Return ``rows``, those of categories that are not registered without their animals."""
    wanted = {row.pet.categoryId for row in rows if row.pet is not None}
    unknown = {number for number in wanted if not await store.read(select_category(number))}
    return [
        row._replace(pet=None, reason=unknown_category(row.pet.categoryId).message)
        if row.pet is not None and row.pet.categoryId in unknown
        else row
        for row in rows
    ]


async def export_pets(
    store: Store,
    file: Output,
    file_format: FileFormat,
    on_progress: Callable[[int], None],
    *,
    spreadsheet_safe: bool = False,
) -> int:
    """Write every animal to ``file``, calling back with the number so far; return that number.

    With ``spreadsheet_safe`` CSV has ``'`` before names that begin like a formula; an import would
    take it for a part of the name.

    Raises:
        OSError: the file cannot be written.
        Unavailable: the database is out of reach.
    """
    if file_format == "csv":
        write = _csv_writer(file, _neutralised if spreadsheet_safe else str)
    else:
        write = _json_lines_writer(file)
    count, after = 0, None
    while True:
        page = await list_pets(store, PetFilter(), after, _BATCH)
        for pet in page.items:
            write(pet)
        count += len(page.items)
        on_progress(count)
        after = page.next_after
        if after is None:
            return count


def _read_csv(file: BinaryIO) -> Iterator[FileRow]:
    lines = _Lines(file)
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, [])
    except csv.Error:
        header = []
    _check_header(header)
    while True:
        lines.start_record()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield FileRow(lines.first, lines.text, None, f"expected CSV ({error})")
            continue
        if any(cells[len(header) :]):
            reason = f"expected {len(header)} fields, got {len(cells)}"
            yield FileRow(lines.first, lines.text, None, reason)
        elif cells:
            yield _csv_row(lines.first, lines.text, dict(zip(header, cells, strict=False)))


def _check_header(header: list[str]) -> None:
    found = ", ".join(header)[:200]
    if not {"name", "categoryId"} <= set(header):
        msg = (
            "line 1: expected the names of the columns, separated by commas, name and categoryId"
            f" among them; got {found!r}"
        )
        raise InvalidBody(msg)
    if any(header.count(column) > 1 for column in COLUMNS):
        msg = f"line 1: expected each column once; got {found!r}"
        raise InvalidBody(msg)


class _Lines(Iterator[str]):
    """The lines of a CSV file, remembering which of them the present record is made of."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._count = 0
        self.start_record()

    def start_record(self) -> None:
        self.first = self._count + 1
        self.text = ""

    def __next__(self) -> str:
        line = next(self._file)
        self._count += 1
        encoding = "utf-8-sig" if self._count == 1 else "utf-8"
        # What is not UTF-8 is kept apart here, and refused with its row.
        text = line.decode(encoding, "surrogateescape")
        self.text += text
        return text


def _csv_row(line: int, text: str, cells: dict[str, str]) -> FileRow:
    kinds = field_types(NewPet)
    values = {
        name: number_or_text(cell, kinds[name])
        for name, cell in cells.items()
        if name in kinds and not (name == "status" and cell == "")
    }
    try:
        text.encode()
        return FileRow(line, text, msgspec.convert(values, NewPet))
    except UnicodeEncodeError:
        return FileRow(line, text, None, "expected UTF-8")
    except msgspec.ValidationError as error:
        return FileRow(line, text, None, expectation(NewPet, error))


def _read_json_lines(file: BinaryIO) -> Iterator[FileRow]:
    for number, raw in enumerate(file, 1):
        if not raw.strip():
            continue
        text = raw.decode("utf-8", "surrogateescape")
        try:
            yield FileRow(number, text, decode_json(raw.strip(), NewPet))
        except InvalidBody as error:
            yield FileRow(number, text, None, error.message.replace("the body", "the line", 1))


def _neutralised(name: str) -> str:
    """Return ``name`` as spreadsheets show it: they run what begins like a formula.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{name}" if name.startswith(_FORMULA_STARTS) else name


def _csv_writer(file: Output, name_of: Callable[[str], str]) -> Callable[[Pet], Any]:
    writer = csv.writer(file, lineterminator="\n")
    # Python writes a lone carriage return without quotes, and could not read it back.
    quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)

    def write(pet: Pet) -> None:
        status = "" if pet.status is UNSET else pet.status
        chosen = quoting if "\r" in pet.name else writer
        chosen.writerow((pet.id, name_of(pet.name), pet.categoryId, status))

    return write


def _json_lines_writer(file: Output) -> Callable[[Pet], Any]:
    def write(pet: Pet) -> None:
        file.write(json.dumps(msgspec.to_builtins(pet), ensure_ascii=False) + "\n")

    return write
