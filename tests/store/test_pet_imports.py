"""Animals from files: which rows go in, which are refused and why, and how an import goes on."""

import asyncio
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.databases.contract import Store
from petstore.domain.categories import CategoryCreate
from petstore.domain.pets import NewPet, Pet
from petstore.errors import Conflict, InvalidBody, Unavailable
from petstore.store.pet_files import FileFormat, FileRow
from petstore.store.pet_imports import ImportCallbacks, ImportResult, begin_import, import_pets
from support.changes import create_category, import_batch
from support.manual_clock import ManualClock
from support.pet_rows import pet_of, select_pets
from support.stores import do, locked, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

HEADER = b"name,categoryId,status\n"
NAME = "expected a string of 1 to 255 characters, not only white space and without U+0000"
INTEGER = "expected an integer from -2^63 to 2^63 - 1"
STATUS = "expected one of 'available', 'pending', 'sold'"


class Importer:
    """Runs an import and records its progress."""

    def __init__(self, store: Store, clock: ManualClock, file: Path) -> None:
        self.store, self.clock, self.file = store, clock, file
        self.refused: list[FileRow] = []
        self.progress: list[int] = []

    async def run(
        self, content: bytes, file_format: FileFormat = "csv", **options: Any
    ) -> ImportResult:
        self.file.write_bytes(content)
        self.refused, self.progress = [], []
        told = {name: options.pop(name) for name in ImportCallbacks._fields if name in options}
        callbacks = self.callbacks._replace(**told)
        return await import_pets(
            self.store, self.file, file_format, self.clock, callbacks=callbacks, **options
        )

    @property
    def callbacks(self) -> ImportCallbacks:
        return ImportCallbacks(self.refused.append, lambda _, size: self.progress.append(size))

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
def importer(store: Store, clock: ManualClock, tmp_path: Path) -> Importer:
    return Importer(store, clock, tmp_path / "animals")


def rows(count: int, start: int = 0) -> bytes:
    return b"".join(b"Animal %d,1,\n" % n for n in range(start, start + count))


def numbered(count: int) -> list[str]:
    return [f"Animal {n}" for n in range(count)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbf",
        b"Bella,1,available\n",
        b"name,status\nBella,sold\n",
        b"categoryId\n1\n",
        b"Name,CategoryID\nBella,1\n",
        b"name, categoryId\nBella,1\n",
        b"name;categoryId\nBella;1\n",
        b"\nname,categoryId\nBella,1\n",
        b'name,"categoryId\nBella,1\n',
        b'"name"x,categoryId\nBella,1\n',
        b"name,categoryId\rBella,1\r",
        b"na\xffme,categoryId\nBella,1\n",
        "name,categoryId\nBella,1\n".encode("utf-16"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"{}\n",
    ],
)
async def test_a_file_without_the_columns_is_refused_whole(
    importer: Importer, content: bytes
) -> None:
    with pytest.raises(InvalidBody, match=r"^line 1: expected the names of the columns.*; got "):
        await importer.run(content)
    assert await importer.pets() == []


async def test_a_column_category_counts_as_the_one_that_is_required(importer: Importer) -> None:
    await importer.run(b"category,name\n7,Bella\n")
    await importer.run(b"category,name,categoryId\nDogs,Rex,8\n")
    assert [(pet.name, pet.categoryId) for pet in await importer.pets()] == [
        ("Bella", 7),
        ("Rex", 8),
    ]


async def test_a_file_with_a_column_twice_is_refused_whole(importer: Importer) -> None:
    with pytest.raises(InvalidBody, match=r"^line 1: expected each column once; got 'name, name"):
        await importer.run(b"name,name,categoryId\nBella,Rex,1\n")
    assert await importer.pets() == []


