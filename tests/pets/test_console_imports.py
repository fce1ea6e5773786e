"""Imports of the console: the rows of a file, stored and added batch by batch."""

import asyncio
from io import BytesIO
from typing import Literal

import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import MINUTE
from petstore.databases.contract import Statement, Store
from petstore.errors import Conflict, InvalidBody, NotFound
from petstore.pets.columns import Columns, match_columns
from petstore.pets.console_imports import (
    MAX_IMPORTS,
    MAX_ROWS,
    ConsoleImport,
    add_batch,
    batches_of_others,
    begin_import,
    decide_batch,
    find_import,
    list_imports,
    next_pets,
    read_rows,
    stop_import,
)
from petstore.pets.files import FileRow, open_import_file
from petstore.pets.import_preparation import (
    BATCH,
    LIMITS,
    choose_columns,
    decide_categories,
    store_import,
)
from petstore.pets.model import NewPet
from petstore.pets.rows import keys_of_each, pet_of
from support.changes import NOW, create_category, delete_category
from support.keys import issue
from support.manual_clock import ManualClock
from support.pet_rows import select_pets
from support.retention import prune_table
from support.stores import open_store
from support.waiting import eventually, turns_during

pytestmark = pytest.mark.anyio
each_database = pytest.mark.each_database

HEADER = b"name,categoryId,status\n"
KEY = 1
EVENTS = "SELECT count(*) FROM /*sqlite*/ events /*end*/ /*pg events_outbox */"


@pytest.fixture
async def store(store: Store, clock: ManualClock) -> Store:
    """A store with the key that imports, whose id is ``KEY``, and with the categories 1 and 2."""
    assert (await issue(store, clock)).id == KEY
    for name in ("Animals", "Birds"):
        await store.write(create_category(CategoryCreate(name)))
    return store


def rows(count: int) -> bytes:
    return b"".join(b"Animal %d,1,\n" % n for n in range(count))


async def begin(
    store: Store, content: bytes, now: int = NOW, key_id: int = KEY, name: str = "a.csv"
) -> int:
    return await store_import(
        store, key_id, name, BytesIO(content), lambda: now, named_categories=True
    )


async def step(store: Store, import_id: int, limit: int = BATCH) -> ConsoleImport:
    return await store.write(add_batch(import_id, KEY, now=NOW, limit=limit))


async def finish(store: Store, import_id: int) -> ConsoleImport:
    while (found := await step(store, import_id)).waiting:
        pass
    return found


async def stored(
    store: Store, import_id: int, kind: Literal["waiting", "refused"], limit: int = MAX_ROWS
) -> list[FileRow]:
    return [row async for row in read_rows(store, import_id, kind, limit)]


