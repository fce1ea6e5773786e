"""Events that are sent to a webhook again: that of one delivery, and all that it has missed."""

import pytest
from msgspec.structs import replace

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.databases.contract import Store
from petstore.errors import EventNotKept, NotFound, WebhookDisabled
from petstore.events.model import ADMINISTRATORS
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.webhooks.deliveries import recover, recover_batch, retry
from petstore.webhooks.model import Delivery
from petstore.webhooks.store import active_webhooks, take_leases
from support.delivering import deliveries, webhook_row
from support.stores import do
from support.webhooks import NOW, add_deliveries, add_events, add_webhook, issue_key

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

OWNER = "a process"


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key that may do everything, and has a webhook."""
    key = await issue_key(store)
    await add_webhook(store, key)
    return key


async def begin(store: Store, key: Caller, since: Milliseconds = 0, webhook_id: int = 1) -> None:
    await store.write(recover(Change(0, caller=key), webhook_id, since))


async def recover_part(store: Store, webhook_id: int = 1) -> int | None:
    """Make the next batch of deliveries, as the process that delivers does; return how many."""
    active = await active_webhooks(store, "production", NOW)
    await store.write(take_leases(OWNER, active, NOW))
    (webhook,) = [each for each in active if each.id == webhook_id]
    if webhook.recovered_to is None:
        return None
    return (await store.write(recover_batch(OWNER, webhook, NOW))).made


async def recovered(
    store: Store, key: Caller, since: Milliseconds = 0, webhook_id: int = 1
) -> list[int]:
    """Recover everything, and return the sequences of the new deliveries in their order."""
    before = len(await deliveries(store))
    await begin(store, key, since, webhook_id)
    while await recover_part(store, webhook_id) is not None:
        pass
    return [sequence for (sequence,) in (await deliveries(store, "sequence"))[before:]]


async def retried(store: Store, key: Caller, delivery_id: int, webhook_id: int = 1) -> Delivery:
    return await store.write(retry(Change(NOW, caller=key), webhook_id, delivery_id))


# All that was missed


async def test_what_failed_or_was_never_sent_is_sent_in_order(store: Store, key: Caller) -> None:
    await add_events(store, [NOW] * 6)
    await add_deliveries(store, 1, "failed", "succeeded", "pending", "failed")
    assert await recovered(store, key) == [1, 4, 5, 6]
    names = "webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at"
    assert (await deliveries(store, names))[4:] == [
        (1, each, f"evt_{each:024x}", "pet.created", "pet/7", "pending", NOW, 0, NOW)
        for each in (1, 4, 5, 6)
    ]
    assert await recovered(store, key) == []
    assert await webhook_row(store, "recovered_to") == (None,)


async def test_an_event_that_arrived_is_not_sent_again(store: Store, key: Caller) -> None:
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await add_deliveries(store, 1, "failed")
    assert await recovered(store, key) == [1]
    await store.write(do("UPDATE webhook_deliveries SET state = 'succeeded' WHERE id = 3"))
    assert await recovered(store, key) == []


@pytest.mark.parametrize(
    ("since", "first"), [(0, 0), (DAY, 4), (DAY + 1, 8), (99 * DAY, 396), (100 * DAY, 400)]
)
async def test_the_first_event_since_a_time_is_found_among_many(
    store: Store, key: Caller, since: Milliseconds, first: int
) -> None:
    await add_events(store, [day * DAY for day in range(100) for _ in range(4)])
    assert await recovered(store, key, since) == [*range(first + 1, 401)]


async def test_clock_skew_of_seconds_hides_no_event(store: Store, key: Caller) -> None:
    times = [NOW + (number + (8 if number % 3 else 0)) * SECOND for number in range(90)]
    await add_events(store, times)
    since = NOW + 30 * SECOND
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
    assert await recovered(store, key, webhook_id=1) == [1, 2, 3]
    assert await recovered(store, key, webhook_id=2) == [2, 3]
    assert await recovered(store, reader, webhook_id=3) == [2, 4]


async def test_events_of_keys_are_recovered_for_an_administrator_of_their_environment(
    store: Store, key: Caller
) -> None:
    reader = await issue_key(store, scopes=frozenset({"webhooks:write", "pets:read"}))
    await add_webhook(store, reader)
    for environment in ADMINISTRATORS.values():
        await add_events(store, [NOW], "key.created", environment)
    assert await recovered(store, key, webhook_id=1) == [1]
    assert await recovered(store, reader, webhook_id=2) == []


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


async def test_a_second_recovery_only_extends_the_first_one(store: Store, key: Caller) -> None:
    await add_events(store, [NOW + number * SECOND for number in range(60)])
    for second, recovered_to in ((40, 40), (50, 40), (20, 20)):
        await begin(store, key, NOW + second * SECOND)
        assert await webhook_row(store, "recovered_to") == (recovered_to,)


async def test_events_that_are_no_longer_kept_are_left_out(store: Store, key: Caller) -> None:
    assert await recovered(store, key) == []
    await add_events(store, [NOW] * 3)
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    assert await recovered(store, key) == [2, 3]


@pytest.mark.parametrize("change", ["leased_by = 'another'", "enabled = 0", "recovered_to = 1"])
async def test_a_webhook_that_was_changed_meanwhile_gets_nothing_yet(
    store: Store, key: Caller, change: str
) -> None:
    await add_events(store, [NOW] * 3)
    await begin(store, key)
    active = await active_webhooks(store, "production", NOW)
    await store.write(take_leases(OWNER, active, NOW))
    await store.write(do(f"UPDATE webhooks SET {change}"))  # noqa: S608 - of a test
    assert (await store.write(recover_batch(OWNER, active[0], NOW))).made == 0
    assert await deliveries(store) == []


# One delivery


@pytest.mark.parametrize("state", ["failed", "succeeded"])
async def test_a_delivery_that_has_ended_is_sent_again_by_a_new_one(
    store: Store, key: Caller, state: str
) -> None:
    await add_events(store, [NOW])
    await add_deliveries(store, 1, state)
    made = await retried(store, key, 1)
    assert (made.id, made.event_id, made.state, made.attempts) == (2, f"evt_{1:024x}", "pending", 0)
    assert await deliveries(store) == [(1, state, 3), (1, "pending", 0)]


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


async def test_a_webhook_or_delivery_of_another_key_is_not_found(store: Store, key: Caller) -> None:
    other = await issue_key(store)
    await add_webhook(store, other)
    key, other = (replace(each, scopes=frozenset({"webhooks:write"})) for each in (key, other))
    await add_events(store, [NOW])
    await add_deliveries(store, 2, "failed")
    for caller, webhook_id, delivery_id, missing in (
        (other, 1, 1, "webhook 1"),
        (key, 2, 1, "webhook 2"),
        (key, 1, 1, "delivery 1"),
        (key, 3, 1, "webhook 3"),
    ):
        with pytest.raises(NotFound, match=rf"^there is no {missing}$"):
            await retried(store, caller, delivery_id, webhook_id)
    with pytest.raises(NotFound, match=r"^there is no webhook 2$"):
        await begin(store, key, webhook_id=2)
    assert len(await deliveries(store)) == 1


async def test_a_disabled_webhook_gets_nothing_again(store: Store, key: Caller) -> None:
    await add_events(store, [NOW])
    await add_deliveries(store, 1, "failed")
    await store.write(do("UPDATE webhooks SET enabled = 0"))
    with pytest.raises(WebhookDisabled):
        await retried(store, key, 1)
    with pytest.raises(WebhookDisabled):
        await begin(store, key)


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


async def test_a_test_can_be_sent_again(store: Store, key: Caller) -> None:
    await add_events(store, [NOW], "webhook.test", key.id)
    await add_deliveries(store, 1, "failed")
    assert (await retried(store, key, 1)).type == "webhook.test"
