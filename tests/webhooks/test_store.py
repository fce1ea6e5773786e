"""Webhooks, their leases and deliveries, and what is sent again, below HTTP and the deliverer."""

import asyncio

import pytest

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.databases.contract import Store
from petstore.errors import EventNotKept, NotFound, TooManyWebhooks
from petstore.events.model import ADMINISTRATORS
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    batches,
    due_deliveries,
    list_deliveries,
    make_deliveries,
    recover,
    recover_batch,
    retry,
    save_progress,
)
from petstore.webhooks.model import MAX_WEBHOOKS, Delivery, WebhookCreate, WebhookPatch
from petstore.webhooks.store import (
    LEASE,
    IssuedSecret,
    LeasedWebhook,
    active_webhooks,
    change_webhook,
    create_webhook,
    delete_webhook,
    has_webhooks,
    release_leases,
    take_leases,
)
from support.manual_clock import ManualClock
from support.races import lingering
from support.stores import do
from support.webhooks import (
    NOW,
    URL,
    add_deliveries,
    add_events,
    add_webhook,
    deliveries,
    issue_key,
    webhook_row,
)

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture(autouse=True)
async def key(store: Store) -> Caller:
    """A key that may do everything, and has a webhook."""
    key = await issue_key(store)
    await add_webhook(store, key)
    return key


async def webhooks(store: Store, now: Milliseconds = NOW) -> list[LeasedWebhook]:
    return await active_webhooks(store, "production", now)


async def take(store: Store, owner: str, now: Milliseconds = NOW) -> set[int]:
    return await store.write(take_leases(owner, await webhooks(store, now), now))


async def due(store: Store, now: Milliseconds) -> list[DueDelivery]:
    return await due_deliveries(store, 1, now)


async def begin(store: Store, key: Caller, since: Milliseconds = 0, webhook_id: int = 1) -> None:
    await store.write(recover(Change(0, caller=key), webhook_id, since))


async def recover_part(store: Store, webhook_id: int = 1) -> int | None:
    """Make the next batch of deliveries, as the process that delivers does; return how many."""
    await take(store, "one")
    (webhook,) = [each for each in await webhooks(store) if each.id == webhook_id]
    if webhook.recovered_to is None:
        return None
    return (await store.write(recover_batch("one", webhook, NOW))).made


async def recovered(
    store: Store, key: Caller, since: Milliseconds = 0, webhook_id: int = 1
) -> list[int]:
    """Recover everything, and return the sequences of the new deliveries in their order."""
    before = len(await deliveries(store))
    await begin(store, key, since, webhook_id)
    while await recover_part(store, webhook_id) is not None:
        pass
    return [sequence for (sequence,) in (await deliveries(store, "sequence"))[before:]]


async def retried(store: Store, key: Caller, delivery_id: int) -> Delivery:
    return await store.write(retry(Change(NOW, caller=key), 1, delivery_id))


# Webhooks of a key


async def test_each_key_can_have_up_to_16_webhooks(store: Store, key: Caller) -> None:
    assert await has_webhooks(store)
    await store.write(delete_webhook(Change(0), 1))
    assert not await has_webhooks(store)

    async def create(key: Caller) -> IssuedSecret:
        return await store.write(create_webhook(WebhookCreate(URL), key.id, NOW))

    versions = {(await create(key)).version for _ in range(MAX_WEBHOOKS)}
    assert len(versions) == MAX_WEBHOOKS
    assert min(versions) > 2**32  # they are unpredictable: a backup may be restored
    with pytest.raises(TooManyWebhooks, match=r"^this key has 16 webhooks, the maximum"):
        await create(key)
    await create(await issue_key(store))
    await store.write(delete_webhook(Change(0), 2))
    assert (await create(key)).webhook.id == 19


async def test_concurrent_requests_do_not_create_more_than_16_webhooks(
    store: Store, key: Caller, database_kind: str
) -> None:
    for _ in range(MAX_WEBHOOKS - 2):
        await add_webhook(store, key)

    async def create() -> bool:
        unit = create_webhook(WebhookCreate(URL), key.id, NOW)
        try:
            await store.write(lingering(unit) if database_kind == "postgresql" else unit)
        except TooManyWebhooks:
            return False
        return True

    assert sorted(await asyncio.gather(*(create() for _ in range(4)))) == [False] * 3 + [True]


