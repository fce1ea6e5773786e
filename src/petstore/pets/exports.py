"""Pets into files: CSV and JSON Lines."""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from petstore.databases.contract import Reader
from petstore.domain.csv_files import Delimiter, Output, csv_writer
from petstore.pets.files import COLUMNS, FileFormat
from petstore.pets.model import PetFilter
from petstore.pets.store import list_pets

_BATCH = 1000


class ExportPart(NamedTuple):
    """The pets of an export: at most ``limit`` of those ``wanted``, with ids above ``after``."""

    wanted: PetFilter = PetFilter()
    after: int | None = None
    limit: int = sys.maxsize


_EVERYTHING = ExportPart()


async def export_pets(
    store: Reader,
    file: Output,
    file_format: FileFormat,
    on_progress: Callable[[int], None],
    *,
    part: ExportPart = _EVERYTHING,
    spreadsheet_safe: bool = False,
    delimiter: Delimiter = ",",
) -> int:
    """Write the pets of a part, or every one, to ``file``; return how many.

    Call back with the number so far, and let others have the event loop in between.

    With ``spreadsheet_safe``, CSV has ``'`` before formulas in names; see ``csv_writer``. An import
    takes it for a part of the name.

    Raises:
        OSError: the file cannot be written.
        Unavailable: the database is unreachable.
    """
    from petstore.time_slices import TimeSlices  # here, so that `petstore --help` is instant

    slices = TimeSlices()
    write = pet_writer(file, file_format, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    count, after = 0, part.after
    while True:
        page = await list_pets(store, part.wanted, after, min(_BATCH, part.limit - count))
        for pet in page.items:
            write(msgspec.to_builtins(pet))
            await slices.rest()
        count += len(page.items)
        on_progress(count)
        after = page.next_after
        if after is None or count == part.limit:
            return count


def pet_writer(
    file: Output, file_format: FileFormat, *, spreadsheet_safe: bool, delimiter: Delimiter = ","
) -> Callable[[dict[str, Any]], Any]:
    """Begin a file of pets, and return what writes a pet, given as its JSON."""
    if file_format == "csv":
        return csv_writer(file, COLUMNS, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    return lambda pet: file.write(json.dumps(pet, ensure_ascii=False) + "\n")
