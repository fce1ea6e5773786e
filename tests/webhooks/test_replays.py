"""Events of a window of time that are sent to a webhook again."""

import asyncio

import pytest
from msgspec import UNSET

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.databases.contract import Store
from petstore.errors import (
    AlreadyPending,
    DeliveriesPending,
    EventNotKept,
    InvalidBody,
    MissingScope,
    NotFound,
    WebhookDisabled,
)
from petstore.events.model import EventType, readable_types
from petstore.keys.model import Caller
from petstore.keys.store import unconditional
from petstore.webhooks.model import IN_REPLAY, MAX_REPLAY, Delivery, Replay, ReplayRange
from petstore.webhooks.replays import ReplayCount, Selection, count_replay, replay, retry
from petstore.webhooks.schedule import HOLD
from petstore.webhooks.store import get_webhook
from support.delivering import deliveries
from support.stores import do
from support.webhooks import NOW, add_deliveries, add_events, add_webhook, issue_key

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ALL = Selection(0)
FAILED = Selection(is_failed=True)


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key that may do everything."""
    return await issue_key(store)


async def replay_part(
    store: Store, key: Caller, wanted: Selection = ALL, webhook_id: int = 1
) -> Replay:
    return await store.write(replay(webhook_id, wanted, key, NOW, unconditional))


async def replayed(store: Store, key: Caller, wanted: Selection = ALL, webhook_id: int = 1) -> int:
    """Send events again, and return how many; none are left."""
    part = await replay_part(store, key, wanted, webhook_id)
    assert part.next is UNSET
    return part.deliveries


async def counted(store: Store, key: Caller, wanted: Selection) -> ReplayCount:
    webhook = await get_webhook(store, 1, key.id)
    return await count_replay(store, webhook, wanted, key)


async def retried(store: Store, key: Caller, delivery_id: int, webhook_id: int = 1) -> Delivery:
    def check_type(kind: EventType) -> None:
        if kind not in readable_types(key.scopes):
            raise MissingScope(kind)

    unit = retry(webhook_id, delivery_id, key.id, NOW, unconditional, check_type)
    return await store.write(unit)


async def end_all(store: Store, state: str) -> None:
    """Let all pending deliveries succeed or fail."""
    await store.write(do("UPDATE webhook_deliveries SET state = ?1 WHERE state = 'pending'", state))


async def test_a_replay_sends_the_events_in_its_window_with_their_ids(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW + number * SECOND for number in range(10)])
    window = Selection(NOW + 3 * SECOND, NOW + 6 * SECOND)
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
    assert await replayed(store, key, Selection(since, until)) == count


async def test_clock_skew_of_seconds_hides_no_event_of_a_window(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    times = [NOW + (number + (8 if number % 3 else 0)) * SECOND for number in range(90)]
    await add_events(store, times)
    window = Selection(NOW + 30 * SECOND, NOW + 60 * SECOND)
    within = sum(NOW + 30 * SECOND <= at < NOW + 60 * SECOND for at in times)
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
    assert await replayed(store, key, Selection(0, NOW)) == 1
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    expected = "^since: expected 2026-12-01T12:00:00.000Z or later, the time of the oldest event$"
    with pytest.raises(InvalidBody, match=expected):
        await replayed(store, key, Selection(NOW - 1, NOW + DAY))
    assert await replayed(store, key, Selection(NOW, NOW + DAY)) == 2


# Windows of any size


async def all_parts(store: Store, key: Caller, wanted: Selection) -> list[int]:
    """Send all selected events again, as each part succeeds; return how many each had."""
    counts = []
    while True:
        part = await replay_part(store, key, wanted)
        counts.append(part.deliveries)
        await end_all(store, "succeeded")
        if part.next is UNSET:
            return counts
        wanted = wanted._replace(rest=IN_REPLAY.decode(part.next))


async def test_a_window_with_many_events_is_replayed_in_parts(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, range(NOW, NOW + 2 * MAX_REPLAY + 1))
    assert await all_parts(store, key, ALL) == [MAX_REPLAY, MAX_REPLAY, 1]
    sequences = [sequence for (sequence,) in await deliveries(store, "sequence")]
    assert sequences == [*range(1, 2 * MAX_REPLAY + 2)]


async def test_as_many_events_as_a_part_has_are_one_part(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * MAX_REPLAY)
    assert await all_parts(store, key, ALL) == [MAX_REPLAY]


async def test_later_events_do_not_prolong_a_replay(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * (MAX_REPLAY + 1))
    first = await replay_part(store, key)
    await end_all(store, "succeeded")
    await add_events(store, [NOW] * 5)
    assert first.next is not UNSET
    rest = IN_REPLAY.decode(first.next)
    assert await replayed(store, key, Selection(0, rest=rest)) == 1


async def test_a_rare_type_is_searched_part_by_part(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 50_000)
    await add_events(store, [NOW], "order.placed")
    rare = Selection(0, types=["order.placed"])
    assert await counted(store, key, rare) == ReplayCount(0, is_more=True, since=0)
    assert await all_parts(store, key, rare) == [0, 1]


async def test_a_part_of_the_failed_ones_searches_a_bounded_number(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 10_000)
    await add_events(store, [NOW], "order.placed")
    await add_deliveries(store, 1, *["failed"] * 10_001)
    rare = FAILED._replace(types=["order.placed"])
    assert await counted(store, key, rare) == ReplayCount(0, is_more=True, since=NOW)
    assert await all_parts(store, key, rare) == [0, 1]


async def test_what_is_counted_ends_with_more_than_a_part_or_after_a_bounded_search(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * MAX_REPLAY)
    assert await counted(store, key, ALL) == ReplayCount(MAX_REPLAY, is_more=False, since=0)
    await add_events(store, [NOW] * 8_000)
    await add_deliveries(store, 1, *["pending"] * 3, *["failed"] * 600)
    assert await counted(store, key, FAILED) == ReplayCount(600, is_more=False, since=NOW)
    assert await counted(store, key, ALL) == ReplayCount(2_497, is_more=True, since=0)
    await add_events(store, [NOW], "order.placed")
    rare = Selection(0, types=["order.placed"])
    assert await counted(store, key, rare) == ReplayCount(0, is_more=True, since=0)


async def test_a_webhook_that_is_deleted_while_its_events_are_counted_is_not_found(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    webhook = await get_webhook(store, 1, key.id)
    await store.write(do("DELETE FROM webhooks"))
    with pytest.raises(NotFound):
        await count_replay(store, webhook, ALL, key)


async def test_a_webhook_with_many_pending_deliveries_gets_no_replay(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * (MAX_REPLAY + 1))
    await replay_part(store, key)
    with pytest.raises(DeliveriesPending, match=r"^2000 deliveries or more are pending; "):
        await replay_part(store, key)


async def test_the_rest_of_a_replay_whose_events_are_gone_is_refused(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW, NOW, NOW, NOW])
    await store.write(do("DELETE FROM events WHERE sequence <= 2"))
    assert await replayed(store, key, Selection(0, rest=ReplayRange(2, 4))) == 2
    with pytest.raises(InvalidBody, match=r"^cursor: events after it are no longer kept; begin"):
        await replayed(store, key, Selection(0, rest=ReplayRange(1, 4)))


async def test_no_rest_goes_beyond_the_position_of_the_webhook(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 5)
    await store.write(do("UPDATE webhooks SET position = 3"))
    assert await replayed(store, key, Selection(0, rest=ReplayRange(1, 2**62))) == 2
    assert await replayed(store, key, Selection(0, rest=ReplayRange(4, 5))) == 0


# Some of the events


async def test_a_replay_may_have_some_types(store: Store, key: Caller) -> None:
    await add_webhook(store, key, "order.placed", "pet.created")
    for kind in ("pet.created", "order.placed", "pet.deleted"):
        await add_events(store, [NOW], kind)
    wanted = Selection(0, types=["order.placed", "pet.deleted", "webhook.test"])
    assert await counted(store, key, wanted) == ReplayCount(1, is_more=False, since=0)
    assert await replayed(store, key, wanted) == 1
    assert await deliveries(store, "type") == [("order.placed",)]


async def test_a_replay_without_a_start_begins_when_the_webhook_was_created(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW - 1, NOW, NOW + 1])
    assert await replayed(store, key, Selection()) == 2
    await end_all(store, "succeeded")
    await store.write(do("DELETE FROM events WHERE sequence <= 2"))
    assert await counted(store, key, Selection()) == ReplayCount(1, is_more=False, since=NOW + 1)
    assert await replayed(store, key, Selection()) == 1


async def test_failed_events_are_sent_again_once(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 5)
    await add_deliveries(store, 1, "failed", "succeeded", "failed", "pending", "failed")
    assert await counted(store, key, FAILED) == ReplayCount(3, is_more=False, since=NOW)
    assert await replayed(store, key, FAILED) == 3
    assert (await deliveries(store, "sequence, state"))[5:] == [
        (1, "pending"),
        (3, "pending"),
        (5, "pending"),
    ]
    assert await deliveries(store, "retried_at") == [
        *((NOW,), (None,), (NOW,), (None,), (NOW,)),
        *((None,), (None,), (None,)),
    ]
    for state in ("pending", "succeeded"):
        await end_all(store, state)
        assert await replayed(store, key, FAILED) == 0
        assert await counted(store, key, FAILED) == ReplayCount(0, is_more=False, since=NOW)


async def test_an_event_that_fails_once_more_is_among_the_failed_ones_once(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    for _ in range(2):
        assert await replayed(store, key, FAILED) == 1
        await end_all(store, "failed")
    assert await replayed(store, key, ALL) == 1
    await end_all(store, "succeeded")
    assert await replayed(store, key, FAILED) == 0


async def test_an_event_with_two_failed_deliveries_is_sent_once(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await add_deliveries(store, 1, "failed")
    assert await counted(store, key, FAILED) == ReplayCount(2, is_more=False, since=NOW)
    assert await replayed(store, key, FAILED) == 1
    await end_all(store, "succeeded")
    assert await replayed(store, key, FAILED) == 0


async def test_the_failed_ones_are_those_in_the_window_of_this_webhook(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_webhook(store, key)
    await add_events(store, [NOW, NOW + 1, NOW + 2, NOW + 3])
    for webhook_id in (1, 2):
        await add_deliveries(store, webhook_id, *["failed"] * 4)
    window = FAILED._replace(since=NOW + 1, until=NOW + 3)
    assert await replayed(store, key, window) == 2
    assert (await deliveries(store, "webhook_id, sequence"))[8:] == [(1, 2), (1, 3)]


async def test_a_failed_delivery_whose_event_is_gone_is_not_sent(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW, NOW, NOW])
    await add_deliveries(store, 1, "failed", "failed", "failed")
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    await store.write(do("UPDATE events SET id = 'evt_of_a_backup' WHERE sequence = 2"))
    assert await replayed(store, key, FAILED) == 1
    assert (await deliveries(store, "sequence"))[3:] == [(3,)]


async def test_the_failed_ones_of_a_webhook_end_in_parts_too(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * (MAX_REPLAY + 1))
    await add_deliveries(store, 1, *["failed"] * (MAX_REPLAY + 1))
    assert await all_parts(store, key, FAILED) == [MAX_REPLAY, 1]


# One delivery


@pytest.mark.parametrize("state", ["failed", "succeeded"])
async def test_the_event_of_one_delivery_is_sent_again(
    store: Store, key: Caller, state: str
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, state)
    made = await retried(store, key, 1)
    assert (made.id, made.event_id, made.state, made.attempts) == (2, f"evt_{1:024x}", "pending", 0)
    names = "id, sequence, type, resource, state, attempts, created_at, due_at, retried_at"
    retried_at = NOW if state == "failed" else None
    assert await deliveries(store, names) == [
        (1, 1, "pet.created", "pet/7", state, 3, NOW, NOW + 5 * SECOND, retried_at),
        (2, 1, "pet.created", "pet/7", "pending", 0, NOW, NOW, None),
    ]


async def test_a_pending_event_is_not_sent_again(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await retried(store, key, 1)
    with pytest.raises(AlreadyPending, match=r"is pending: delivery 2 sends it$"):
        await retried(store, key, 1)
    with pytest.raises(AlreadyPending, match=r"^delivery 2 is pending, and is being sent now$"):
        await retried(store, key, 2)


async def test_the_next_attempt_at_a_pending_delivery_is_made_now(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "pending")
    now = await retried(store, key, 1)
    assert (now.id, now.state, now.attempts) == (1, "pending", 3)
    assert await deliveries(store, "id, due_at") == [(1, NOW)]


async def test_a_delivery_that_an_earlier_one_holds_back_names_it(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "pending", "pending")
    said = r"^delivery 2 waits for delivery 1, an earlier one of its resource; send that one first$"
    for first_attempt_at in (NOW - HOLD + 1, None):
        await first_attempted(store, first_attempt_at)
        with pytest.raises(AlreadyPending, match=said):
            await retried(store, key, 2)
    await first_attempted(store, NOW - HOLD)
    assert (await retried(store, key, 2)).id == 2


async def first_attempted(store: Store, at: Milliseconds | None) -> None:
    """Say when the first delivery was first attempted."""
    sql = "UPDATE webhook_deliveries SET first_attempt_at = ?1 WHERE id = 1"
    await store.write(do(sql, at))


async def test_a_test_is_sent_now_although_an_earlier_one_is_pending(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "pending", "pending")
    await store.write(do("UPDATE webhook_deliveries SET type = 'webhook.test'"))
    assert (await retried(store, key, 2)).id == 2


async def test_a_delivery_to_a_receiver_that_asked_to_wait_is_not_sent_now(
    store: Store, key: Caller
) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "pending")
    await store.write(do("UPDATE webhooks SET paused_until = ?1", NOW + 1))
    said = r"^delivery 1 waits until 2026-\S+Z, as its receiver asked with Retry-After$"
    with pytest.raises(AlreadyPending, match=said):
        await retried(store, key, 1)
    await store.write(do("UPDATE webhooks SET paused_until = ?1", NOW))
    assert (await retried(store, key, 1)).id == 1


async def test_of_two_retries_at_once_one_sends_the_event(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    outcomes = await asyncio.gather(
        *(retried(store, key, 1) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(each, Delivery) for each in outcomes) == 1
    assert sum(isinstance(each, AlreadyPending) for each in outcomes) == 7
    assert len(await deliveries(store)) == 2


async def test_retries_stop_at_the_maximum_of_pending_deliveries(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * (MAX_REPLAY + 1))
    await add_deliveries(store, 1, *["pending"] * (MAX_REPLAY - 1), "failed", "failed")
    await retried(store, key, MAX_REPLAY)
    with pytest.raises(DeliveriesPending):
        await retried(store, key, MAX_REPLAY + 1)


async def test_the_delivery_of_another_webhook_is_not_retried(store: Store, key: Caller) -> None:
    other = await issue_key(store)
    await add_webhook(store, key)
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 2, "failed")
    for owner, webhook_id, missing in (
        (key, 1, "delivery 1"),
        (key, 2, "delivery 9"),
        (other, 2, "webhook 2"),
        (key, 3, "webhook 3"),
    ):
        with pytest.raises(NotFound, match=rf"^there is no {missing}$"):
            await retried(store, owner, 9 if "9" in missing else 1, webhook_id)
    assert len(await deliveries(store)) == 1


async def test_a_disabled_webhook_gets_no_retry(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await store.write(do("UPDATE webhooks SET enabled = 0"))
    with pytest.raises(WebhookDisabled):
        await retried(store, key, 1)


@pytest.mark.parametrize(
    "change", ["DELETE FROM events WHERE sequence = 1", "UPDATE events SET id = 'evt_of_a_backup'"]
)
async def test_an_event_that_is_not_kept_is_not_sent_again(
    store: Store, key: Caller, change: str
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await store.write(do(change))
    with pytest.raises(EventNotKept, match=r"^the event of delivery 1 is no longer kept$"):
        await retried(store, key, 1)
    assert await deliveries(store, "retried_at") == [(None,)]


async def test_an_event_that_the_key_may_no_longer_read_is_not_sent_again(store: Store) -> None:
    key = await issue_key(store, scopes=frozenset({"webhooks:write"}))
    await add_webhook(store, key)
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    with pytest.raises(MissingScope, match=r"^pet\.created$"):
        await retried(store, key, 1)
    assert len(await deliveries(store)) == 1


async def test_a_test_can_be_sent_again(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW], "webhook.test", key.id)
    await add_deliveries(store, 1, "failed")
    await store.write(do("UPDATE webhook_deliveries SET type = 'webhook.test'"))
    assert (await retried(store, key, 1)).type == "webhook.test"