async def test_a_webhook_goes_on_from_now_once_it_is_enabled(store: Store, key: Caller) -> None:
    await add_events(store, [NOW] * 3)
    failing = "enabled = 0, disabled_reason = 'x', failures = 9, failing_since = 5, position = 0"
    await store.write(do(f"UPDATE webhooks SET {failing}, paused_until = 9"))  # noqa: S608
    columns = "enabled, disabled_reason, failures, failing_since, position, paused_until"
    for patch, expected in (
        (WebhookPatch(url=URL, description="The till"), (0, "x", 9, 5, 0, 9)),
        (WebhookPatch(url=f"{URL}/new"), (0, "x", 9, 5, 0, None)),  # has not asked to wait
        (WebhookPatch(enabled=True), (1, None, 0, None, 3, None)),
    ):
        await store.write(change_webhook(Change(0, caller=key), 1, patch))
        assert await webhook_row(store, columns) == expected
    assert await webhook_row(store, "url, description") == (f"{URL}/new", "The till")


# Leases


async def test_a_lease_has_one_owner_until_it_expires_or_is_released(
    store: Store, clock: ManualClock
) -> None:
    assert await take(store, "one") == {1}
    assert await take(store, "other") == set()
    clock.advance(10)
    assert await take(store, "one", clock()) == {1}  # renewed
    clock.now += LEASE - 1
    assert await take(store, "other", clock()) == set()
    clock.now += 1
    assert await take(store, "other", clock()) == {1}
    await store.write(release_leases("one"))
    assert await take(store, "one", clock()) == set()
    await store.write(release_leases("other"))
    assert await take(store, "one", clock()) == {1}
    clock.advance(-3600)  # a clock that was set back
    assert await take(store, "other", clock()) == {1}
    assert await webhook_row(store, "leased_until") == (clock() + LEASE,)


async def test_at_most_fifty_webhooks_are_leased_at_once(store: Store) -> None:
    for key in [await issue_key(store) for _ in range(4)]:
        for _ in range(15):
            await add_webhook(store, key)
    first = await take(store, "one")
    second = await take(store, "other")
    assert (len(first), len(second)) == (50, 11)
    assert not first & second


async def test_only_the_owner_of_a_lease_makes_deliveries_and_only_once(store: Store) -> None:
    await add_events(store, [NOW])
    await store.write(do("UPDATE webhooks SET position = 0"))
    await take(store, "one")
    found = await webhooks(store)
    for owner, made in (("other", {}), ("one", {1: 1}), ("one", {})):
        assert await store.write(make_deliveries(owner, found, 1, NOW)) == made
    assert await deliveries(store) == [(1, "pending", 0)]


async def test_a_transaction_is_bounded(store: Store) -> None:
    (webhook,) = await webhooks(store)
    for count, newest, expected in (
        (3, 400, [(2, 400), (1, 400)]),
        (3, 5000, [(1, 1000)] * 3),
        (3, 0, []),
        (150, 1, [(100, 1), (50, 1)]),
    ):
        found = [webhook._replace(position=0)] * count
        assert [(len(group), end) for group, end in batches(found, newest)] == expected


# Outcomes


async def test_an_outcome_changes_nothing_after_a_lost_lease_or_of_a_disabled_or_paused_webhook(
    store: Store, clock: ManualClock
) -> None:
    await add_deliveries(store, 1, "pending")
    clock.advance(5)
    (delivery,) = await due(store, clock())
    failed = Outcome(delivery, "pending", clock(), clock() + 5 * SECOND, error="no")
    for outcome in (failed, Outcome(delivery, "succeeded", clock(), clock()), failed):
        await store.write(save_progress([outcome], [], clock()))
    assert await deliveries(store) == [(1, "pending", 4)]
    assert await webhook_row(store, "failures, last_success_at") == (1, None)
    clock.advance(5)
    (delivery,) = await due(store, clock())
    await store.write(do("UPDATE webhooks SET enabled = 0, paused_until = 9"))
    assert await due(store, clock()) == []
    gone = Outcome(delivery, "pending", clock(), clock(), status=410)
    assert await store.write(save_progress([gone], [], clock())) == []
    assert await webhook_row(store, "disabled_reason, paused_until") == (None, 9)


