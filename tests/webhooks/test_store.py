"""Webhooks and their deliveries, below HTTP."""

import asyncio

import pytest

from petstore.databases.contract import Statement, Store
from petstore.errors import TooManyWebhooks, WebhookDisabled
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.webhooks.model import MAX_WEBHOOKS, WebhookCreate, WebhookPatch
from petstore.webhooks.store import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    has_webhooks,
    record_test,
)
from support.delivering import webhook_row
from support.races import lingering
from support.stores import do
from support.webhooks import NOW, URL, add_events, add_webhook, issue_key, publish

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key that may do everything."""
    return await issue_key(store)


async def change(store: Store, key: Caller, patch: WebhookPatch) -> None:
    await store.write(change_webhook(Change(0, caller=key), 1, patch))


async def test_each_key_can_have_up_to_16_webhooks(store: Store, key: Caller) -> None:
    assert not await has_webhooks(store)
    other = await issue_key(store)
    versions = {(await add_webhook(store, key)).version for _ in range(MAX_WEBHOOKS)}
    assert len(versions) == MAX_WEBHOOKS
    assert min(versions) > 2**32  # they are unpredictable: a backup may be restored
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


async def test_a_webhook_goes_on_from_now_once_it_is_enabled(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 3)
    failing = "enabled = 0, disabled_reason = 'x', failures = 9, failing_since = 5, position = 0"
    await store.write(do(f"UPDATE webhooks SET {failing}, paused_until = 9"))  # noqa: S608
    columns = "enabled, disabled_reason, failures, failing_since, position, paused_until"
    await change(store, key, WebhookPatch(url=URL, description="The till"))
    assert await webhook_row(store, columns) == (0, "x", 9, 5, 0, 9)
    await change(store, key, WebhookPatch(enabled=True))
    assert await webhook_row(store, columns) == (1, None, 0, None, 3, None)
    shown = await get_webhook(store, 1, key)
    assert (shown.enabled, shown.disabled_reason, shown.description) == (True, None, "The till")


async def test_a_new_url_ends_the_pause_of_the_old_one(store: Store, key: Caller) -> None:
    await add_webhook(store, key)
    await store.write(do("UPDATE webhooks SET paused_until = 9"))
    await change(store, key, WebhookPatch(url=f"{URL}/new"))
    assert await webhook_row(store, "paused_until") == (None,)


async def test_a_test_is_an_event_of_the_key_of_the_webhook(store: Store, key: Caller) -> None:
    await add_webhook(store, key, "order.placed")
    test = await store.write(record_test(Change(NOW), 1))
    await publish(store)
    (row,) = await store.read(Statement("SELECT id, type, resource, key_id, at FROM events"))
    assert row == (test.event_id, "webhook.test", "webhook/1", key.id, NOW)
    await change(store, key, WebhookPatch(enabled=False))
    with pytest.raises(WebhookDisabled, match=r"^webhook 1 is disabled; enable it first$"):
        await store.write(record_test(Change(NOW), 1))
