"""Imports of the console: the rows of a file, stored and added batch by batch."""

import asyncio
from collections.abc import Coroutine
from hashlib import sha256
from io import BytesIO
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE
from petstore.databases.contract import Statement, Store
from petstore.domain.categories import CategoryCreate
from petstore.domain.pets import NewPet
from petstore.errors import Conflict, InvalidBody, NotFound
from petstore.store.console_imports import (
    MAX_IMPORTS,
    ConsoleImport,
    add_batch,
    begin_import,
    count_next_batch,
    delete_import,
    find_import,
    list_imports,
    prune_imports,
    read_batch,
    store_import,
)
from petstore.store.import_files import (
    BATCH,
    MAX_LINES,
    MAX_ROWS,
    ImportFile,
    open_import_file,
    read_batches,
)
from petstore.store.pet_files import FileRow
from support.changes import NOW, create_category, delete_category
from support.keys import issue
from support.manual_clock import ManualClock
from support.pet_rows import pet_of, select_pets
from support.stores import open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio
each_database = pytest.mark.each_database

HEADER = b"name,categoryId,status\n"
KEY = 1
EVENTS = "SELECT count(*) FROM /*sqlite*/ events /*end*/ /*pg events_outbox */"


@pytest.fixture
async def store(store: Store, clock: ManualClock) -> Store:
    """A store with the key that imports; its id is ``KEY``."""
    assert (await issue(store, clock)).key.id == KEY
    return store


def rows(count: int) -> bytes:
    return b"".join(b"Animal %d,1,\n" % n for n in range(count))


async def opened(content: bytes, name: str = "a.csv") -> ImportFile:
    return await open_import_file(name, BytesIO(content))


async def read(content: bytes) -> list[FileRow]:
    file = await opened(content)
    return [row async for batch in read_batches(file) for row in batch]


async def begin(store: Store, content: bytes, now: int = NOW, key_id: int = KEY) -> int:
    file = await opened(content)
    options = {"named_categories": False, "strict_categories": False}
    return await store_import(store, key_id, file, lambda: now, **options)


async def step(store: Store, import_id: int, limit: int = BATCH, **options: Any) -> ConsoleImport:
    strict = options.get("strict_categories", False)
    unit = add_batch(import_id, KEY, now=NOW, limit=limit, strict_categories=strict)
    return await store.write(unit)


async def finish(store: Store, import_id: int) -> ConsoleImport:
    while (found := await step(store, import_id)).waiting:
        pass
    return found


