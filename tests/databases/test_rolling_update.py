"""Version 2.0.0 beside this one on one database: no event loses its author.

What a process of 2.0.0 does is here as that version does it, statement by statement.
"""

from collections.abc import AsyncIterator, Collection
from typing import Any

import apsw
import pytest
from msgspec.json import decode

from petstore.databases.contract import Statement, Store, Unit, placeholders
from petstore.databases.migrations import scripts
from petstore.databases.postgres import PostgresStore
from petstore.databases.sqlite import SqliteStore
from petstore.events.history import list_all, read_latest
from petstore.events.model import EVENT_TYPES, Author, NewEvent
from petstore.events.store import publish_all, record
from support.changes import NOW
from support.history import events_after, plain
from support.postgres import PostgresServer, database_name
from support.postgres_stores import open_postgres_store
from support.stores import open_store

pytestmark = pytest.mark.anyio

GRACE = Author("person/2", "r-1")
VERSION_2 = 14
"""The number of migrations of version 2.0.0."""
COLUMNS = "id, type, at, resource, key_id, data, previous"
# As version 2.0.0 has it.
PUBLISH = (
    "WITH first AS MATERIALIZED ("  # noqa: S608 - only names
    "  SELECT transaction, position FROM events_outbox ORDER BY position LIMIT ?1"
    "), whole AS MATERIALIZED ("
    "  SELECT transaction, max(position) AS last FROM first GROUP BY transaction"
    "  HAVING NOT EXISTS (SELECT 1 FROM events_outbox o"
    "  WHERE o.transaction = first.transaction"
    "  AND o.position + 0 > (SELECT max(position) FROM first) OFFSET 0)"
    "), taken AS ("
    "  DELETE FROM events_outbox o USING whole w"
    "  WHERE o.transaction = w.transaction"
    "  AND o.position <= (SELECT max(position) FROM first) RETURNING o.*, w.last"
    "), published AS ("
    f"  INSERT INTO events (sequence, {COLUMNS})"
    "  SELECT (SELECT coalesce(max(sequence), 0) FROM events)"
    f"  + row_number() OVER (ORDER BY last, position), {COLUMNS} FROM taken RETURNING 1"
    ") SELECT count(*) FROM published"
)
LOCK = (
    "SELECT pg_try_advisory_xact_lock(?1),"
    " set_config('plan_cache_mode', 'force_custom_plan', true),"
    " set_config('enable_nestloop', 'off', true), set_config('enable_seqscan', 'off', true)"
)


def told(pet: int) -> NewEvent:
    return NewEvent("pet.updated", f"pet/{pet}", {"id": pet}, {"name": "Rex"})


def recorded(pets: Collection[int], by: Author = GRACE) -> Unit[None]:
    for first in range(0, len(pets), 100):
        yield record(NOW, *map(told, [*pets][first : first + 100]), by=by)


def recorded_by_2_0(table: str, pets: Collection[int]) -> Unit[None]:
    """Record events as a process of version 2.0.0 does."""
    for pet in pets:
        values = (f"evt_{pet:024x}", "pet.updated", NOW, f"pet/{pet}", None, "{}", "{}")
        sql = f"INSERT INTO {table} ({COLUMNS}) VALUES {placeholders(7)}"  # noqa: S608 - only names
        yield Statement(sql, values)


def published_by_2_0(limit: int = 10_000) -> Unit[int]:
    """Publish events as a process of version 2.0.0 does."""
    yield Statement(LOCK, (0x45564E54,))
    ((count,),) = yield Statement(PUBLISH, (limit,))
    return int(count)


async def authors(store: Store) -> list[tuple[str, Any, Any]]:
    """Return resource, actor and request of all events."""
    found = [plain(event) for event in await events_after(store)]
    assert [event["sequence"] for event in found] == list(range(1, len(found) + 1))
    return [(event["resource"], event.get("actor"), event.get("requestId")) for event in found]


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_postgres_store(postgres_url) as store:
        yield store


PERSON = {"type": "person", "id": 2}
SERVICE = {"type": "service"}


