"""The database that the lists of a key come from: a real replica, or the primary."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias

import pytest

from petstore.backends import create_readers
from petstore.databases.contract import Reader, Statement
from petstore.databases.last_writes import MemoryLastWrites, RedisLastWrites
from petstore.databases.postgres import PostgresStore
from petstore.databases.replicas import Readers, ReplicaReaders
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.redis_client.client import RedisClient, RedisUnavailable
from petstore.settings import Settings
from support.manual_clock import ManualClock
from support.postgres import database_name
from support.postgres_replica import PostgresReplica, replicated
from support.postgres_stores import open_postgres_store
from support.process import free_port
from support.redis_server import RedisServer
from support.stores import do
from support.waiting import eventually

pytestmark = pytest.mark.anyio

KEY, ANOTHER = 1, 2
SLOW = 30_000
OpenReaders: TypeAlias = Callable[..., Awaitable[ReplicaReaders]]
WHERE = Statement("SELECT pg_is_in_recovery()")
CHANGE = "INSERT INTO categories (name, name_key) VALUES ('Dogs', 'dogs')"
WARNING = "the replica fails; lists are read from the primary"


@pytest.fixture(scope="module")
def replica() -> Iterator[PostgresReplica]:
    with replicated() as replica:
        yield replica


@pytest.fixture
def url(replica: PostgresReplica) -> str:
    url = replica.primary.new_store()
    replica.catch_up()
    return url


@pytest.fixture
async def primary(url: str) -> AsyncIterator[PostgresStore]:
    async with open_postgres_store(url) as store:
        yield store


@pytest.fixture
async def open_readers(
    replica: PostgresReplica, primary: PostgresStore, url: str, clock: ManualClock
) -> AsyncIterator[OpenReaders]:
    opened = []

    async def open_them(replica_timeout: int = SLOW, list_timeout: int = SLOW) -> ReplicaReaders:
        copy = PostgresStore(replica.url_of(url), replica_timeout)
        readers = ReplicaReaders(primary, copy, MemoryLastWrites(clock), clock, list_timeout)
        await readers.open()
        opened.append(readers)
        return readers

    yield open_them
    for readers in opened:
        await readers.close()


@pytest.fixture
async def readers(open_readers: OpenReaders) -> ReplicaReaders:
    """Readers for which slow is no failure."""
    return await open_readers()


async def is_replica(reader: Reader) -> bool:
    ((is_in_recovery,),) = await reader.read(WHERE)
    return bool(is_in_recovery)


async def is_read_from_replica(readers: Readers, key_id: int) -> bool:
    return await is_replica(await readers.for_key(key_id))


async def test_without_a_replica_every_list_is_read_from_the_store(store: SqliteStore) -> None:
    readers = Readers(store)
    await readers.open()
    await readers.record_write(KEY)
    assert await readers.for_key(KEY) is store
    await readers.close()
    await store.check()


async def test_lists_of_a_key_without_a_write_are_read_from_the_replica(
    readers: ReplicaReaders,
) -> None:
    assert await is_read_from_replica(readers, KEY)


async def test_a_key_reads_from_the_primary_until_the_replica_has_its_write(
    replica: PostgresReplica, primary: PostgresStore, readers: ReplicaReaders
) -> None:
    with replica.behind():
        await primary.write(do(CHANGE))
        await readers.record_write(KEY)
        assert not await is_read_from_replica(readers, KEY)
        assert await is_read_from_replica(readers, ANOTHER)
    assert await is_read_from_replica(readers, KEY)


async def test_without_redis_a_process_knows_the_writes_of_its_own_keys(
    replica: PostgresReplica, primary: PostgresStore, url: str, clock: ManualClock
) -> None:
    copy = PostgresStore(replica.url_of(url), SLOW)
    readers = create_readers(Settings(database_timeout=30), primary, copy, clock)
    await readers.open()
    with replica.behind():
        await primary.write(do(CHANGE))
        await readers.record_write(KEY)
        assert not await is_read_from_replica(readers, KEY)
        assert await is_read_from_replica(readers, ANOTHER)
    await readers.close()


@pytest.mark.parametrize("has_changed", [False, True])
async def test_without_the_replica_lists_are_read_from_the_primary_until_it_is_back(
    replica: PostgresReplica,
    readers: ReplicaReaders,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    has_changed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    if has_changed:
        await readers.record_write(KEY)
    await eventually(lambda: is_read_from_replica(readers, KEY))
    replica.kill()
    try:
        assert not await is_read_from_replica(readers, KEY)
        assert caplog.text.count(WARNING) == 1
        clock.advance(1.999)
        assert not await is_read_from_replica(readers, KEY)
        assert caplog.text.count(WARNING) == 1
        clock.advance(0.001)
        assert not await is_read_from_replica(readers, KEY)
        assert caplog.text.count(WARNING) == 2
    finally:
        replica.start()
    clock.advance(2.1)
    assert await is_read_from_replica(readers, KEY)


async def test_a_read_from_a_hanging_replica_falls_back_to_the_primary(
    replica: PostgresReplica, open_readers: OpenReaders, clock: ManualClock
) -> None:
    readers = await open_readers(replica_timeout=500)
    reader = await readers.for_key(KEY)
    with replica.stopped():
        assert not await is_replica(reader)
        assert not await is_read_from_replica(readers, KEY)

    async def is_used_again() -> bool:
        clock.advance(2.1)
        return await is_read_from_replica(readers, KEY)

    await eventually(is_used_again)


@pytest.mark.parametrize(
    ("migration", "select"),
    [
        ("CREATE TABLE fresh (id BIGINT)", "SELECT id FROM fresh"),
        ("ALTER TABLE categories ADD COLUMN fresh BIGINT", "SELECT fresh FROM categories"),
    ],
    ids=["table", "column"],
)
async def test_what_is_missing_on_the_replica_is_read_from_the_primary(
    replica: PostgresReplica,
    primary: PostgresStore,
    readers: ReplicaReaders,
    migration: str,
    select: str,
) -> None:
    with replica.behind():
        await primary.write(do(migration))
        reader = await readers.for_key(KEY)
        assert await reader.read(Statement(select)) == []


async def test_a_key_with_a_write_does_not_read_from_a_replica_that_is_now_a_primary(
    replica: PostgresReplica, primary: PostgresStore, url: str, clock: ManualClock
) -> None:
    promoted = PostgresStore(replica.primary.new_store(), SLOW)
    readers = ReplicaReaders(primary, promoted, MemoryLastWrites(clock), clock, SLOW)
    await readers.open()
    await readers.record_write(KEY)
    reader = await readers.for_key(KEY)
    assert await reader.read(Statement("SELECT current_database()")) == [(database_name(url),)]
    await readers.close()


async def test_a_service_works_with_a_replica_that_is_never_reachable(
    primary: PostgresStore, clock: ManualClock
) -> None:
    nowhere = PostgresStore(f"postgresql://petstore@127.0.0.1:{free_port()}/petstore")
    readers = ReplicaReaders(primary, nowhere, MemoryLastWrites(clock), clock)
    await readers.open()
    await readers.record_write(KEY)
    assert not await is_read_from_replica(readers, KEY)
    assert not await is_read_from_replica(readers, ANOTHER)
    await readers.close()


async def test_a_failure_of_both_databases_is_an_error(
    readers: ReplicaReaders, replica: PostgresReplica
) -> None:
    reader = await readers.for_key(KEY)
    replica.primary.stop("immediate")
    try:
        replica.stop("immediate")
        with pytest.raises(Unavailable):
            await reader.read(WHERE)
        replica.start()
    finally:
        replica.primary.start()


async def test_when_both_databases_hang_a_list_is_refused_in_time(
    replica: PostgresReplica, open_readers: OpenReaders
) -> None:
    readers = await open_readers(list_timeout=500)
    with replica.stopped(), replica.primary.stopped():
        async with asyncio.timeout(20):  # before either database would have been given up
            with pytest.raises(Unavailable, match="in time"):
                await is_read_from_replica(readers, KEY)


async def test_waiting_for_the_position_of_the_replica_counts_towards_the_timeout_of_a_list(
    replica: PostgresReplica, open_readers: OpenReaders
) -> None:
    readers = await open_readers(replica_timeout=500, list_timeout=400)
    await readers.record_write(KEY)
    with replica.stopped(), pytest.raises(Unavailable, match="in time"):
        await is_read_from_replica(readers, KEY)


async def test_a_key_with_a_write_of_unknown_position_reads_from_the_primary(
    replica: PostgresReplica, open_readers: OpenReaders, caplog: pytest.LogCaptureFixture
) -> None:
    readers = await open_readers(list_timeout=9_000)
    with replica.primary.stopped():
        async with asyncio.timeout(8):  # recording may take only a part of the timeout
            await readers.record_write(KEY)
    assert "cannot read the LSN of the primary: it did not respond in time" in caplog.text
    replica.catch_up()
    assert not await is_read_from_replica(readers, KEY)
    assert await is_read_from_replica(readers, ANOTHER)
    await readers.record_write(KEY)
    await eventually(lambda: is_read_from_replica(readers, KEY))


async def test_readers_that_close_disconnect_from_redis(
    primary: PostgresStore, redis: RedisServer, clock: ManualClock
) -> None:
    def connections() -> int:
        """Count them, but for the one of the command itself."""
        return len(redis.call("CLIENT", "LIST").splitlines()) - 1

    last_writes = RedisLastWrites(RedisClient(redis.url), (RedisUnavailable,), clock, 5)
    nowhere = PostgresStore(f"postgresql://petstore@127.0.0.1:{free_port()}/petstore")
    readers = ReplicaReaders(primary, nowhere, last_writes, clock)
    await readers.open()
    await readers.record_write(KEY)
    assert connections() == 1
    await readers.close()
    await eventually(lambda: connections() == 0)


class Forgetful(MemoryLastWrites):
    """Last writes that nobody can record or read."""

    async def record(self, key_id: int, lsn: int) -> None:
        msg = f"no place for {key_id} at {lsn}"
        raise Unavailable(msg)

    async def lsn(self, key_id: int) -> int:
        msg = f"no write of {key_id}"
        raise Unavailable(msg)


async def test_while_the_last_writes_are_unknown_lists_are_read_from_the_primary(
    replica: PostgresReplica,
    primary: PostgresStore,
    url: str,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    copy = PostgresStore(replica.url_of(url))
    readers = ReplicaReaders(primary, copy, Forgetful(clock), clock)
    await readers.open()
    await readers.record_write(KEY)
    assert "cannot record a change for readers of the replica: no place for 1" in caplog.text
    assert not await is_read_from_replica(readers, KEY)
    await readers.close()