async def test_a_file_that_is_not_there_is_an_error_of_the_system(importer: Importer) -> None:
    with pytest.raises(FileNotFoundError):
        await import_pets(
            importer.store,
            importer.file,
            "csv",
            importer.clock,
            callbacks=importer.callbacks,
        )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b",1,sold", f"name: {NAME}"),
        (b"  ,1,sold", f"name: {NAME}"),
        (b"Be\0lla,1,sold", f"name: {NAME}"),
        (b"x" * 256 + b",1,sold", f"name: {NAME}"),
        (b"Bella,,sold", f"categoryId: {INTEGER}"),
        (b"Bella,one,sold", f"categoryId: {INTEGER}"),
        (b"Bella,1.0,sold", f"categoryId: {INTEGER}"),
        (b"Bella, 1,sold", f"categoryId: {INTEGER}"),
        (b"Bella,+1,sold", f"categoryId: {INTEGER}"),
        (b"Bella,9223372036854775808,sold", f"categoryId: {INTEGER}"),
        ("Bella,\N{FULLWIDTH DIGIT ONE},sold".encode(), f"categoryId: {INTEGER}"),
        (b"Bella,1,gone", f"status: {STATUS}"),
        (b"Bella,1,Sold", f"status: {STATUS}"),
        (b"Bella,1,sold ", f"status: {STATUS}"),
        (b"Bella", f"categoryId: required; {INTEGER}"),
        (b"M\xfcsli,1,sold", "expected UTF-8"),
        (b"Bella,1,sold,red", "expected 3 fields, got 4"),
        (b"\xed\xa0\x80,1,sold", "expected UTF-8"),
    ],
)
async def test_a_bad_row_is_refused_by_its_line_and_the_others_go_in(
    importer: Importer, row: bytes, reason: str
) -> None:
    content = HEADER + b"first,1,\n" + row + b"\nlast,1,\n"
    result = await importer.run(content)
    assert result == ImportResult(added=2, refused=1, resumed_at=0, was_complete=False)
    assert importer.reasons == [(3, reason)]
    assert importer.refused[0].text.encode("utf-8", "surrogateescape") == row + b"\n"
    assert await importer.names() == ["first", "last"]


@pytest.mark.parametrize(
    "row", [b'"Bella"x,1,', b'"Bel"la",1,', b"Bel\rla,1,", b"x" * 140_000 + b",1,"]
)
async def test_a_row_that_is_no_csv_is_refused_by_its_line_and_the_others_go_in(
    importer: Importer, row: bytes
) -> None:
    await importer.run(HEADER + b"first,1,\n" + row + b"\nlast,1,\n")
    ((line, reason),) = importer.reasons
    assert line == 3
    assert reason.startswith("expected CSV (")
    assert await importer.names() == ["first", "last"]


async def test_an_unclosed_quote_is_refused_where_it_opens(importer: Importer) -> None:
    await importer.run(HEADER + b'first,1,\n"second,1,\nthird,1,\n')
    assert importer.reasons == [(3, "expected CSV (unexpected end of data)")]
    assert importer.refused[0].text == '"second,1,\nthird,1,\n'
    assert await importer.names() == ["first"]


async def test_an_unclosed_quote_does_not_swallow_a_large_file(importer: Importer) -> None:
    await importer.run(HEADER + b'"first,1,\n' + rows(12_000) + b"last,1,\n")
    assert [line for line, _ in importer.reasons] == [2]
    assert (await importer.names())[-1] == "last"


async def test_lines_are_counted_over_line_breaks_in_quotes_and_blank_lines(
    importer: Importer,
) -> None:
    content = b'"Bel\n\nla",1,\r\n\n\r\nbad,x,\n"also\nbad",x,\nlast,1,"so\nld"\n'
    await importer.run(HEADER + content)
    assert [(row.line, row.text) for row in importer.refused] == [
        (7, "bad,x,\n"),
        (8, '"also\nbad",x,\n'),
        (10, 'last,1,"so\nld"\n'),
    ]
    assert await importer.names() == ["Bel\n\nla"]


@pytest.mark.parametrize(
    "content",
    [
        b"name,categoryId\nBella,1\nOskar,2",
        b"name,categoryId\r\nBella,1\r\nOskar,2\r\n",
        b"\xef\xbb\xbfname,categoryId\nBella,1\nOskar,2\n",
        b'\xef\xbb\xbf"name","categoryId"\n"Bella","1"\nOskar,2\n',
        b"categoryId,name\n1,Bella\n2,Oskar\n",
        b"id,name,note,categoryId,status\n9,Bella,,1,\nx,Oskar,\xc3\xa4,2,\n",
        b"name,categoryId,\nBella,1,\nOskar,2,,,,\n",
        b"name,categoryId,status\nBella,1,\nOskar,2\n",
        b"\xef\xbb\xbfname,categoryId\n\n\nBella,1\n\nOskar,2\n\n",
    ],
)
async def test_csv_of_many_kinds_is_read(importer: Importer, content: bytes) -> None:
    assert (await importer.run(content)).added == 2
    assert await importer.pets() == [Pet(1, "Bella", 1), Pet(2, "Oskar", 2)]