@pytest.mark.parametrize("count", [1, 3000])
async def test_events_that_an_older_process_publishes_keep_their_authors(
    server: Store, count: int
) -> None:
    await server.write(recorded(range(count)))
    assert await server.write(published_by_2_0()) == count
    assert await authors(server) == [(f"pet/{pet}", PERSON, "r-1") for pet in range(count)]


async def test_an_older_process_publishes_events_of_both_versions_in_several_parts(
    server: Store,
) -> None:
    """One transaction each: so some of them are published, and the others later."""
    for pet in range(1, 10):
        if pet % 3 == 0:
            await server.write(recorded_by_2_0("events_outbox", [pet]))
        else:
            author = GRACE if pet % 3 == 1 else Author("service")
            await server.write(recorded([pet], author))
    counts = [await server.write(published_by_2_0(limit)) for limit in (2, 3)]
    assert counts == [2, 3]
    await publish_all(server)
    expected = [(PERSON, "r-1"), (SERVICE, None), (None, None)] * 3
    found = await authors(server)
    assert found == [(f"pet/{pet}", *who) for pet, who in enumerate(expected, 1)]


async def test_this_version_publishes_what_an_older_one_recorded(server: Store) -> None:
    await server.write(recorded_by_2_0("events_outbox", [1, 2]))
    assert await authors(server) == [("pet/1", None, None), ("pet/2", None, None)]


async def test_to_keep_the_authors_of_many_events_takes_time_in_proportion(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """Each row of the outbox is read a few times, and not once for each other one."""
    async with open_postgres_store(postgres_url) as store:
        await store.write(recorded(range(5000)))
    before = rows_read(postgres, postgres_url)
    async with open_postgres_store(postgres_url) as store:
        assert await store.write(published_by_2_0()) == 5000
    assert rows_read(postgres, postgres_url) - before < 20 * 5000


def rows_read(postgres: PostgresServer, url: str) -> int:
    """Return how many rows of the outbox, of the events, or of their indexes were read."""
    names = "relname IN ('events_outbox', 'events')"
    select = (
        f"SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE {names})"  # noqa: S608
        f" + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE {names})"
    )
    return int(postgres.sql(select, database_name(url)))


async def test_an_older_process_reads_the_events_of_this_version(server: Store) -> None:
    await server.write(recorded([7]))
    await publish_all(server)
    select = f"SELECT sequence, {COLUMNS} FROM events WHERE sequence >= 1"  # noqa: S608 - only names
    ((sequence, _, kind, at, resource, key_id, data, previous),) = await server.read(
        Statement(select)
    )
    assert (sequence, kind, at, resource, key_id) == (1, "pet.updated", NOW, "pet/7", None)
    assert (decode(data), decode(previous)) == ({"id": 7}, {"name": "Rex"})


# On SQLite


async def test_events_of_an_older_process_on_the_same_file_are_in_the_history(
    database: Any,
) -> None:
    async with open_store(database) as store:
        await store.write(recorded([1]))
        await list_all(store)
        await store.write(recorded_by_2_0("events", [1]))
        await list_all(store)
        events, _ = await read_latest(store, "pet/1")
    assert [event.actor for event in events] == [None, "person/2"]


async def test_the_events_of_a_store_of_2_0_are_all_there_and_have_no_author(database: Any) -> None:
    connection = apsw.Connection(str(database))
    for script in scripts("sqlite")[:VERSION_2]:
        connection.execute(script)
    for statement in recorded_by_2_0("events", [1, 2, 1]):
        connection.execute(
            statement.sql.replace("INSERT", "INSERT OR REPLACE"), statement.parameters
        )
    connection.pragma("application_id", 0x50455453)
    connection.pragma("user_version", VERSION_2)
    connection.close()
    SqliteStore(database).migrate()
    async with open_store(database) as store:
        assert await authors(store) == [(f"pet/{pet}", None, None) for pet in (1, 2, 1)]
        events, _ = await read_latest(store, "pet/1")
        assert [event.sequence for event in events] == [3, 1]
        await store.write(recorded([1]))
        events, _ = await read_latest(store, "pet/1")
        assert [event.actor for event in events] == ["person/2", None, None]
    assert set(EVENT_TYPES) >= {event.type for event in events}