async def names(store: Store) -> list[str]:
    return [pet_of(row).name for row in await store.read(select_pets(100_000))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a CSV file; this one is empty"),
        (b" \r\n\n", "expected a CSV file; this one is empty"),
        (b"PK\x03\x04\x14\0\x06\0", "expected a CSV file in UTF-8, which is text"),
        ("name,categoryId\nBella,1\n".encode("utf-16"), "expected a CSV file in UTF-8"),
        (b"name;status\nBella;sold\n", "line 1: expected the names of the columns, separated by"),
        (b"name;categoryId\nM\xfcsli;1\n", "line 2, column name: expected UTF-8"),
        (b"Bella,1,available\n", "line 1: expected the names of the columns"),
        (b"name,categoryId,name\nBella,1,x\n", "line 1: expected each column once"),
        (HEADER, "line 2: expected a row for each animal"),
        (HEADER + b"\n\n", "line 2: expected a row for each animal"),
        (HEADER + b"Bella,1,\n" + b"M\xfcsli,1,\n", "line 3, column name: expected UTF-8"),
        (HEADER + b'"Bel\nla",1,f\xfcr\n', "line 2, column status: expected UTF-8"),
        (HEADER + b'"M\xfcsli"x,1,\n', "line 2: expected UTF-8"),
        (HEADER + b"a,1,,\xfc\n", "line 2: expected UTF-8"),
        (b"name,categoryId,Gr\xf6\xdfe\nBella,1,2\n", "line 1, column Gr\udcf6\udcdfe: expected"),
        (HEADER[:-1] + b",x" * 5000 + b"\nBella,1,\n", "line 1: expected names of columns with at"),
        (
            HEADER[:-1] + b",x" * 254 + b"\nBella,1,\n",
            "line 1: expected at most 256 columns, got 257",
        ),
        (HEADER + rows(MAX_ROWS + 1), "expected at most 20,000 rows; divide the file"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
async def test_a_file_that_is_no_table_of_animals_is_refused_whole(
    content: bytes, message: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        await read(content)
    assert refused.value.message.startswith(message)


async def test_a_file_of_a_spreadsheet_is_read() -> None:
    content = b'\xef\xbb\xbfname,"categoryId"\r\n"B,e",1\r\n'
    assert (await opened(content)).columns == ["name", "categoryId"]
    assert [row.pet for row in await read(content)] == [NewPet("B,e", 1)]


async def turns_during(reading: Coroutine[Any, Any, object]) -> int:
    """Return how often others have the event loop meanwhile."""
    turns, task = 0, asyncio.create_task(reading)
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


@pytest.mark.parametrize(
    "content",
    [
        HEADER + rows(MAX_ROWS),
        HEADER + b"\n" * (MAX_LINES - 2) + rows(1),
        HEADER + b",x" * 4_000_000 + b"\n" + rows(1),
        HEADER + (b"," * 16_383 + b"\n") * 500,
    ],
    ids=["many rows", "blank lines", "a long line", "commas"],
)
async def test_others_go_on_while_a_large_file_is_read(content: bytes) -> None:
    assert await turns_during(read(content)) > 5


async def test_a_file_of_very_many_lines_is_refused() -> None:
    with pytest.raises(InvalidBody, match="at most 100,000 lines, got 8,000,002; remove the blank"):
        await read(HEADER + b"\n" * 8_000_000 + rows(1))


async def test_a_row_with_many_lines_is_one_row() -> None:
    name = b"a\n" * 100
    (row,) = await read(HEADER + b'"' + name + b'",1,\n')
    assert row.pet == NewPet(name.decode(), 1)


async def test_a_row_that_is_too_long_is_refused_with_its_beginning() -> None:
    long, short = await read(HEADER + b"Rex," + b"x" * 8_000_000 + b"\n" + rows(1))
    assert (long.line, long.reason) == (2, "expected CSV (row larger than 16384 characters)")
    assert long.text == "Rex," + "x" * 196 + "…\n"
    assert (short.line, short.pet) == (3, NewPet("Animal 0", 1))


async def test_a_row_of_too_many_cells_is_refused() -> None:
    (row, _) = await read(HEADER + b"Rex,1,sold" + b"," * 254 + b"\n" + rows(1))
    assert row.reason == "expected at most 256 fields, got 257"


async def test_a_quote_that_never_ends_takes_in_no_more_than_a_part_of_the_file() -> None:
    found = await read(HEADER + b'"a\n",' * 20_000)
    assert found[0].reason == "expected CSV (row larger than 16384 characters)"
    assert len(found[0].text) < 16_500


async def test_a_file_with_semicolons_is_read_as_one_with_commas() -> None:
    content = b'\xef\xbb\xbf"name";categoryId\r\n"B;e\nl,a";1\r\n\r\n;2\r\n' + b"Rex;1\n" * 200
    file, found = await opened(content), await read(content)
    assert file.columns == ["name", "categoryId"]
    assert [row.line for row in found][:3] == [2, 5, 6]
    assert [row.pet for row in found][:3] == [NewPet("B;e\nl,a", 1), None, NewPet("Rex", 1)]
    assert found[1].text == ";2\r\n"
    assert len(found) == 202
    assert file.digest == sha256(content).digest()
    assert file.delimiter == ";"


async def test_a_row_with_semicolons_that_is_no_csv_is_refused_alone() -> None:
    broken, row = await read(b"name;categoryId\nBella\r;1\nRex;1\n")
    assert broken.reason.startswith("expected CSV (new-line character seen")
    assert row.pet == NewPet("Rex", 1)


async def test_a_name_of_a_file_may_be_hostile() -> None:
    file = await opened(HEADER + rows(1), "a\0" + "b" * 300 + ".csv")
    assert file.name == "b" * 196 + ".csv"


@each_database
async def test_a_file_is_stored_in_batches_that_let_others_write_in_between(store: Store) -> None:
    assert await turns_during(begin(store, HEADER + b"Rex," + b"x" * 10_000 + b",\n" * 800)) > 20
    batches = Statement("SELECT length(rows) FROM console_import_batches")
    assert max(size for (size,) in await store.read(batches)) < 100_000


@each_database
async def test_a_file_that_is_refused_late_leaves_nothing(store: Store) -> None:
    with pytest.raises(InvalidBody, match="line 1002, column name: expected UTF-8"):
        await begin(store, HEADER + rows(1000) + b"M\xfcsli,1,\n")
    assert await list_imports(store, KEY) == []
    assert await store.read(Statement("SELECT id FROM console_imports")) == []
    assert await store.read(Statement("SELECT start FROM console_import_batches")) == []


@each_database
async def test_a_file_of_control_characters_takes_no_more_room_than_others(store: Store) -> None:
    with pytest.raises(InvalidBody, match="too many control characters"):
        await begin(store, HEADER + (b"\x01" * 8_000 + b",\n") * 1_000)
    assert await store.read(Statement("SELECT count(*) FROM console_import_batches")) == [(0,)]


@each_database
async def test_a_file_that_was_stored_in_part_is_not_seen_and_makes_room(store: Store) -> None:
    file = await opened(HEADER + rows(1))
    unfinished = await store.write(begin_import(KEY, file, now=NOW))
    assert await list_imports(store, KEY) == []
    with pytest.raises(NotFound):
        await find_import(store, unfinished, KEY)
    import_id = await begin(store, HEADER + rows(1))
    assert await store.read(Statement("SELECT id FROM console_imports")) == [(import_id,)]


@each_database
async def test_of_two_files_of_a_key_at_once_the_later_is_stored(store: Store) -> None:
    earlier = asyncio.create_task(begin(store, HEADER + rows(MAX_ROWS)))
    stored = Statement("SELECT start FROM console_import_batches")
    await eventually(lambda: store.read(stored))
    later = await begin(store, HEADER + rows(1))
    with pytest.raises(Conflict, match="another file was sent at the same time"):
        await earlier
    assert [each.id for each in await list_imports(store, KEY)] == [later]


@each_database
async def test_an_import_adds_as_many_rows_as_it_may(store: Store) -> None:
    import_id = await begin(store, HEADER + b"x,x,\n" + rows(3) + b"y,y,\n" + rows(2) + b"z,z,\n")
    assert await count_next_batch(store, import_id) == 5
    found = await step(store, import_id, limit=2)
    assert (found.waiting, found.added, found.refused) == (3, 2, 3)
    assert await names(store) == ["Animal 0", "Animal 1"]
    refused, _ = await read_batch(store, import_id, "refused")
    assert [row.line for row in refused] == [2, 6, 9]
    found = await step(store, import_id, limit=2)
    assert await count_next_batch(store, import_id) == 1
    found = await step(store, import_id, limit=2)
    assert (found.waiting, found.added, found.refused) == (0, 5, 3)
    assert await count_next_batch(store, import_id) == 0
    assert await names(store) == ["Animal 0", "Animal 1", "Animal 2", "Animal 0", "Animal 1"]


@each_database
async def test_nothing_is_added_before_the_first_step(store: Store) -> None:
    import_id = await begin(store, HEADER + b"Bella,1,sold\nRex,x,\nOskar,2,\n")
    found = await find_import(store, import_id, KEY)
    assert (found.waiting, found.added, found.refused, found.total) == (2, 0, 1, 3)
    assert found.finished_at is None
    assert await names(store) == []
    waiting, _ = await read_batch(store, import_id, "waiting")
    assert [(row.line, row.pet) for row in waiting] == [
        (2, NewPet("Bella", 1, "sold")),
        (4, NewPet("Oskar", 2)),
    ]


@each_database
async def test_an_import_adds_all_rows_in_their_order_with_their_events(store: Store) -> None:
    count = 2 * BATCH + 1
    import_id = await begin(store, HEADER + rows(count))
    found = await step(store, import_id)
    assert (found.waiting, found.added) == (BATCH + 1, BATCH)
    assert found.finished_at is None
    found = await finish(store, import_id)
    assert (found.waiting, found.added, found.refused) == (0, count, 0)
    assert (found.first_id, found.last_id, found.finished_at) == (1, count, NOW)
    assert await names(store) == [f"Animal {n}" for n in range(count)]
    events = await store.read(Statement(EVENTS))
    assert events == [(count,)]
    assert await step(store, import_id) == found


@each_database
async def test_steps_at_the_same_time_add_nothing_twice(address: str, store: Store) -> None:
    import_id = await begin(store, HEADER + rows(4 * BATCH))
    async with open_store(address) as other:
        stores = [store, other] * 4
        await asyncio.gather(*(step(each, import_id) for each in stores))
    assert sorted(await names(store)) == sorted(f"Animal {n}" for n in range(4 * BATCH))
    found = await find_import(store, import_id, KEY)
    assert (found.waiting, found.added) == (0, 4 * BATCH)


@each_database
async def test_the_content_of_a_finished_import_is_gone_but_for_the_refused_rows(
    store: Store,
) -> None:
    import_id = await begin(store, HEADER + rows(BATCH) + b"Rex,x,\n" + rows(1))
    await finish(store, import_id)
    assert await read_batch(store, import_id, "waiting") == ([], 0)
    refused, start = await read_batch(store, import_id, "refused")
    assert [(row.line, row.text) for row in refused] == [(BATCH + 2, "Rex,x,\n")]
    assert await read_batch(store, import_id, "refused", start) == ([], start)
    stored = await store.read(Statement("SELECT rows FROM console_import_batches ORDER BY start"))
    assert stored[0] == ("[]",)
    assert "Animal" not in stored[1][0]


@each_database
async def test_a_category_that_ends_between_two_steps_refuses_its_animals(store: Store) -> None:
    kept = (await store.write(create_category(CategoryCreate("Cats")))).id
    ended = (await store.write(create_category(CategoryCreate("Dogs")))).id
    content = HEADER + b"first,%d,\n" % kept * BATCH + b"Rex,%d,\nBella,%d,\n" % (ended, kept)
    import_id = await begin(store, content)
    await step(store, import_id, strict_categories=True)
    await store.write(delete_category(ended, lambda _: None))
    found = await step(store, import_id, strict_categories=True)
    assert (found.added, found.refused, found.waiting) == (BATCH + 1, 1, 0)
    ((row,), _) = await read_batch(store, import_id, "refused")
    assert row.reason.startswith("categoryId: expected a registered category")
    assert (await names(store))[-1] == "Bella"


@each_database
async def test_an_import_whose_animals_are_all_refused_late_has_added_nothing(store: Store) -> None:
    import_id = await begin(store, HEADER + b"Bella,1,\n")
    found = await step(store, import_id, strict_categories=True)
    assert (found.added, found.refused, found.waiting) == (0, 1, 0)
    assert (found.first_id, found.last_id, found.finished_at) == (None, None, NOW)


@each_database
async def test_an_import_belongs_to_its_key(store: Store, clock: ManualClock) -> None:
    import_id = await begin(store, HEADER + rows(1))
    other = (await issue(store, clock)).key.id
    with pytest.raises(NotFound):
        await find_import(store, import_id, other)
    with pytest.raises(NotFound):
        await store.write(add_batch(import_id, other, now=NOW, limit=1, strict_categories=False))
    with pytest.raises(NotFound):
        await store.write(delete_import(import_id, other))
    assert await list_imports(store, other) == []
    assert await names(store) == []


@each_database
async def test_a_file_sent_again_before_it_adds_anything_replaces_its_import(store: Store) -> None:
    first = await begin(store, HEADER + rows(1))
    second = await begin(store, HEADER + rows(1))
    assert [each.id for each in await list_imports(store, KEY)] == [second]
    await finish(store, second)
    third = await begin(store, HEADER + rows(1))
    assert [each.id for each in await list_imports(store, KEY)] == [third, second]
    assert first < second < third


@each_database
async def test_a_key_has_few_imports_and_a_finished_one_makes_room(store: Store) -> None:
    ids = [await begin(store, HEADER + rows(1 + n)) for n in range(MAX_IMPORTS)]
    with pytest.raises(Conflict, match="finish or discard one first"):
        await begin(store, HEADER + rows(99))
    await finish(store, ids[2])
    ids.append(await begin(store, HEADER + rows(99)))
    del ids[2]
    assert [each.id for each in await list_imports(store, KEY)] == ids[::-1]


@each_database
async def test_an_import_without_a_row_to_add_makes_room(store: Store) -> None:
    ids = [await begin(store, HEADER + b",1,\n" * (1 + n)) for n in range(MAX_IMPORTS)]
    ids.append(await begin(store, HEADER + rows(1)))
    assert [each.id for each in await list_imports(store, KEY)] == ids[:0:-1]


@each_database
async def test_old_imports_are_deleted_with_their_rows(store: Store) -> None:
    await begin(store, HEADER + rows(1))
    kept = await begin(store, HEADER + rows(2), now=NOW + MINUTE)
    assert await store.write(prune_imports(NOW + DAY - DAY)) == 0
    assert await store.write(prune_imports(NOW + MINUTE)) == 1
    assert [each.id for each in await list_imports(store, KEY)] == [kept]
    stored = await store.read(Statement("SELECT import_id FROM console_import_batches"))
    assert stored == [(kept,)]
