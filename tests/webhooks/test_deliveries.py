"""Leases of webhooks, and their deliveries, below the process that delivers."""

import pytest

from petstore.clock import SECOND
from petstore.databases.contract import Store
from petstore.events.store import newest_position, publish_all
from petstore.pets.model import NewPet
from petstore.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    batches,
    due_deliveries,
    make_deliveries,
    save_progress,
)
from petstore.webhooks.store import (
    LEASE,
    LeasedWebhook,
    active_webhooks,
    release_leases,
    take_leases,
)
from support.changes import create_pets
from support.delivering import add_webhook, deliveries, issue_with_webhooks, webhook_row
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


async def webhooks(store: Store, clock: ManualClock) -> list[LeasedWebhook]:
    return await active_webhooks(store, "production", clock())


async def add_webhooks(store: Store, clock: ManualClock, count: int) -> None:
    key_id = await issue_with_webhooks(store, clock)
    for _ in range(count):
        await add_webhook(store, key_id, "https://shop.example/")


async def take(store: Store, clock: ManualClock, owner: str) -> set[int]:
    return await store.write(take_leases(owner, await webhooks(store, clock), clock()))


async def make_all(store: Store, clock: ManualClock, owner: str) -> None:
    if "postgres" in type(store).__module__:
        await publish_all(store)
    newest = await newest_position(store)
    for group, end in batches(await webhooks(store, clock), newest.sequence):
        await store.write(make_deliveries(owner, group, end, clock()))


async def due(store: Store, clock: ManualClock) -> list[DueDelivery]:
    return await due_deliveries(store, 1, clock())


async def only_delivery(store: Store, clock: ManualClock) -> DueDelivery:
    await add_webhooks(store, clock, 1)
    await store.write(create_pets([NewPet("Bella", 1, "available")]))
    await take(store, clock, "one")
    await make_all(store, clock, "one")
    (delivery,) = await due(store, clock)
    return delivery


async def test_a_lease_has_one_owner_until_it_expires(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 1)
    assert await take(store, clock, "one") == {1}
    assert await take(store, clock, "other") == set()
    clock.now += LEASE - 1
    assert await take(store, clock, "other") == set()
    clock.now += 1
    assert await take(store, clock, "other") == {1}
    assert await take(store, clock, "one") == set()


async def test_a_lease_from_before_the_clock_was_set_back_is_available(
    store: Store, clock: ManualClock
) -> None:
    await add_webhooks(store, clock, 1)
    await take(store, clock, "one")
    clock.advance(-3600)
    assert await take(store, clock, "other") == {1}
    assert await webhook_row(store, "leased_until") == (clock() + LEASE,)


async def test_a_lease_is_renewed_by_its_owner(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 1)
    await take(store, clock, "one")
    clock.advance(10)
    assert await take(store, clock, "one") == {1}
    assert await webhook_row(store, "leased_until") == (clock() + LEASE,)


async def test_at_most_fifty_webhooks_are_leased_at_once(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 60)
    first = await take(store, clock, "one")
    assert len(first) == 50
    second = await take(store, clock, "other")
    assert len(second) == 10
    assert not first & second


async def test_a_released_lease_is_available_at_once(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 1)
    await take(store, clock, "one")
    await store.write(release_leases("one"))
    assert await take(store, clock, "other") == {1}


async def test_only_the_owner_of_a_lease_delivers(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 1)
    await store.write(create_pets([NewPet("Bella", 1, "available")]))
    await take(store, clock, "one")
    await make_all(store, clock, "other")
    assert await deliveries(store) == []
    before = await webhooks(store, clock)
    await make_all(store, clock, "one")
    await make_all(store, clock, "one")
    assert await store.write(make_deliveries("one", before, 1, clock())) == {}
    assert await deliveries(store) == [(1, "pending", 0)]


async def test_a_transaction_is_bounded(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 3)
    found = await webhooks(store, clock)
    assert [(len(group), end) for group, end in batches(found, 400)] == [(2, 400), (1, 400)]
    assert [(len(group), end) for group, end in batches(found, 5000)] == [(1, 1000)] * 3
    assert [*batches(found, 0)] == []
    many = [found[0]._replace(position=1)] * 150
    assert [(len(group), end) for group, end in batches(many, 2)] == [(100, 2), (50, 2)]


async def test_the_outcome_of_a_process_that_lost_its_lease_changes_nothing(
    store: Store, clock: ManualClock
) -> None:
    delivery = await only_delivery(store, clock)
    later = clock() + 5 * SECOND
    failed = Outcome(delivery, "pending", clock(), later, error="no")
    for outcome in (failed, Outcome(delivery, "succeeded", clock(), clock()), failed):
        await store.write(save_progress([outcome], [], clock()))
    assert await deliveries(store) == [(1, "pending", 1)]
    assert await webhook_row(store, "failures, last_success_at") == (1, None)


async def test_a_late_outcome_does_not_change_a_disabled_or_paused_webhook(
    store: Store, clock: ManualClock
) -> None:
    delivery = await only_delivery(store, clock)
    await store.write(do("UPDATE webhooks SET enabled = 0, paused_until = 9"))
    assert await due(store, clock) == []
    gone = Outcome(delivery, "pending", clock(), clock(), status=410)
    assert await store.write(save_progress([gone], [], clock())) == []
    assert await webhook_row(store, "disabled_reason, paused_until") == (None, 9)


async def test_a_first_delivery_is_not_delayed(store: Store, clock: ManualClock) -> None:
    delivery = await only_delivery(store, clock)
    held = delivery._replace(held_until=clock() + 300 * SECOND)
    await store.write(save_progress([], [held], clock()))
    assert await due(store, clock) == [delivery]


async def test_a_delivery_waits_for_the_previous(store: Store, clock: ManualClock) -> None:
    await add_webhooks(store, clock, 1)
    for _ in range(2):
        await store.write(
            do(
                "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, resource,"
                " state, created_at, attempts, due_at)"
                " VALUES (1, 1, 'evt_1', 'pet.updated', 'pet/1', 'pending', 0, 0, 0)"
            )
        )
    first, second = await due(store, clock)
    assert (first.held_until, second.held_until) == (0, clock() + 300 * SECOND)
    await store.write(save_progress([], [second], clock()))
    assert await due(store, clock) == [first]
    await store.write(save_progress([Outcome(first, "succeeded", clock(), 0)], [], clock()))
    assert [each.id for each in await due(store, clock)] == [second.id]
