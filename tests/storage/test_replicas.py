"""Which database a caller's lists are read from: a real replica, or the primary."""

from collections.abc import AsyncIterator, Iterator

import pytest

from petstore.errors import Unavailable
from petstore.storage.contract import Reader, Statement
from petstore.storage.positions import MemoryPositions
from petstore.storage.postgres import PostgresStore
from petstore.storage.replicas import PrimaryOnly, Readers, ReplicaReaders
from petstore.storage.sqlite import SqliteStore
from support.manual_clock import ManualClock
from support.patience import eventually
from support.postgres_replica import PostgresReplica, replicated
from support.postgres_stores import open_postgres_store
from support.process import free_port
from support.stores import do

pytestmark = pytest.mark.anyio

CALLER, ANOTHER = 1, 2
WHERE = Statement("SELECT pg_is_in_recovery()")
CHANGE = "INSERT INTO categories (name, name_key) VALUES ('Dogs', 'dogs')"
WARNING = "the replica fails, lists are read from the primary"


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
async def readers(
    replica: PostgresReplica, primary: PostgresStore, url: str, clock: ManualClock
) -> AsyncIterator[ReplicaReaders]:
    copy = PostgresStore(replica.url_of(url), patience=1000)
    readers = ReplicaReaders(primary, copy, MemoryPositions(clock), clock)
    await readers.open()
    yield readers
    await readers.close()


async def is_replica(reader: Reader) -> bool:
    ((is_in_recovery,),) = await reader.read(WHERE)
    return bool(is_in_recovery)


async def is_read_from_replica(readers: Readers, key_id: int) -> bool:
    return await is_replica(await readers.of(key_id))


async def test_without_a_replica_all_is_read_from_the_one_store(store: SqliteStore) -> None:
    readers = PrimaryOnly(store)
    await readers.open()
    await readers.note_change(CALLER)
    assert await readers.of(CALLER) is store
    await readers.close()
    await store.check()


async def test_the_lists_of_who_changed_nothing_come_from_the_replica(
    readers: ReplicaReaders,
) -> None:
    assert await is_read_from_replica(readers, CALLER)


async def test_until_the_replica_has_a_change_its_caller_reads_from_the_primary(
    replica: PostgresReplica, primary: PostgresStore, readers: ReplicaReaders
) -> None:
    with replica.behind():
        await primary.write(do(CHANGE))
        await readers.note_change(CALLER)
        assert not await is_read_from_replica(readers, CALLER)
        assert await is_read_from_replica(readers, ANOTHER)
    assert await is_read_from_replica(readers, CALLER)


@pytest.mark.parametrize("has_changed", [False, True])
async def test_without_the_replica_lists_are_read_from_the_primary_until_it_is_back(
    replica: PostgresReplica,
    readers: ReplicaReaders,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    has_changed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    if has_changed:
        await readers.note_change(CALLER)
    await eventually(lambda: is_read_from_replica(readers, CALLER))
    replica.kill()
    try:
        assert not await is_read_from_replica(readers, CALLER)
        assert caplog.text.count(WARNING) == 1
        clock.advance(1.9)
        assert not await is_read_from_replica(readers, CALLER)
        assert caplog.text.count(WARNING) == 1
        clock.advance(0.2)
        assert not await is_read_from_replica(readers, CALLER)
        assert caplog.text.count(WARNING) == 2
    finally:
        replica.start()
    clock.advance(2.1)
    assert await is_read_from_replica(readers, CALLER)


async def test_who_read_from_the_replica_before_it_hung_is_answered_by_the_primary(
    replica: PostgresReplica, readers: ReplicaReaders, clock: ManualClock
) -> None:
    reader = await readers.of(CALLER)
    assert await is_replica(reader)
    with replica.stopped():
        assert not await is_replica(reader)
        assert not await is_read_from_replica(readers, CALLER)
    clock.advance(2.1)
    assert await is_read_from_replica(readers, CALLER)


async def test_a_table_that_the_replica_does_not_have_yet_is_read_from_the_primary(
    replica: PostgresReplica, primary: PostgresStore, readers: ReplicaReaders
) -> None:
    with replica.behind():
        await primary.write(do("CREATE TABLE fresh (id BIGINT)"))
        reader = await readers.of(CALLER)
        assert await reader.read(Statement("SELECT id FROM fresh")) == []


async def test_a_replica_that_was_never_there_is_no_obstacle(
    primary: PostgresStore, clock: ManualClock
) -> None:
    nowhere = PostgresStore(f"postgresql://petstore@127.0.0.1:{free_port()}/petstore")
    readers = ReplicaReaders(primary, nowhere, MemoryPositions(clock), clock)
    await readers.open()
    await readers.note_change(CALLER)
    assert not await is_read_from_replica(readers, CALLER)
    assert not await is_read_from_replica(readers, ANOTHER)
    await readers.close()


async def test_what_fails_on_the_primary_too_is_an_error(
    readers: ReplicaReaders, replica: PostgresReplica
) -> None:
    reader = await readers.of(CALLER)
    replica.primary.stop("immediate")
    try:
        replica.stop("immediate")
        with pytest.raises(Unavailable):
            await reader.read(WHERE)
        replica.start()
    finally:
        replica.primary.start()


async def test_a_change_that_cannot_be_noted_is_told_in_the_log_alone(
    replica: PostgresReplica, readers: ReplicaReaders, caplog: pytest.LogCaptureFixture
) -> None:
    replica.primary.stop("immediate")
    try:
        await readers.note_change(CALLER)
    finally:
        replica.primary.start()
    assert "a change is not known to readers of the replica" in caplog.text


class Forgetful(MemoryPositions):
    """Positions that nobody can tell."""

    async def of(self, key_id: int) -> int:
        msg = f"no position of {key_id}"
        raise Unavailable(msg)


async def test_while_nobody_tells_what_was_changed_lists_are_read_from_the_primary(
    replica: PostgresReplica, primary: PostgresStore, url: str, clock: ManualClock
) -> None:
    copy = PostgresStore(replica.url_of(url))
    readers = ReplicaReaders(primary, copy, Forgetful(clock), clock)
    await readers.open()
    assert await readers.of(CALLER) is primary
    await readers.close()
