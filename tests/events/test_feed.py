"""A long poll is woken by an event that concerns it, and by nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from time import process_time

import pytest

from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.errors import Unavailable
from petstore.events.feed import Feed
from petstore.events.model import NewEvent
from petstore.events.search import EventFilter
from petstore.events.store import record
from support.changes import NOW
from support.history import published
from support.stores import open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

PETS = frozenset({"pet.created", "key.banned"})
LONG = 30.0
SOON = 0.05


@dataclass
class Watched:
    """A store that counts its queries, and fails as often as it is told to."""

    store: Store
    queries: int = 0
    failures: int = 0

    async def read(self, statement: Statement) -> list[Row]:
        self.queries += 1
        if self.failures:
            self.failures -= 1
            raise Unavailable("the database is not available")
        return await self.store.read(statement)


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store)


@pytest.fixture
async def feed(watched: Watched) -> AsyncIterator[Feed]:
    feed = Feed(watched, 0.001)
    yield feed
    await feed.close()


def created(numbers: range) -> Unit[None]:
    for first in range(0, len(numbers), 100):
        some = numbers[first : first + 100]
        yield record(NOW, *[NewEvent("pet.created", f"pet/{n}", {"id": n}) for n in some])


async def happened(store: Store, kind: str = "pet.created", key_id: int | None = None) -> None:
    def recorded() -> Unit[None]:
        event = NewEvent(kind, "pet/1", {"id": 1}, key_id=key_id)  # type: ignore[arg-type]
        yield record(NOW, event)

    await store.write(recorded())
    await published(store)


async def seen(watched: Watched) -> None:
    """Wait until the feed has looked at all that has happened."""
    enough = watched.queries + 2
    await eventually(lambda: watched.queries >= enough)


def waiting(
    feed: Feed,
    after: int = 0,
    types: Collection[str] = PETS,
    seconds: float = LONG,
    resource: str = "",
    actor: str = "",
) -> asyncio.Task[bool]:
    return asyncio.create_task(
        feed.wait(after, EventFilter(types, (1, 1), resource, actor), seconds)
    )


@pytest.mark.each_database
async def test_an_event_committed_by_another_process_wakes_who_waits_even_through_an_outage(
    feed: Feed, watched: Watched, address: str
) -> None:
    watched.failures = 5
    waiter = waiting(feed)
    await eventually(lambda: not watched.failures)
    await seen(watched)
    async with open_store(address) as other:
        await happened(other)
    assert await waiter


@pytest.mark.each_database
async def test_an_event_that_a_client_has_read_or_does_not_want_does_not_wake_it(
    feed: Feed, store: Store, watched: Watched
) -> None:
    await happened(store, "category.created")
    await happened(store, "key.banned", key_id=2)
    await happened(store)
    beyond, other = waiting(feed, 9), waiting(feed, 3, actor="person/2")
    served = [
        *(waiting(feed, 3), waiting(feed, 3, actor="service"), waiting(feed, 3, resource="pet/1")),
        waiting(feed, 0, {"key.banned"}),
    ]
    await seen(watched)
    assert not any(waiter.done() for waiter in served)
    await happened(store, "key.banned", key_id=1)
    assert all(await asyncio.gather(*served))
    assert not beyond.done()
    assert not other.done()


async def test_a_thousand_clients_share_one_query_and_thousands_of_events_one_comparison(
    feed: Feed, store: Store, watched: Watched
) -> None:
    """Else two million comparisons would block the loop for a second."""
    waiters = [waiting(feed, resource=f"pet/{number}") for number in range(1, 1001)]
    await eventually(lambda: feed.waiting == 1000)
    await store.write(created(range(1001, 3001)))
    began = process_time()
    await seen(watched)
    assert process_time() - began < 0.5
    assert not any(waiter.done() for waiter in waiters)
    await store.write(created(range(1, 1001)))
    before = watched.queries
    assert await asyncio.gather(*waiters) == [True] * 1000
    assert watched.queries - before < 100


async def test_an_older_cursor_that_joins_during_a_query_is_served(store: Store) -> None:
    """The look that is under way does not find what they have yet to read."""
    entered, may_end = asyncio.Event(), asyncio.Event()

    class Slow:
        async def read(self, statement: Statement) -> list[Row]:
            rows = await store.read(statement)
            entered.set()
            await may_end.wait()
            return rows

    await happened(store, "category.created")
    await happened(store)
    feed = Feed(Slow(), 0.001)
    first = waiting(feed, after=1, types={"category.created"})
    await entered.wait()
    second = waiting(feed, after=0, types={"category.created"})
    await eventually(lambda: feed.waiting == 2)
    may_end.set()
    assert await second
    assert not first.done()
    await feed.close()
    assert not await first


async def test_the_database_is_queried_only_while_a_client_waits(
    feed: Feed, watched: Watched, store: Store
) -> None:
    assert not await waiting(feed, seconds=SOON)
    assert feed.waiting == 0
    before = watched.queries
    assert before > 0
    await happened(store)
    await asyncio.sleep(SOON)
    assert watched.queries == before
    assert await waiting(feed)


async def test_a_stopping_process_ends_all_waits(feed: Feed, watched: Watched) -> None:
    waiters = [waiting(feed) for _ in range(3)]
    await seen(watched)
    feed.release()
    feed.release()  # as the close of a store that has been released does
    assert await asyncio.gather(*waiters) == [False] * 3
    assert not await waiting(feed)


@dataclass(eq=False)
class Visitor:
    """A client that waits until it leaves."""

    on_lost: Callable[[], object] | None = None


async def test_a_client_that_disconnects_ends_only_its_own_wait(feed: Feed) -> None:
    visitor = Visitor()
    waits = [
        asyncio.create_task(feed.wait(0, EventFilter(PETS, (1, 1)), LONG, client))
        for client in (visitor, Visitor())
    ]
    cancelled = waiting(feed)
    await eventually(lambda: feed.waiting == 3)
    cancelled.cancel()
    leave = visitor.on_lost
    assert leave is not None
    leave()
    assert not await waits[0]
    assert visitor.on_lost is None
    await eventually(lambda: feed.waiting == 1)
    feed.release()
    assert not await waits[1]


async def test_whoever_waits_looks_again_once_a_key_or_a_person_has_changed(
    feed: Feed, watched: Watched
) -> None:
    waiters = [waiting(feed, types=types) for types in (PETS, frozenset[str](), PETS)]
    await seen(watched)
    assert not any(waiter.done() for waiter in waiters)
    feed.recheck_callers()
    assert await asyncio.gather(*waiters) == [True, True, True]
    again = waiting(feed)
    await seen(watched)
    assert not again.done()
    await happened(watched.store)
    assert await again
