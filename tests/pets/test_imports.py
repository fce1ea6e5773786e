"""Animals from files: which rows go in, which are refused and why, and how an import goes on."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Store
from petstore.errors import Conflict, Unavailable
from petstore.pets.files import FileFormat, FileRow, open_import_file
from petstore.pets.imports import MAX_WAIT, ImportRun, begin_import, import_pets
from petstore.pets.model import NewPet, Pet
from petstore.pets.rows import pet_of
from support.changes import create_category, import_batch
from support.manual_clock import ManualClock
from support.pet_rows import select_pets
from support.stores import do, locked, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]
SQLITE = pytest.mark.usefixtures("database")  # what a file says is no matter of the database

HEADER = b"name,categoryId,status\n"
NAME = "expected 1 to 255 characters, not only spaces"
INTEGER = "expected a whole number of up to 18 digits"


class ImportResult(NamedTuple):
    added: int
    refused: int
    resumed_at: int
    was_complete: bool


class Importer:
    """Runs an import and records its progress."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self.refused: list[FileRow] = []
        self.progress: list[int] = []

    async def run(
        self,
        content: bytes,
        file_format: FileFormat = "csv",
        on_progress: Callable[[int], object] | None = None,
        **options: Any,
    ) -> ImportResult:
        self.refused, self.progress = [], []
        file = open_import_file(BytesIO(content), file_format)
        run = ImportRun(file, self.refused.append, on_progress or self.progress.append)
        before = await import_pets(self.store, run, self.clock, **options)
        return ImportResult(run.added, run.refused, *before)

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Line and reason of each refused row."""
        return [(row.line, row.reason) for row in self.refused]

    async def pets(self) -> list[Pet]:
        rows = await self.store.read(select_pets(100_000))
        return [pet_of(row) for row in rows]

    async def names(self) -> list[str]:
        return [pet.name for pet in await self.pets()]


@pytest.fixture
def importer(store: Store, clock: ManualClock) -> Importer:
    return Importer(store, clock)


def rows(count: int, start: int = 0) -> bytes:
    return b"".join(b"Animal %d,1,\n" % n for n in range(start, start + count))


def numbered(count: int) -> list[str]:
    return [f"Animal {n}" for n in range(count)]


@pytest.mark.parametrize(
    ("content", "options", "sizes"),
    [
        (b"", {}, []),
        (rows(5), {}, [2, 2, 1]),
        (rows(4), {}, [2, 2]),
        (rows(5), {"start": 3}, [2, 1, 2]),
        (rows(3), {"characters": len(rows(1))}, [1, 1, 1]),
        (b"\n\n\n" + rows(3), {}, [0, 1, 2]),
        (b"\n\n" + rows(2) + b"\n", {"start": 1}, [0, 0, 1, 1]),
    ],
)
async def test_rows_come_in_batches(
    content: bytes, options: dict[str, int], sizes: list[int]
) -> None:
    run = ImportRun(open_import_file(BytesIO(HEADER + content)))
    assert [len(batch) for batch in run.batches(2, **options)] == sizes
    assert run.done == sum(sizes)


@SQLITE
async def test_a_file_with_only_a_header_imports_nothing(importer: Importer) -> None:
    assert await importer.run(HEADER) == (0, 0, 0, False)
    assert await importer.run(HEADER) == (0, 0, 0, True)


async def test_blank_lines_are_skipped(importer: Importer) -> None:
    await importer.run(HEADER + b"\n" * 2_500 + rows(1))
    assert await importer.names() == ["Animal 0"]


@SQLITE
async def test_an_empty_json_lines_file_imports_nothing(importer: Importer) -> None:
    assert await importer.run(b"", "jsonl") == (0, 0, 0, False)


@pytest.mark.parametrize("count", [1_000, 1_001])
async def test_animals_are_added_in_the_order_of_the_file(importer: Importer, count: int) -> None:
    content = HEADER + rows(count)
    assert (await importer.run(content)).added == count
    assert await importer.names() == numbered(count)
    assert importer.progress[-1] == len(content)
    assert importer.progress == sorted(importer.progress)


async def test_importing_the_same_file_again_adds_nothing(importer: Importer) -> None:
    content = HEADER + rows(5) + b"bad,x,\n"
    await importer.run(content)
    assert await importer.run(content) == ImportResult(0, 0, resumed_at=6, was_complete=True)
    assert len(await importer.pets()) == 5


async def test_the_same_file_can_be_imported_again_on_request(importer: Importer) -> None:
    content = HEADER + rows(5)
    await importer.run(content)
    assert await importer.run(content, again=True) == (5, 0, 0, False)
    assert len(await importer.pets()) == 10
    assert (await importer.run(content)).was_complete


async def test_a_file_with_other_content_is_a_new_import(importer: Importer) -> None:
    await importer.run(HEADER + rows(5))
    assert (await importer.run(HEADER + rows(5) + b"\n")).added == 5


def stop_after(batches: int) -> Any:
    """Return a callback that ends the import, as a power cut would, after so many batches."""
    left = iter(range(batches))

    def stop(*_: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize(("batches", "options"), [(0, {}), (1, {"again": True}), (2, {})])
async def test_an_interrupted_import_resumes_where_it_stopped(
    importer: Importer, batches: int, options: dict[str, Any]
) -> None:
    content = HEADER + rows(2_500)
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(batches))
    done = min(2_500, 1_000 * (batches + 1))
    assert len(await importer.pets()) == done
    result = await importer.run(content, **options)
    assert result == ImportResult(2_500 - done, 0, resumed_at=done, was_complete=False)
    assert await importer.names() == numbered(2_500)


async def test_an_import_resumes_within_a_batch(importer: Importer, store: Store) -> None:
    content = HEADER + rows(7)
    digest = open_import_file(BytesIO(content)).digest
    await store.write(begin_import(digest, again=False))
    await store.write(import_batch(digest, 0, [NewPet(name, 1) for name in numbered(5)]))
    assert await importer.run(content) == ImportResult(2, 0, resumed_at=5, was_complete=False)
    assert await importer.names() == numbered(7)


async def test_a_resumed_import_reports_every_refused_row(importer: Importer) -> None:
    content = HEADER + b"bad,x,\n" + rows(999) + b"bad,x,\n" + rows(500, 999) + b"bad,x,\n"
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(0))
    assert importer.reasons == [(2, f"categoryId: {INTEGER}")]
    result = await importer.run(content)
    assert result == ImportResult(added=500, refused=3, resumed_at=1_000, was_complete=False)
    assert [line for line, _ in importer.reasons] == [2, 1_002, 1_503]
    assert await importer.names() == numbered(1_499)


@pytest.mark.usefixtures("database")  # asyncpg reports what it does when it is cancelled as errors
async def test_an_import_cancelled_at_any_point_resumes_without_duplicates(
    importer: Importer,
) -> None:
    content = HEADER + rows(3_200)
    for pause in range(12):
        importing = asyncio.create_task(importer.run(content))
        for _ in range(pause):
            await asyncio.sleep(0.001)
        importing.cancel()
        await asyncio.gather(importing, return_exceptions=True)
    await importer.run(content)
    assert await importer.names() == numbered(3_200)


async def test_an_import_that_failed_on_a_locked_database_can_be_resumed(
    importer: Importer, store: Store, database: Path
) -> None:
    content = HEADER + rows(1_500)
    with ExitStack() as stack, pytest.raises(Unavailable):
        await importer.run(
            content, on_progress=lambda *_: stack.enter_context(locked(database, store))
        )
    assert (await importer.run(content)).resumed_at == 1_000
    assert await importer.names() == numbered(1_500)


async def test_an_import_waits_for_a_locked_database(
    importer: Importer, store: Store, database: Path
) -> None:
    reasons = []
    with ExitStack() as stack:

        def go_on(error: Unavailable) -> None:
            reasons.append(str(error))
            stack.close()

        result = await importer.run(
            HEADER + rows(1_500),
            on_progress=lambda _: None if reasons else stack.enter_context(locked(database, store)),
            on_wait=go_on,
        )
    assert len(reasons) == 1
    assert result == ImportResult(1_500, 0, 0, was_complete=False)
    assert await importer.names() == numbered(1_500)


async def test_a_wait_ends_after_five_minutes_and_is_reported_once(
    importer: Importer, store: Store, database: Path
) -> None:
    times, reasons = iter([0, MAX_WAIT - 1, MAX_WAIT]), list[Unavailable]()
    run = ImportRun(open_import_file(BytesIO(HEADER + rows(1))))
    with locked(database, store), pytest.raises(Unavailable):
        await import_pets(store, run, times.__next__, on_wait=reasons.append)
    assert next(times, None) is None
    assert len(reasons) == 1
    assert await importer.pets() == []


@pytest.mark.parametrize("count", [1_500, 2_000])
async def test_an_import_survives_a_slow_commit_without_duplicates(
    database: Path, clock: ManualClock, count: int
) -> None:
    connections: list[apsw.Connection] = []
    apsw.connection_hooks.append(connections.append)
    disk_responds = threading.Event()
    waits = []

    def be_slow(*_: int) -> None:
        disk_responds.clear()
        connections[-2].set_commit_hook(lambda: not disk_responds.wait(30))

    def go_on(reason: Unavailable) -> None:
        waits.append(str(reason))
        disk_responds.set()

    try:
        async with open_store(database, 200) as store:
            importer = Importer(store, clock)
            result = await importer.run(HEADER + rows(count), on_progress=be_slow, on_wait=go_on)
            assert result == ImportResult(count, 0, 0, was_complete=False)
            assert set(waits) == {"the database did not confirm the change in time"}
            connections[-2].set_commit_hook(None)
            assert await importer.names() == numbered(count)
    finally:
        apsw.connection_hooks.remove(connections.append)


async def test_one_of_two_concurrent_imports_of_a_file_is_refused(
    importer: Importer, clock: ManualClock, address: str
) -> None:
    content = HEADER + rows(2_500)
    async with open_store(address) as store:
        rival = Importer(store, clock)
        outcomes = await asyncio.gather(
            importer.run(content), rival.run(content), return_exceptions=True
        )
    refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert [error.message for error in refused] == [
        "another import of the same file is in progress"
    ]
    assert await importer.names() == numbered(2_500)


async def test_a_batch_is_added_once_even_if_it_is_retried(
    importer: Importer, store: Store
) -> None:
    await store.write(begin_import(b"digest", again=False))
    for is_retry in (False, True):
        unit = import_batch(b"digest", 0, [NewPet("Bella", 1)], is_retry=is_retry)
        await store.write(unit)
    assert await importer.names() == ["Bella"]


@pytest.mark.parametrize("others", [2, 4])
async def test_a_retry_after_another_import_added_other_rows_is_refused(
    importer: Importer, store: Store, others: int
) -> None:
    await store.write(begin_import(b"digest", again=False))
    bella = NewPet(name="Bella", category_id=1)
    await store.write(import_batch(b"digest", 0, [bella] * others))
    with pytest.raises(Conflict, match="another import of the same file is in progress"):
        await store.write(import_batch(b"digest", 0, [bella] * 3, is_retry=True))
    assert await importer.names() == ["Bella"] * others


async def test_an_import_does_not_change_other_animals(importer: Importer, store: Store) -> None:
    await store.write(do("INSERT INTO pets (name, category_id) VALUES ('Bella', 1)"))
    await importer.run(HEADER + rows(1))
    assert await importer.names() == ["Bella", "Animal 0"]


async def test_a_strict_import_refuses_animals_of_unregistered_categories_even_when_resumed(
    importer: Importer, store: Store
) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    content = HEADER + b"Oskar,2,\n,2,\n" + rows(998) + b"Bella,1,sold\nMo,-3,\n"
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(0), strict_categories=True)
    assert await importer.names() == numbered(998)
    result = await importer.run(content, strict_categories=True)
    assert result == ImportResult(1, 3, resumed_at=1_000, was_complete=False)
    unknown = "categoryId: expected a registered category; there is no category"
    assert importer.reasons == [(2, f"{unknown} 2"), (3, f"name: {NAME}"), (1_003, f"{unknown} -3")]
    assert (await importer.names())[-1] == "Bella"


async def test_an_import_by_names_of_categories_refuses_unknown_ones_even_when_resumed(
    importer: Importer, store: Store
) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    content = HEADER + b"Oskar,Cats,\n" + b"Rex,DOGS,\n" * 999 + b"Bella,9,\nMo,Cats,\n"
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(0), category_names=True)
    result = await importer.run(content, category_names=True)
    assert result == ImportResult(1, 2, resumed_at=1_000, was_complete=False)
    reason = "categoryId: no category has the name 'Cats'"
    assert importer.reasons == [(2, reason), (1_003, reason)]
    assert [pet.category_id for pet in await importer.pets()] == [1] * 999 + [9]
