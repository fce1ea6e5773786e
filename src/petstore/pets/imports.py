"""Imports of pets: rows of a file go to a destination in batches, and each one is accounted for.

``ImportRun`` is what all imports share. Its destination is a database, here, or a service
(``pets/transfers.py``), or what a person looks at first (``console_imports.py``).

In a database each batch commits together with how far the file has been read, so an interrupted
import continues where it stopped when it is run again.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from petstore.categories.store import (
    first_category_names,
    ids_of_categories,
    lock_categories,
    unknown_category,
)
from petstore.clock import MINUTE, Clock, Milliseconds
from petstore.databases.contract import Reader, Statement, Store, T, Unit
from petstore.errors import Conflict, Unavailable
from petstore.pets.files import CsvLayout, FileRow, ImportFile
from petstore.pets.model import NewPet
from petstore.pets.store import create_pets

MAX_WAIT = 5 * MINUTE
"""How long an import waits for its database: a slow disk has recovered, a transaction ended."""

_BATCH = 1000
_KNOWN = 1000
_PAUSE_SECONDS = 0.005
_RETRY_SECONDS = 0.5


@dataclass
class ImportRun:
    """A file on its way to a destination.

    ``done`` rows are behind it, ``refused`` ones among them. ``added`` is how many pets this run
    added. ``line`` is where the present batch begins. ``on_refused`` gets each refused row, and
    ``on_progress`` the bytes of the file that are done.
    """

    file: ImportFile
    on_refused: Callable[[FileRow], object] = lambda _: None
    on_progress: Callable[[int], object] = lambda _: None
    done: int = 0
    added: int = 0
    refused: int = 0
    line: int = 1

    def batches(
        self, size: int, characters: int = sys.maxsize, start: int = 0
    ) -> Iterator[list[FileRow]]:
        """Yield the rows in batches of at most ``size``, fewer if they are long or some are blank.

        The destination counts those ``added``, and replaces those that it refuses, in the list. A
        batch is done when the next one is taken. None goes beyond row ``start``.

        Raises:
            InvalidBody: the file has too many lines.
        """
        for batch in self._read(size, characters, start):
            self.line = batch[0].line if batch else self.line
            yield batch
            self.settle(batch)

    def settle(self, rows: Sequence[FileRow]) -> None:
        """Account for rows that are done.

        A destination that goes row by row calls it, and clears the batch.
        """
        refused = [row for row in rows if row.pet is None]
        for row in refused:
            self.on_refused(row)
        self.refused += len(refused)
        self.done += len(rows)
        self.on_progress(self.file.content.tell())

    def _read(self, size: int, characters: int, start: int) -> Iterator[list[FileRow]]:
        batch: list[FileRow] = []
        lines, length, left = 0, 0, _lines_left(size, start)
        for row in self.file.rows:
            lines += 1
            if row is not None:
                batch.append(row)
                length += len(row.text)
            if lines == left or length >= characters:
                yield batch
                batch, lines, length, left = [], 0, 0, _lines_left(size, start - self.done)
        if lines:
            yield batch


def _lines_left(size: int, before_start: int) -> int:
    """Return how many lines the next batch has at most: it does not go beyond the start."""
    return min(size, before_start) if before_start > 0 else size


class ImportedBefore(NamedTuple):
    """How many rows of a file are in the database, and whether that is all of it."""

    rows_done: int
    is_complete: bool


async def import_pets(
    store: Store,
    run: ImportRun,
    clock: Clock,
    *,
    again: bool = False,
    category_names: bool = False,
    strict_categories: bool = False,
    on_wait: Callable[[Unavailable], object] | None = None,
) -> ImportedBefore:
    """Add the pets of a file to a database, and return what was imported before.

    A file that was imported as a whole is not read. A resumed import calls back with the rows
    refused before, too. With ``category_names``, the category of a row of CSV may be a name. With
    ``strict_categories``, a pet of a category that is not registered is refused. With ``on_wait``,
    a write that the database did not confirm is tried again for up to ``MAX_WAIT``, which adds no
    row twice; it gets the error with which each wait begins.

    Raises:
        Conflict: another import of the same file is in progress.
        OSError: the file cannot be read.
        Unavailable: the database is unreachable; run the import again to continue.
    """
    import asyncio  # here, so that `petstore --help` is instant

    digest = run.file.digest
    write = partial(_write_with_retries, store, clock, on_wait)
    before = await write(lambda _: begin_import(digest, again=again))
    if before.is_complete:
        return before
    known = await first_category_names(store, _KNOWN) if category_names else {}
    add = partial(import_batch, digest, strict_categories=strict_categories)
    for rows in run.batches(_BATCH, start=before.rows_done):
        if category_names:
            await name_categories(store, run.file.layout, rows, [*known.values()])
        if rows and run.done >= before.rows_done:
            # A running service waits for the same lock. Let it write in between.
            await asyncio.sleep(_PAUSE_SECONDS)
            rows[:] = await write(partial(add, run.done, rows, None, now=clock()))
            run.added += len(pets_of(rows))
        elif strict_categories:
            rows[:] = await store.write(refuse_unknown(rows))
    now = clock()
    await write(partial(add, run.done, [], now, now=now))
    return before


def begin_import(digest: bytes, *, again: bool) -> Unit[ImportedBefore]:
    """Return how far a file was imported before. With ``again``, a finished one starts again."""
    yield Statement(
        "INSERT INTO pet_imports (digest, rows_done) VALUES (?1, 0)"
        " ON CONFLICT (digest) DO NOTHING",
        (digest,),
        name="insert_pet_import",
    )
    if again:
        yield Statement(
            "UPDATE pet_imports SET rows_done = 0, finished_at = NULL"
            " WHERE digest = ?1 AND finished_at IS NOT NULL",
            (digest,),
            name="restart_pet_import",
        )
    return (yield from _imported(digest))


def import_batch(
    digest: bytes,
    start: int,
    rows: list[FileRow],
    finished_at: Milliseconds | None,
    is_retry: bool = False,  # noqa: FBT001, FBT002 - as a retry calls it
    *,
    now: Milliseconds,
    strict_categories: bool,
) -> Unit[list[FileRow]]:
    """Add the pets of the rows from the number ``start`` on, and note that these rows are done.

    Return the rows, those that are refused without their pets. A retry adds nothing if the rows are
    done: the first attempt may have committed unconfirmed.

    Raises:
        Conflict: another import of the same file is in progress.
    """
    end = start + len(rows)
    moved = yield Statement(
        "UPDATE pet_imports SET rows_done = ?1, finished_at = ?2"
        " WHERE digest = ?3 AND rows_done = ?4 AND finished_at IS NULL RETURNING rows_done",
        (end, finished_at, digest, start),
        name="update_pet_import",
    )
    if not moved and not (is_retry and (yield from _imported(digest)).rows_done == end):
        msg = "another import of the same file is in progress"
        raise Conflict(msg)
    if strict_categories:
        rows = yield from refuse_unknown(rows)
    if moved:
        yield from create_pets(pets_of(rows), now=now)
    return rows


async def name_categories(
    store: Reader, layout: CsvLayout, rows: list[FileRow], known: Sequence[str]
) -> None:
    """Replace rows whose categories are names of registered ones, ignoring case; refuse others.

    Reasons have those of the ``known`` names that may be meant.
    """
    names = layout.category_names(rows)
    ids = await ids_of_categories(store, set(names.values()))
    layout.name_categories(rows, names, ids, known)


def refuse_unknown(rows: list[FileRow]) -> Unit[list[FileRow]]:
    """Return ``rows``, without the pets whose categories are not registered.

    The categories of the others cannot be deleted until the unit of work ends.
    """
    registered = yield from lock_categories({pet.category_id for pet in pets_of(rows)})
    return [
        row.refused(unknown_category(row.pet.category_id).message)
        if row.pet is not None and row.pet.category_id not in registered
        else row
        for row in rows
    ]


def pets_of(rows: Iterable[FileRow]) -> list[NewPet]:
    """Return the pets of those rows that have one."""
    return [row.pet for row in rows if row.pet is not None]


def _imported(digest: bytes) -> Unit[ImportedBefore]:
    ((rows_done, finished_at),) = yield Statement(
        "SELECT rows_done, finished_at FROM pet_imports WHERE digest = ?1",
        (digest,),
        name="select_pet_import",
    )
    return ImportedBefore(rows_done, finished_at is not None)


async def _write_with_retries(
    store: Store,
    clock: Clock,
    on_wait: Callable[[Unavailable], object] | None,
    attempt: Callable[[bool], Unit[T]],
) -> T:
    """Run a unit of work until it is durable. ``attempt`` makes it, given whether it is a retry."""
    import asyncio

    ends_at: Milliseconds | None = None
    while True:
        try:
            return await store.write(attempt(ends_at is not None))
        except Unavailable as error:
            if on_wait is None or (ends_at is not None and clock() >= ends_at):
                raise
            if ends_at is None:
                ends_at = clock() + MAX_WAIT
                on_wait(error)
        await asyncio.sleep(_RETRY_SECONDS)
