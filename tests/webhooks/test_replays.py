"""Events of a window of time that are sent to a webhook again."""

import pytest

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.databases.contract import Store
from petstore.errors import DeliveriesPending, InvalidBody, ReplayTooLarge
from petstore.keys.model import Caller
from petstore.keys.store import unconditional
from petstore.webhooks.model import MAX_REPLAY
from petstore.webhooks.replays import TimeWindow, replay
from support.delivering import deliveries
from support.stores import do
from support.webhooks import NOW, add_deliveries, add_events, add_webhook, issue_key

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ALL = TimeWindow(0, 2**62)


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key that may do everything."""
    return await issue_key(store)


async def replayed(store: Store, key: Caller, window: TimeWindow = ALL, webhook_id: int = 1) -> int:
    return await store.write(replay(webhook_id, window, key, NOW, unconditional))


async def test_a_replay_sends_the_events_in_its_window_with_their_ids(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW + number * SECOND for number in range(10)])
    window = TimeWindow(NOW + 3 * SECOND, NOW + 6 * SECOND)
    assert await replayed(store, key, window) == 3
    names = "webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at"
    assert await deliveries(store, names) == [
        (1, each, f"evt_{each:024x}", "pet.created", "pet/7", "pending", NOW, 0, NOW)
        for each in (4, 5, 6)
    ]


@pytest.mark.parametrize(
    ("since", "until", "count"),
    [(0, 100 * DAY, 400), (DAY, DAY + 1, 4), (DAY + 1, DAY + 1000, 0), (99 * DAY, 100 * DAY, 4)],
)
async def test_the_events_of_a_window_are_found_among_many(
    store: Store, key: Caller, since: Milliseconds, until: Milliseconds, count: int
) -> None:
    await add_webhook(store, key)
    times = [day * DAY for day in range(100) for _ in range(4)]
    await add_events(store, times)
    assert await replayed(store, key, TimeWindow(since, until)) == count


async def test_clock_skew_of_seconds_hides_no_event_of_a_window(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    times = [NOW + (number + (8 if number % 3 else 0)) * SECOND for number in range(90)]
    await add_events(store, times)
    window = TimeWindow(NOW + 30 * SECOND, NOW + 60 * SECOND)
    within = sum(window.since <= at < window.until for at in times)
    assert await replayed(store, key, window) == within


async def test_a_replay_has_only_events_that_the_webhook_wants_and_its_key_can_read(
    store: Store, key: Caller
) -> None:
    other = await issue_key(store)
    reader = await issue_key(store, scopes=frozenset({"webhooks:write", "orders:read"}))
    await add_webhook(store, key)
    await add_webhook(store, key, "order.placed", "key.banned")
    await add_webhook(store, reader)
    await add_webhook(store, reader, "pet.created")
    await add_events(store, [NOW], "pet.created")
    await add_events(store, [NOW], "order.placed")
    await add_events(store, [NOW], "key.banned", key.id)
    await add_events(store, [NOW], "key.banned", other.id)
    await add_events(store, [NOW], "webhook.test", key.id)
    for owner, webhook_id, sequences in (
        (key, 1, [1, 2, 3]),
        (key, 2, [2, 3]),
        (reader, 3, [2]),
        (reader, 4, []),
    ):
        assert await replayed(store, owner, webhook_id=webhook_id) == len(sequences)
        rows = await deliveries(store, "webhook_id, sequence")
        assert [each for of, each in rows if of == webhook_id] == sequences


async def test_a_replay_leaves_out_pending_and_upcoming_deliveries(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 5)
    await add_deliveries(store, 1, "succeeded", "failed", "pending")
    await store.write(do("UPDATE webhooks SET position = 4"))
    assert await replayed(store, key) == 3
    assert (await deliveries(store, "sequence, state"))[3:] == [
        (1, "pending"),
        (2, "pending"),
        (4, "pending"),
    ]
    assert await replayed(store, key) == 0


async def test_a_replay_without_any_event_sends_nothing(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    assert await replayed(store, key) == 0


async def test_a_window_before_the_oldest_stored_event_is_refused(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW - DAY, NOW, NOW + SECOND])
    assert await replayed(store, key, TimeWindow(0, NOW)) == 1
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    expected = "^since: expected 2026-12-01T12:00:00.000Z or later, the time of the oldest event$"
    with pytest.raises(InvalidBody, match=expected):
        await replayed(store, key, TimeWindow(NOW - 1, NOW + DAY))
    assert await replayed(store, key, TimeWindow(NOW, NOW + DAY)) == 2


async def test_a_window_among_too_many_events_to_search_is_refused(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 50_001)
    with pytest.raises(ReplayTooLarge, match=r"; replay a longer one in parts$"):
        await replayed(store, key, TimeWindow(NOW - 1, NOW))


async def test_a_window_has_up_to_2_000_events(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, range(NOW, NOW + MAX_REPLAY + 1))
    with pytest.raises(ReplayTooLarge, match=r"^since, until: expected a window of up to 2000 .*"):
        await replayed(store, key)
    await store.write(do("UPDATE webhooks SET position = ?1", MAX_REPLAY))
    assert await replayed(store, key) == MAX_REPLAY  # the last one comes anyway
    await store.write(do("DELETE FROM webhook_deliveries"))
    await store.write(do("UPDATE webhooks SET position = ?1", MAX_REPLAY + 1))
    middle = TimeWindow(NOW + 1, NOW + MAX_REPLAY + 1)
    assert await replayed(store, key, middle) == MAX_REPLAY
    with pytest.raises(DeliveriesPending, match=r"^2000 deliveries or more are pending; "):
        await replayed(store, key)