async def test_a_delivery_but_no_test_waits_for_the_previous(
    store: Store, clock: ManualClock
) -> None:
    await add_deliveries(store, 1, "pending", "pending")
    never = "attempts = 0, first_attempt_at = NULL, due_at = 0, type = ?1"
    change = f"UPDATE webhook_deliveries SET {never}"  # noqa: S608 - only names
    await store.write(do(change, "webhook.test"))
    assert [each.held_until for each in await due(store, clock())] == [0, 0]
    await store.write(do(change, "pet.created"))
    first, second = await due(store, clock())
    later = clock() + 300 * SECOND
    assert (first.held_until, second.held_until) == (0, later)
    await store.write(save_progress([], [first._replace(held_until=later), second], clock()))
    assert await due(store, clock()) == [first]
    await store.write(save_progress([Outcome(first, "succeeded", clock(), 0)], [], clock()))
    assert [each.id for each in await due(store, clock())] == [second.id]


async def test_deliveries_are_filtered_by_state_in_bounded_steps(store: Store) -> None:
    await add_deliveries(store, 1, "failed", *["succeeded"] * 1200, "failed", "failed")
    found, before, pages = [], None, 0
    while pages == 0 or before is not None:
        page = await list_deliveries(store, 1, "failed", before, 2)
        found += [each.id for each in page.items]
        before, pages = page.next_after, pages + 1
    assert (found, pages) == ([1203, 1202, 1], 3)
    full = await list_deliveries(store, 1, "failed", None, 1)
    assert ([each.id for each in full.items], full.next_after) == ([1203], 1203)


# All that was missed


async def test_what_failed_or_was_never_sent_is_sent_in_order_unless_it_arrived_or_is_not_kept(
    store: Store, key: Caller
) -> None:
    assert await recovered(store, key) == []
    await add_events(store, [NOW] * 6)
    await add_deliveries(store, 1, "failed", "succeeded", "pending", "failed")
    await add_deliveries(store, 1, "failed")
    assert await recovered(store, key) == [1, 4, 5, 6]
    names = "webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at"
    assert (await deliveries(store, names))[5:] == [
        (1, each, f"evt_{each:024x}", "pet.created", "pet/7", "pending", NOW, 0, NOW)
        for each in (1, 4, 5, 6)
    ]
    assert await recovered(store, key) == []
    assert await webhook_row(store, "recovered_to") == (None,)
    for state, again in (("succeeded", []), ("failed", [4, 5, 6])):
        await store.write(do("UPDATE webhook_deliveries SET state = ?1 WHERE id > 5", state))
        await store.write(do("DELETE FROM events WHERE sequence = 1 AND ?1 = 'failed'", state))
        assert await recovered(store, key) == again


async def test_a_recovery_begins_at_the_first_event_since_the_earliest_time_asked_for(
    store: Store, key: Caller
) -> None:
    await add_events(store, [day * DAY for day in range(100) for _ in range(4)])
    for since, before in (
        *((100 * DAY, 400), (99 * DAY, 396), (DAY + 1, 8), (99 * DAY, 8), (DAY, 4), (0, 0)),
    ):
        await begin(store, key, since)
        assert await webhook_row(store, "recovered_to") == (before,)


async def test_clock_skew_of_seconds_hides_no_event(store: Store, key: Caller) -> None:
    times = [NOW + (number + (8 if number % 3 else 0)) * SECOND for number in range(90)]
    await add_events(store, times)
    since = NOW + 47 * SECOND  # a search by halves alone would begin behind the first of them
    wanted = {number for number, at in enumerate(times, 1) if at >= since}
    assert wanted <= {*await recovered(store, key, since)}


