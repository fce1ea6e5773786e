"""Webhooks and their deliveries, below HTTP."""

import asyncio
from typing import Any

import pytest

from petstore.databases.contract import Statement, Store
from petstore.errors import TooManyWebhooks, WebhookDisabled
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.webhooks.deliveries import list_deliveries
from petstore.webhooks.model import MAX_WEBHOOKS, WebhookCreate, WebhookPatch
from petstore.webhooks.store import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    has_webhooks,
    record_test,
)
from support.races import lingering
from support.stores import do
from support.webhooks import NOW, URL, add_deliveries, add_events, add_webhook, issue_key, publish

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

OFF = WebhookPatch(enabled=False)
ON = WebhookPatch(enabled=True)


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key that may do everything."""
    return await issue_key(store)


async def change(store: Store, key: Caller, patch: WebhookPatch, webhook_id: int = 1) -> None:
    await store.write(change_webhook(Change(0, caller=key), webhook_id, patch))


async def column(store: Store, name: str, webhook_id: int = 1) -> Any:
    sql = f"SELECT {name} FROM webhooks WHERE id = ?1"  # noqa: S608 - a name
    ((value,),) = await store.read(Statement(sql, (webhook_id,)))
    return value


# Webhooks of a key


async def test_each_key_can_have_up_to_16_webhooks(store: Store, key: Caller) -> None:
    assert not await has_webhooks(store)
    other = await issue_key(store)
    for _ in range(MAX_WEBHOOKS):
        await add_webhook(store, key)
    assert await has_webhooks(store)
    with pytest.raises(TooManyWebhooks, match=r"^this key has 16 webhooks, the maximum"):
        await add_webhook(store, key)
    await add_webhook(store, other)
    await store.write(delete_webhook(Change(0), 1))
    assert (await add_webhook(store, key)).webhook.id == 18


async def test_concurrent_requests_do_not_create_more_than_16_webhooks(
    store: Store, key: Caller, database_kind: str
) -> None:
    for _ in range(MAX_WEBHOOKS - 1):
        await add_webhook(store, key)

    async def create() -> bool:
        unit = create_webhook(WebhookCreate(URL), key.id, NOW)
        try:
            await store.write(lingering(unit) if database_kind == "postgresql" else unit)
        except TooManyWebhooks:
            return False
        return True

    assert sorted(await asyncio.gather(*(create() for _ in range(4)))) == [False] * 3 + [True]


async def test_the_first_version_of_a_secret_is_unpredictable(store: Store, key: Caller) -> None:
    versions = {(await add_webhook(store, key)).version for _ in range(4)}
    assert len(versions) == 4
    assert min(versions) > 2**32


async def test_a_webhook_goes_on_from_now_once_it_is_enabled(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    sql = "UPDATE webhooks SET enabled = 0, disabled_reason = 'x', failures = 9, failing_since = 5"
    await store.write(do(f"{sql}, paused_until = 9"))
    await change(store, key, WebhookPatch(description="The till"))
    shown = await get_webhook(store, 1, key)
    assert (shown.enabled, shown.disabled_reason) == (False, "x")
    assert await column(store, "failures") == 9
    await add_events(store, [NOW] * 3)
    await change(store, key, ON)
    assert await column(store, "position") == 3
    shown = await get_webhook(store, 1, key)
    assert (shown.enabled, shown.disabled_reason, shown.description) == (True, None, "The till")
    assert (await column(store, "failures"), await column(store, "failing_since")) == (0, None)
    assert await column(store, "paused_until") is None


async def test_a_new_url_ends_the_pause_of_the_old_one(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await store.write(do("UPDATE webhooks SET paused_until = 9"))
    await change(store, key, WebhookPatch(url=URL, description="The till"))
    assert await column(store, "paused_until") == 9
    await change(store, key, WebhookPatch(url=f"{URL}/new"))
    assert await column(store, "paused_until") is None


async def test_a_test_is_an_event_of_the_key_of_the_webhook(store: Store, key: Caller) -> None:
    await add_webhook(store, key, "order.placed")
    test = await store.write(record_test(Change(NOW), 1))
    await publish(store)
    (row,) = await store.read(Statement("SELECT id, type, resource, key_id, at FROM events"))
    assert row == (test.event_id, "webhook.test", "webhook/1", key.id, NOW)
    await change(store, key, OFF)
    with pytest.raises(WebhookDisabled, match=r"^webhook 1 is disabled; enable it first$"):
        await store.write(record_test(Change(NOW), 1))


# Deliveries


async def test_deliveries_are_filtered_by_state_in_bounded_steps(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "failed", *["succeeded"] * 1200, "failed", "failed")
    found, before, pages = [], None, 0
    while pages == 0 or before is not None:
        page = await list_deliveries(store, 1, "failed", before, 2)
        found += [each.id for each in page.items]
        before, pages = page.next_after, pages + 1
    assert found == [1203, 1202, 1]
    assert pages == 3
    full = await list_deliveries(store, 1, "failed", None, 1)
    assert ([each.id for each in full.items], full.next_after) == ([1203], 1203)
