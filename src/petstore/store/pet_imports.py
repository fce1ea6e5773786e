"""Import pets from a file.

An import goes in batches. Each batch commits together with how far the file has been read, so an
interrupted import continues where it stopped when it is run again. A file is known by the digest of
its content.
"""

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Reader, Statement, Store, T, Unit
from petstore.domain.pets import NewPet
from petstore.errors import Conflict, NotFound, Unavailable
from petstore.store.categories import get_category, unknown_category
from petstore.store.pet_files import FileFormat, FileRow, read_rows
from petstore.store.pets import create_pets

_BATCH = 1000
_PAUSE_SECONDS = 0.005
_RETRY_SECONDS = 0.5


class ImportResult(NamedTuple):
    """The outcome of an import. ``resumed_at`` is the number of rows done before."""

    added: int
    refused: int
    resumed_at: int
    was_complete: bool


class ImportCallbacks(NamedTuple):
    """What an import calls as it goes.

    ``on_refused`` gets each refused row, ``on_progress`` the rows and bytes of the file done so
    far. ``may_retry`` gets the error of a write that the database did not confirm, and decides
    whether to try again after a pause. A retry adds no row twice.
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
    """Add the pets of a file.

    A resumed import calls back with the rows refused before, too. With ``strict_categories``, a pet
    of a category that is not registered is refused.

    Raises:
        InvalidBody: the file is not a table of pets.
        Conflict: another import of the same file is in progress.
        OSError: the file cannot be read.
        Unavailable: the database is unreachable; run the import again to continue.
    """
    import asyncio  # here, so that `petstore --help` is instant

    with path.open("rb") as file:
        digest = file_digest(file, "sha256").digest()
        file.seek(0)
        rows = read_rows(file, file_format)
        write = partial(_write_with_retries, store, callbacks.may_retry)
        start, was_complete = await write(lambda _: begin_import(digest, again=again))
        if was_complete:
            return ImportResult(0, 0, start, was_complete=True)
        added = refused = done = 0
        is_complete = False
        while not is_complete:
            was_done = done < start
            batch = list(islice(rows, min(_BATCH, start - done) if was_done else _BATCH))
            if strict_categories:
                batch = await refuse_unknown(store, batch)
            pets = [row.pet for row in batch if row.pet is not None]
            span = range(done, done + len(batch))
            if not was_done:
                # A running service waits for the same lock. Let it write in between.
                await asyncio.sleep(_PAUSE_SECONDS)
                is_complete = len(batch) < _BATCH
                now = clock()
                finished_at = now if is_complete else None
                await write(partial(import_batch, digest, span, pets, finished_at, now=now))
                added += len(pets)
            for row in batch:
                if row.pet is None:
                    callbacks.on_refused(row)
            refused += len(batch) - len(pets)
            done = span.stop
            callbacks.on_progress(done, file.tell())
    return ImportResult(added, refused, start, was_complete=False)


def begin_import(digest: bytes, *, again: bool) -> Unit[tuple[int, bool]]:
    """Return how many rows of a file were imported before, and whether that was all of it.

    With ``again``, a finished file starts again.
    """
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
    ((rows_done, finished_at),) = yield _select_import(digest)
    return rows_done, finished_at is not None


def import_batch(
    digest: bytes,
    rows: range,
    pets: Iterable[NewPet],
    finished_at: Milliseconds | None,
    is_retry: bool = False,  # noqa: FBT001, FBT002 - as a retry calls it
    *,
    now: Milliseconds,
) -> Unit[None]:
    """Add the pets of ``rows`` of a file, and note that these rows are done.

    A retry adds nothing if they are done: the first attempt may have committed unconfirmed.

    Raises:
        Conflict: another import of the same file is in progress.
    """
    moved = yield Statement(
        "UPDATE pet_imports SET rows_done = ?1, finished_at = ?2"
        " WHERE digest = ?3 AND rows_done = ?4 AND finished_at IS NULL RETURNING rows_done",
        (rows.stop, finished_at, digest, rows.start),
        name="update_pet_import",
    )
    if moved:
        yield from create_pets(pets, now=now)
        return
    ((rows_done, _),) = yield _select_import(digest)
    if not (is_retry and rows_done == rows.stop):
        msg = "another import of the same file is in progress"
        raise Conflict(msg)


def _select_import(digest: bytes) -> Statement:
    return Statement(
        "SELECT rows_done, finished_at FROM pet_imports WHERE digest = ?1",
        (digest,),
        name="select_pet_import",
    )


async def _write_with_retries(
    store: Store, may_retry: Callable[[Unavailable], bool], attempt: Callable[[bool], Unit[T]]
) -> T:
    """Run a unit of work until it is durable. ``attempt`` makes it, given whether it is a retry."""
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


async def refuse_unknown(store: Reader, rows: list[FileRow]) -> list[FileRow]:
    """Return ``rows``, without the pets whose categories are not registered."""
    wanted = {row.pet.categoryId for row in rows if row.pet is not None}
    unknown = {category_id for category_id in wanted if not await _exists(store, category_id)}
    return [
        row._replace(pet=None, reason=unknown_category(row.pet.categoryId).message)
        if row.pet is not None and row.pet.categoryId in unknown
        else row
        for row in rows
    ]


async def _exists(store: Reader, category_id: int) -> bool:
    try:
        await get_category(store, category_id)
    except NotFound:
        return False
    return True