async def test_only_events_that_the_webhook_gets_are_recovered(store: Store, key: Caller) -> None:
    reader = await issue_key(store, scopes=frozenset({"webhooks:write", "orders:read"}))
    await add_webhook(store, key, "order.placed", "key.banned")
    await add_webhook(store, reader)
    await add_events(store, [NOW], "pet.created")
    await add_events(store, [NOW], "order.placed")
    await add_events(store, [NOW], "key.banned", key.id)
    await add_events(store, [NOW], "key.banned", reader.id)
    await add_events(store, [NOW], "webhook.test", key.id)
    for environment in ADMINISTRATORS.values():
        await add_events(store, [NOW], "key.created", environment)
    assert await recovered(store, key, webhook_id=1) == [1, 2, 3, 6]
    assert await recovered(store, key, webhook_id=2) == [2, 3]
    assert await recovered(store, reader, webhook_id=3) == [2, 4]


async def test_a_long_recovery_is_made_in_batches_and_waits_for_pending_deliveries(
    store: Store, key: Caller
) -> None:
    await add_events(store, [NOW] * 2001)
    await begin(store, key)
    assert [await recover_part(store) for _ in range(2)] == [1000, 0]
    await store.write(do("UPDATE webhook_deliveries SET state = 'succeeded' WHERE id = 1"))
    assert [await recover_part(store) for _ in range(2)] == [1000, 0]
    await store.write(do("UPDATE webhook_deliveries SET state = 'succeeded'"))
    assert [await recover_part(store) for _ in range(2)] == [1, None]


@pytest.mark.parametrize("change", ["leased_by = 'another'", "enabled = 0", "recovered_to = 1"])
async def test_a_webhook_that_was_changed_meanwhile_gets_nothing_yet(
    store: Store, key: Caller, change: str
) -> None:
    await add_events(store, [NOW] * 3)
    await begin(store, key)
    await take(store, "one")
    (webhook,) = await webhooks(store)
    await store.write(do(f"UPDATE webhooks SET {change}"))  # noqa: S608 - of a test
    assert (await store.write(recover_batch("one", webhook, NOW))).made == 0
    assert await deliveries(store) == []


# One delivery


@pytest.mark.parametrize(
    ("state", "kind"), [("failed", "webhook.test"), ("succeeded", "pet.created")]
)
async def test_a_delivery_that_has_ended_is_sent_again_by_a_new_one(
    store: Store, key: Caller, state: str, kind: str
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW], kind)
    await add_deliveries(store, 2, "failed")
    with pytest.raises(NotFound, match=r"^there is no delivery 1$"):
        await retried(store, key, 1)
    await add_deliveries(store, 1, state)
    made = await retried(store, key, 2)
    assert (made.id, made.event_id, made.type, made.attempts) == (3, f"evt_{1:024x}", kind, 0)
    assert (await deliveries(store))[1:] == [(1, state, 3), (1, "pending", 0)]


async def test_an_event_that_is_pending_becomes_due_and_has_no_second_delivery(
    store: Store, key: Caller
) -> None:
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await add_deliveries(store, 1, "pending")
    for delivery_id in (1, 2):
        await store.write(do("UPDATE webhook_deliveries SET due_at = ?1", NOW + DAY))
        made = await retried(store, key, delivery_id)
        assert (made.id, made.attempts, made.next_attempt_at) == (2, 3, "2026-12-01T12:00:00.000Z")
    await store.write(do("UPDATE webhook_deliveries SET due_at = 5"))
    await retried(store, key, 2)
    assert await deliveries(store, "due_at") == [(5,), (5,)]


@pytest.mark.parametrize(
    "change", ["DELETE FROM events WHERE sequence = 1", "UPDATE events SET id = 'evt_of_a_backup'"]
)
async def test_an_event_that_is_not_kept_is_not_sent_again(
    store: Store, key: Caller, change: str
) -> None:
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await store.write(do(change))
    with pytest.raises(EventNotKept, match=r"^the event of delivery 1 is no longer kept$"):
        await retried(store, key, 1)