async def test_a_header_alone_is_an_import_of_nothing(importer: Importer) -> None:
    assert await importer.run(HEADER) == (0, 0, 0, False)
    assert await importer.run(HEADER) == (0, 0, 0, True)


async def test_every_status_is_read_and_none_is_none(importer: Importer) -> None:
    await importer.run(HEADER + b"a,1,available\nb,1,pending\nc,1,sold\nd,1,\n")
    assert await importer.pets() == [
        Pet(1, "a", 1, "available"),
        Pet(2, "b", 1, "pending"),
        Pet(3, "c", 1, "sold"),
        Pet(4, "d", 1),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Bella", "the line: expected a JSON object; invalid character"),
        (b'["Bella"]', "the line: expected a JSON object, got array"),
        (b'{"name": "Bella"}', f"categoryId: required; {INTEGER}"),
        (b'{"name": "Bella", "categoryId": "1"}', f"categoryId: {INTEGER}"),
        (b'{"name": "Bella", "categoryId": 1, "status": ""}', f"status: {STATUS}"),
        (b'{"name": "\xff", "categoryId": 1}', "the line: expected JSON in UTF-8"),
        (b"[" * 60_000, "the line: expected a JSON object; it is nested too deeply"),
    ],
)
async def test_a_bad_line_of_json_is_refused_and_the_others_go_in(
    importer: Importer, line: bytes, reason: str
) -> None:
    good = b'{"name": "%s", "categoryId": 1}\n'
    await importer.run(good % b"first" + b"\n \r\n" + line + b"\n" + good % b"last", "jsonl")
    ((number, told),) = importer.reasons
    assert number == 4
    assert told.startswith(reason)
    assert importer.refused[0].text.encode("utf-8", "surrogateescape") == line + b"\n"
    assert await importer.names() == ["first", "last"]


async def test_json_lines_are_read(importer: Importer) -> None:
    content = b'{"name": "Bella", "categoryId": 1, "id": 9}\r\n\n{"categoryId":2,"name":"\\u0041"}'
    assert await importer.run(content, "jsonl") == (2, 0, 0, False)
    assert await importer.pets() == [Pet(1, "Bella", 1), Pet(2, "A", 2)]


async def test_an_empty_file_of_json_lines_is_an_import_of_nothing(importer: Importer) -> None:
    assert await importer.run(b"", "jsonl") == (0, 0, 0, False)


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 2_500])
async def test_all_animals_go_in_in_their_order(importer: Importer, count: int) -> None:
    content = HEADER + rows(count)
    assert (await importer.run(content)).added == count
    assert await importer.names() == numbered(count)
    assert importer.progress[-1] == len(content)
    assert importer.progress == sorted(importer.progress)


async def test_the_same_file_again_adds_nothing(importer: Importer) -> None:
    content = HEADER + rows(5) + b"bad,x,\n"
    await importer.run(content)
    assert await importer.run(content) == ImportResult(0, 0, resumed_at=6, was_complete=True)
    importer.file.rename(importer.file.with_name("another name"))
    assert (await importer.run(content)).was_complete
    assert len(await importer.pets()) == 5


async def test_the_same_file_goes_in_once_more_if_that_is_wanted(importer: Importer) -> None:
    content = HEADER + rows(5)
    await importer.run(content)
    assert await importer.run(content, again=True) == (5, 0, 0, False)
    assert len(await importer.pets()) == 10
    assert (await importer.run(content)).was_complete


async def test_a_file_with_other_content_is_another_file(importer: Importer) -> None:
    await importer.run(HEADER + rows(5))
    assert (await importer.run(HEADER + rows(5) + b"\n")).added == 5


def stop_after(batches: int) -> Any:
    """Return a callback that ends the import, as a power cut would, after so many batches."""
    left = iter(range(batches))

    def stop(*_: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("batches", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"again": True}])
async def test_an_import_that_was_interrupted_goes_on_where_it_stopped(
    importer: Importer, batches: int, options: dict[str, Any]
) -> None:
    content = HEADER + rows(2_500)
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(batches))
    done = min(2_500, 1_000 * (batches + 1))
    assert len(await importer.pets()) == done
    if batches < 2:
        result = await importer.run(content, **options)
        assert result == ImportResult(2_500 - done, 0, resumed_at=done, was_complete=False)
    assert await importer.names() == numbered(2_500)