async def names(store: Store) -> list[str]:
    return [pet_of(row).name for row in await store.read(select_pets(100_000))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a CSV file; this one is empty"),
        (b"name,categoryId,Gr\xf6\xdfe\nBella,1,2\n", "line 1, column Gr\udcf6\udcdfe: expected"),
        (HEADER[:-1] + b",x" * 254 + b"\n", "line 1: expected at most 256 columns, got 257"),
        (HEADER, "line 2: expected a row for each animal"),
        (HEADER + b"\n\n", "line 2: expected a row for each animal"),
        (HEADER + b"Bella,1,\n" + b"M\xfcsli,1,\n", "line 3, column name: expected UTF-8"),
        (HEADER + b'"Bel\nla",1,f\xfcr\n', "line 2, column status: expected UTF-8"),
        (b"name;categoryId\nM\xfcsli;1\n", "line 2, column name: expected UTF-8"),
        (HEADER + b'"M\xfcsli"x,1,\n', "line 2: expected UTF-8"),
        (HEADER + b"a,1,,\xfc\n", "line 2: expected UTF-8"),
        (HEADER + rows(1_000) + b"M\xfcsli,1,\n", "line 1002, column name: expected UTF-8"),
        (HEADER + rows(MAX_ROWS + 1), "expected at most 20,000 rows; divide the file"),
        (HEADER + b"\n" * 8_000_000, "expected at most 100,000 lines; remove the blank ones"),
        (HEADER + (b"\x01" * 8_000 + b",\n") * 1_000, "expected text; the file has too many"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
@each_database
async def test_a_file_that_is_not_a_table_of_animals_leaves_nothing(
    store: Store, content: bytes, message: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        await begin(store, content)
    assert refused.value.message.startswith(message)
    assert await store.read(Statement("SELECT id FROM console_imports")) == []
    assert await store.read(Statement("SELECT start FROM console_import_batches")) == []


@pytest.mark.parametrize(
    "content",
    [
        HEADER + rows(MAX_ROWS),
        HEADER + b"\n" * (LIMITS.lines - 2) + rows(1),
        HEADER + b",x" * 4_000_000 + b"\n" + rows(1),
        HEADER + (b"," * 16_383 + b"\n") * 500,
        HEADER + (b"Rex," + b"x" * 10_000 + b",\n") * 800,
    ],
    ids=["many rows", "blank lines", "a long line", "commas", "long rows"],
)
@each_database
async def test_a_file_is_stored_in_batches_and_others_run_in_between(
    store: Store, content: bytes
) -> None:
    assert await turns_during(begin(store, content)) > 20
    batches = Statement("SELECT length(rows) FROM console_import_batches")
    assert max(size for (size,) in await store.read(batches)) < 100_000


async def test_a_hostile_file_name_is_accepted(store: Store) -> None:
    import_id = await begin(store, HEADER + rows(1), name="a\0" + "b" * 300 + ".csv")
    assert (await find_import(store, import_id, KEY)).file == "b" * 196 + ".csv"


@each_database
async def test_a_partly_stored_file_is_hidden_and_replaced(store: Store) -> None:
    file = open_import_file(BytesIO(HEADER + rows(1)))
    unfinished = await store.write(begin_import(KEY, "a.csv", file.digest, file.layout, now=NOW))
    assert await list_imports(store, KEY) == []
    with pytest.raises(NotFound):
        await find_import(store, unfinished, KEY)
    import_id = await begin(store, HEADER + rows(1))
    assert await store.read(Statement("SELECT id FROM console_imports")) == [(import_id,)]


@each_database
async def test_the_later_of_two_concurrent_files_of_a_key_is_stored(store: Store) -> None:
    earlier = asyncio.create_task(begin(store, HEADER + rows(MAX_ROWS)))
    stored = Statement("SELECT start FROM console_import_batches")
    await eventually(lambda: store.read(stored))
    later = await begin(store, HEADER + rows(1))
    with pytest.raises(Conflict, match="another file was sent at the same time"):
        await earlier
    assert [each.id for each in await list_imports(store, KEY)] == [later]


@each_database
async def test_an_import_adds_at_most_the_allowed_number_of_rows(store: Store) -> None:
    import_id = await begin(store, HEADER + b"x,,\n" + rows(3) + b"y,,\n" + rows(2) + b"z,,\n")
    assert len(await next_pets(store, import_id)) == 5
    found = await step(store, import_id, limit=2)
    assert (found.waiting, found.added, found.refused) == (3, 2, 3)
    assert await names(store) == ["Animal 0", "Animal 1"]
    assert [row.line for row in await stored(store, import_id, "refused")] == [2, 6, 9]
    found = await step(store, import_id, limit=2)
    assert len(await next_pets(store, import_id)) == 1
    found = await step(store, import_id, limit=2)
    assert (found.waiting, found.added, found.refused) == (0, 5, 3)
    assert len(await next_pets(store, import_id)) == 0
    assert await names(store) == ["Animal 0", "Animal 1", "Animal 2", "Animal 0", "Animal 1"]


@each_database
async def test_nothing_is_added_before_the_first_step(store: Store) -> None:
    import_id = await begin(store, HEADER + b"Bella,1,sold\nRex,,\nOskar,2,\n")
    found = await find_import(store, import_id, KEY)
    assert (found.waiting, found.added, found.refused, found.total) == (2, 0, 1, 3)
    assert found.finished_at is None
    assert await names(store) == []
    waiting = await stored(store, import_id, "waiting")
    assert [(row.line, row.pet) for row in waiting] == [
        (2, NewPet("Bella", 1, "sold")),
        (4, NewPet("Oskar", 2)),
    ]


@each_database
async def test_an_import_adds_all_rows_in_order_with_their_events(store: Store) -> None:
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
    assert events == [(2 + count,)]
    assert await step(store, import_id) == found


async def test_the_first_rows_of_a_kind_are_read_across_batches(store: Store) -> None:
    import_id = await begin(store, HEADER + (rows(BATCH - 1) + b"Rex,,\n") * 3)
    assert [row.line for row in await stored(store, import_id, "refused", 2)] == [201, 401]
    assert len(await stored(store, import_id, "waiting", BATCH)) == BATCH


@each_database
async def test_concurrent_steps_add_each_row_once(address: str, store: Store) -> None:
    import_id = await begin(store, HEADER + rows(4 * BATCH))
    async with open_store(address) as other:
        stores = [store, other] * 4
        await asyncio.gather(*(step(each, import_id) for each in stores))
    assert sorted(await names(store)) == sorted(f"Animal {n}" for n in range(4 * BATCH))
    found = await find_import(store, import_id, KEY)
    assert (found.waiting, found.added) == (0, 4 * BATCH)


@each_database
async def test_a_finished_import_keeps_only_its_refused_rows(store: Store) -> None:
    import_id = await begin(store, HEADER + rows(BATCH) + b"Rex,,\n" + rows(1))
    await finish(store, import_id)
    assert await stored(store, import_id, "waiting") == []
    refused = await stored(store, import_id, "refused")
    assert [(row.line, row.text) for row in refused] == [(BATCH + 2, "Rex,,\n")]
    batches = await store.read(Statement("SELECT rows FROM console_import_batches ORDER BY start"))
    assert batches[0] == ("[]",)
    assert "Animal" not in batches[1][0]


@each_database
async def test_animals_of_a_category_deleted_between_two_steps_are_refused(store: Store) -> None:
    kept = (await store.write(create_category(CategoryCreate("Cats")))).id
    ended = (await store.write(create_category(CategoryCreate("Dogs")))).id
    content = HEADER + b"first,%d,\n" % kept * BATCH + b"Rex,%d,\nBella,%d,\n" % (ended, kept)
    import_id = await begin(store, content)
    await step(store, import_id)
    await store.write(delete_category(ended, lambda _: None))
    found = await step(store, import_id)
    assert (found.added, found.refused, found.waiting) == (BATCH + 1, 1, 0)
    (row,) = await stored(store, import_id, "refused")
    assert row.reason.startswith("categoryId: expected a registered category")
    assert (await names(store))[-1] == "Bella"


@each_database
async def test_an_import_whose_animals_are_all_refused_late_adds_nothing(store: Store) -> None:
    import_id = await begin(store, HEADER + b"Bella,1,\n")
    await store.write(delete_category(1, lambda _: None))
    found = await step(store, import_id)
    assert (found.added, found.refused, found.waiting) == (0, 1, 0)
    assert (found.first_id, found.last_id, found.finished_at) == (None, None, NOW)


@each_database
async def test_an_import_belongs_to_its_key(store: Store, clock: ManualClock) -> None:
    import_id = await begin(store, HEADER + rows(1))
    other = (await issue(store, clock)).id
    with pytest.raises(NotFound):
        await find_import(store, import_id, other)
    with pytest.raises(NotFound):
        await store.write(add_batch(import_id, other, now=NOW, limit=1))
    with pytest.raises(NotFound):
        await store.write(stop_import(import_id, other, now=NOW))
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
async def test_unfinished_imports_of_a_key_are_limited_and_a_finished_one_is_replaced(
    store: Store,
) -> None:
    ids = [await begin(store, HEADER + rows(1 + n)) for n in range(MAX_IMPORTS)]
    with pytest.raises(Conflict, match="finish or discard one first"):
        await begin(store, HEADER + rows(99))
    await finish(store, ids[2])
    ids.append(await begin(store, HEADER + rows(99)))
    del ids[2]
    assert [each.id for each in await list_imports(store, KEY)] == ids[::-1]


@each_database
async def test_an_import_without_a_valid_row_is_replaced(store: Store) -> None:
    ids = [await begin(store, HEADER + b",1,\n" * (1 + n)) for n in range(MAX_IMPORTS)]
    ids.append(await begin(store, HEADER + rows(1)))
    assert [each.id for each in await list_imports(store, KEY)] == ids[:0:-1]


@each_database
async def test_a_file_sent_again_takes_no_room_of_another(store: Store) -> None:
    ids = [await begin(store, HEADER + rows(1 + n)) for n in range(MAX_IMPORTS)]
    again = await begin(store, HEADER + rows(3))
    assert [each.id for each in await list_imports(store, KEY)] == [again, *ids[:2:-1], *ids[1::-1]]


OTHER = b"Tier,Art,Preis\n"
CHOSEN = match_columns(["Tier", "Art", "Preis"], {"name": 0, "categoryId": 1, "status": None})


async def choose(store: Store, import_id: int, columns: Columns = CHOSEN) -> int:
    found = await find_import(store, import_id, KEY)
    return await choose_columns(store, KEY, found, columns, lambda: NOW + 1, named_categories=True)


@each_database
async def test_an_import_is_replaced_by_one_with_the_chosen_columns(store: Store) -> None:
    for count in range(MAX_IMPORTS - 1):
        await begin(store, HEADER + rows(1 + count))
    unsure = await begin(store, OTHER + b'A,1,\n"B"x,1,\n\nC,,\n' + b"D,2,\n" * BATCH)
    found = await find_import(store, unsure, KEY)
    assert (found.waiting, found.refused, found.total, found.has_columns) == (0, 0, 203, False)
    chosen = await choose(store, unsure)
    found = await find_import(store, chosen, KEY)
    assert (found.waiting, found.refused, found.total, found.has_columns) == (201, 2, 203, True)
    assert found.file == "a.csv"
    assert unsure not in [each.id for each in await list_imports(store, KEY)]
    refused = [(row.line, row.reason[:14]) for row in await stored(store, chosen, "refused")]
    assert refused == [(3, "expected CSV ("), (5, "categoryId: ex")]
    first = (await stored(store, chosen, "waiting"))[0]
    assert (first.line, first.text, first.pet) == (2, "A,1,\n", NewPet("A", 1))


UNDECIDED = b"A,Cats,\n" * BATCH + b"B,1,\nC,Cats,\nD,3,\nE,,\n"


def counts(found: ConsoleImport) -> tuple[object, ...]:
    undecided = {each.text: each.rows for each in found.undecided}
    return (found.waiting, found.added, found.refused, undecided, found.finished_at)


@each_database
async def test_interrupted_decisions_can_be_made_again(store: Store) -> None:
    import_id = await begin(store, HEADER + UNDECIDED)
    found = await find_import(store, import_id, KEY)
    assert counts(found) == (1, 0, 1, {"Cats": BATCH + 1, "3": 1}, None)
    first, _ = await batches_of_others(store, import_id)
    decisions = {"cats": 2, "3": None}
    await store.write(decide_batch(import_id, KEY, first, decisions, now=NOW))
    found = await find_import(store, import_id, KEY)
    assert counts(found) == (BATCH + 1, 0, 1, {"Cats": 1, "3": 1}, None)
    for _ in range(2):
        await decide_categories(store, KEY, import_id, decisions, lambda: NOW)
        found = await find_import(store, import_id, KEY)
        assert counts(found) == (BATCH + 2, 0, 2, {}, None)
    await finish(store, import_id)
    assert await names(store) == ["A"] * BATCH + ["B", "C"]


@each_database
async def test_an_import_with_undecided_rows_is_not_finished(store: Store) -> None:
    import_id = await begin(store, HEADER + UNDECIDED)
    found = await step(store, import_id)
    assert counts(found) == (0, 1, 1, {"Cats": BATCH + 1, "3": 1}, None)
    for count in range(MAX_IMPORTS - 1):
        await begin(store, HEADER + rows(1 + count))
    with pytest.raises(Conflict):
        await begin(store, HEADER + rows(99))
    await decide_categories(store, KEY, import_id, {"cats": None, "3": None}, lambda: NOW + 2)
    found = await find_import(store, import_id, KEY)
    assert counts(found) == (0, 1, BATCH + 3, {}, NOW + 2)


@each_database
async def test_concurrent_decisions_and_steps_add_each_row_once(address: str, store: Store) -> None:
    import_id = await begin(store, HEADER + b"A,1,\nB,Cats,\nC,Dogs,\n" * BATCH)
    async with open_store(address) as other:
        await asyncio.gather(
            decide_categories(store, KEY, import_id, {"cats": 1}, lambda: NOW),
            decide_categories(other, KEY, import_id, {"cats": 2, "dogs": 2}, lambda: NOW),
            *(step(each, import_id) for each in [store, other] * 3),
        )
    await finish(store, import_id)
    found = await find_import(store, import_id, KEY)
    assert counts(found) == (0, 3 * BATCH, 0, {}, NOW)
    assert sorted(await names(store)) == sorted(["A", "B", "C"] * BATCH)


@each_database
async def test_a_decision_about_a_stopped_import_adds_nothing_to_it(store: Store) -> None:
    import_id = await begin(store, HEADER + UNDECIDED)
    await step(store, import_id)
    first, last = await batches_of_others(store, import_id)
    decisions = {"cats": 2, "3": None}
    await store.write(decide_batch(import_id, KEY, first, decisions, now=NOW))
    await store.write(stop_import(import_id, KEY, now=NOW))
    stopped = counts(await find_import(store, import_id, KEY))
    for start in (first, last):
        await store.write(decide_batch(import_id, KEY, start, decisions, now=NOW))
    assert counts(await find_import(store, import_id, KEY)) == stopped
    await finish(store, import_id)
    assert await names(store) == ["B"]


@each_database
async def test_others_run_before_animals_with_long_names_are_added(store: Store) -> None:
    content = "".join("\ufdfa" * 250 + f"{n},1,\n" for n in range(50))
    import_id = await begin(store, HEADER + content.encode())
    pets = await next_pets(store, import_id)
    assert await turns_during(keys_of_each(pet.name for pet in pets)) > 20
    known = await keys_of_each(pet.name for pet in pets)
    await store.write(add_batch(import_id, KEY, now=NOW, limit=BATCH, known=known))
    assert await next_pets(store, import_id) == []


@each_database
async def test_others_run_while_columns_are_chosen_and_categories_decided(store: Store) -> None:
    content = OTHER + b"".join(b"Animal %d,Kind %d,\n" % (n, n % 20) for n in range(MAX_ROWS))
    import_id = await begin(store, content)
    assert await turns_during(choose(store, import_id)) > 20
    (found,) = await list_imports(store, KEY)
    assert found.refused == 0
    decisions = {each.key: 1 for each in found.undecided}
    deciding = decide_categories(store, KEY, found.id, decisions, lambda: NOW)
    assert await turns_during(deciding) > 20
    assert (await find_import(store, found.id, KEY)).waiting == MAX_ROWS


@each_database
async def test_others_decide_nothing_about_an_import_of_a_key(
    store: Store, clock: ManualClock
) -> None:
    import_id = await begin(store, HEADER + UNDECIDED)
    other = (await issue(store, clock)).id
    with pytest.raises(NotFound):
        await decide_categories(store, other, import_id, {"cats": 1}, lambda: NOW)


@each_database
async def test_old_imports_are_deleted_one_at_a_time_with_their_rows(store: Store) -> None:
    for number in (1, 3):
        await begin(store, HEADER + rows(number))
    kept = await begin(store, HEADER + rows(2), now=NOW + MINUTE)
    assert await store.write(prune_table("console_imports", NOW)) == 0
    deleted = [await store.write(prune_table("console_imports", NOW + MINUTE)) for _ in range(3)]
    assert deleted == [1, 1, 0]
    assert [each.id for each in await list_imports(store, KEY)] == [kept]
    stored = await store.read(Statement("SELECT import_id FROM console_import_batches"))
    assert stored == [(kept,)]
