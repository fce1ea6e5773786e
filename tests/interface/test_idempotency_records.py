"""Requests that are sent again act once, whatever comes between the two."""

import asyncio
from pathlib import Path

import pytest

from petstore.clock import DAY
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.schema import prune_all
from petstore.errors import IdempotencyKeyInUse, NotFound, PetNotAvailable, Unavailable
from petstore.interface.idempotency_records import Attempt, IdempotencyRecord, SafeRetries
from petstore.keys.model import Caller
from petstore.pets.model import NewPet
from support.changes import create_pet
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.retention import DAYS_KEPT
from support.stores import do, locked, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

RESPONSES = [*((f"old {n}", -n) for n in range(1, 2501)), *((f"new {n}", n) for n in range(1, 11))]
EXPIRED_AND_KEPT = "INSERT INTO idempotency_records VALUES " + ", ".join(  # noqa: S608
    f"(?1, '{key}', ?2, ?2, CAST(?3 AS BIGINT) + ({after}))" for key, after in RESPONSES
)


@pytest.fixture
def retries(store: Store, clock: ManualClock) -> SafeRetries:
    return SafeRetries(store, clock)


@pytest.fixture
async def key(store: Store, clock: ManualClock) -> Caller:
    return await issue_stored(store, clock)


@pytest.fixture
def attempt(key: Caller) -> Attempt:
    return Attempt(key, "a", b"request")


def add() -> Unit[bytes]:
    """Add a pet and return its id."""
    pet = yield from create_pet(NewPet("Bella", 1))
    return str(pet.id).encode()


async def count(store: Store, table: str) -> int:
    ((number,),) = await store.read(Statement(f"SELECT count(*) FROM {table}"))  # noqa: S608
    return int(number)


async def test_only_one_of_fifty_concurrent_requests_takes_effect(
    retries: SafeRetries, attempt: Attempt, store: Store
) -> None:
    outcomes = await asyncio.gather(
        *(retries.once(attempt, add()) for _ in range(50)), return_exceptions=True
    )
    responses = [outcome for outcome in outcomes if isinstance(outcome, IdempotencyRecord)]
    assert responses == [IdempotencyRecord(b"1", is_replay=False)]
    assert {type(outcome) for outcome in outcomes} == {IdempotencyRecord, IdempotencyKeyInUse}
    assert await count(store, "pets") == 1
    assert await retries.once(attempt, add()) == IdempotencyRecord(b"1", is_replay=True)


async def test_only_one_of_two_concurrent_processes_takes_effect(
    retries: SafeRetries, attempt: Attempt, store: Store, clock: ManualClock, address: str
) -> None:
    async with open_store(address) as other:
        responses = await asyncio.gather(
            retries.once(attempt, add()), SafeRetries(other, clock).once(attempt, add())
        )
    assert sorted(responses) == [(b"1", False), (b"1", True)]
    assert await count(store, "pets") == 1


async def test_retries_are_refused_while_the_first_request_is_running(
    retries: SafeRetries, attempt: Attempt, database: Path
) -> None:
    with locked(database):
        first = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0)
        with pytest.raises(IdempotencyKeyInUse, match="in progress"):
            await retries.once(attempt, add())
        with pytest.raises(IdempotencyKeyInUse, match="in progress"):
            await retries.once(attempt._replace(request=b"another"), add())
        assert not first.done()
    assert await first == IdempotencyRecord(b"1", is_replay=False)
    assert await retries.once(attempt, add()) == IdempotencyRecord(b"1", is_replay=True)


@pytest.mark.parametrize("error", [NotFound("gone"), PetNotAvailable("sold"), ValueError("fault")])
async def test_a_failure_is_not_recorded_and_changes_nothing(
    retries: SafeRetries, attempt: Attempt, store: Store, database: Path, error: Exception
) -> None:
    def add_in_vain() -> Unit[bytes]:
        yield from add()
        raise error

    with pytest.raises(type(error)):
        await retries.once(attempt, add_in_vain())
    with locked(database, store), pytest.raises(Unavailable):
        await retries.once(attempt, add())
    assert await count(store, "pets") == await count(store, "idempotency_records") == 0
    assert not (await retries.once(attempt, add())).is_replay


async def test_a_client_that_disconnected_can_retry(
    retries: SafeRetries, attempt: Attempt, store: Store, database: Path
) -> None:
    with locked(database):
        first = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0)
    assert (await second).response == b"1"
    assert await count(store, "pets") == 1


async def test_an_idempotency_record_is_kept_for_24_hours(
    retries: SafeRetries, attempt: Attempt, store: Store, clock: ManualClock
) -> None:
    another = attempt._replace(request=b"another")
    for sent, response in ((attempt, b"1"), (another, b"2")):
        assert await retries.once(sent, add()) == IdempotencyRecord(response, is_replay=False)
        clock.now += DAY - 1
        assert await retries.once(sent, add()) == IdempotencyRecord(response, is_replay=True)
        await prune_all(store, clock, DAYS_KEPT)
        assert await count(store, "idempotency_records") == 1
        clock.now += 1
    clock.now += 1
    await store.write(do(EXPIRED_AND_KEPT, attempt.caller.id, b"\0", clock() - DAY))
    await prune_all(store, clock, DAYS_KEPT)  # any number of them
    select = "SELECT idempotency_key FROM idempotency_records ORDER BY kept_at"
    rows = await store.read(Statement(select))
    assert rows == [(f"new {n}",) for n in range(1, 11)]