async def test_an_import_that_goes_on_tells_of_every_refused_row(importer: Importer) -> None:
    content = HEADER + b"bad,x,\n" + rows(999) + b"bad,x,\n" + rows(500, 999) + b"bad,x,\n"
    with pytest.raises(KeyboardInterrupt):
        await importer.run(content, on_progress=stop_after(0))
    assert importer.reasons == [(2, f"categoryId: {INTEGER}")]
    result = await importer.run(content)
    assert result == ImportResult(added=500, refused=3, resumed_at=1_000, was_complete=False)
    assert [line for line, _ in importer.reasons] == [2, 1_002, 1_503]
    assert await importer.names() == numbered(1_499)


@pytest.mark.usefixtures("database")  # asyncpg reports what it does when it is cancelled as errors
async def test_an_import_that_was_cancelled_anywhere_goes_on_without_a_double(
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


async def test_an_import_that_met_a_locked_database_goes_on(
    importer: Importer, store: Store, database: Path
) -> None:
    content = HEADER + rows(1_500)
    with ExitStack() as stack, pytest.raises(Unavailable):
        await importer.run(
            content, on_progress=lambda *_: stack.enter_context(locked(database, store))
        )
    assert (await importer.run(content)).resumed_at == 1_000
    assert await importer.names() == numbered(1_500)


async def test_an_import_outlives_a_lock(importer: Importer, store: Store, database: Path) -> None:
    reasons = []
    with ExitStack() as stack:

        def go_on(error: Unavailable) -> bool:
            reasons.append(str(error))
            stack.close()
            return True

        result = await importer.run(
            HEADER + rows(1_500),
            on_progress=lambda done, _: (
                done == 1_000 and stack.enter_context(locked(database, store))
            ),
            may_retry=go_on,
        )
    assert len(reasons) == 1
    assert result == ImportResult(1_500, 0, 0, was_complete=False)
    assert await importer.names() == numbered(1_500)


@pytest.mark.parametrize("count", [1_500, 2_000])
async def test_an_import_outlives_a_slow_commit_and_adds_nothing_twice(
    database: Path, clock: ManualClock, tmp_path: Path, count: int
) -> None:
    connections: list[apsw.Connection] = []
    apsw.connection_hooks.append(connections.append)
    disk_responds = threading.Event()
    waits = []

    def be_slow(*_: int) -> None:
        disk_responds.clear()
        connections[-2].set_commit_hook(lambda: not disk_responds.wait(30))

    def go_on(reason: Unavailable) -> bool:
        waits.append(str(reason))
        disk_responds.set()
        return True

    try:
        async with open_store(database, 200) as store:
            importer = Importer(store, clock, tmp_path / "animals")
            result = await importer.run(HEADER + rows(count), on_progress=be_slow, may_retry=go_on)
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
        rival = Importer(store, clock, importer.file)
        outcomes = await asyncio.gather(
            importer.run(content), rival.run(content), return_exceptions=True
        )
    refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert [error.message for error in refused] == [
        "another import of the same file is in progress"
    ]
    assert await importer.names() == numbered(2_500)


@pytest.mark.parametrize("others", [range(2), range(4)])
async def test_a_retry_after_another_import_did_other_rows_is_refused(
    importer: Importer, store: Store, others: range
) -> None:
    await store.write(begin_import(b"digest", again=False))
    pets = [NewPet(name="Bella", categoryId=1) for _ in others]
    await store.write(import_batch(b"digest", others, pets, None))
    with pytest.raises(Conflict, match="another import of the same file is in progress"):
        await store.write(import_batch(b"digest", range(3), pets[:3], None, is_retry=True))
    assert await importer.names() == ["Bella"] * len(others)


async def test_an_import_leaves_other_animals_alone(importer: Importer, store: Store) -> None:
    await store.write(do("INSERT INTO pets (name, category_id) VALUES ('Bella', 1)"))
    await importer.run(HEADER + rows(1))
    assert await importer.names() == ["Bella", "Animal 0"]


async def test_a_strict_import_refuses_animals_of_categories_that_are_not_registered(
    importer: Importer, store: Store
) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    content = HEADER + b"Bella,1,sold\nOskar,2,\n,2,\n"
    result = await importer.run(content, strict_categories=True)
    assert result == ImportResult(1, 2, 0, was_complete=False)
    unknown = "categoryId: expected a registered category; there is no category 2"
    assert importer.reasons == [(3, unknown), (4, f"name: {NAME}")]
    assert await importer.names() == ["Bella"]


async def test_an_import_takes_animals_of_any_category_unless_it_is_strict(
    importer: Importer,
) -> None:
    assert (await importer.run(HEADER + b"Oskar,2,\n")).added == 1
