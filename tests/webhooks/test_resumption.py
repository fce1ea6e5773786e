"""The deliveries of a webhook that is enabled again."""

import pytest

from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Store
from petstore.errors import PreconditionFailed
from petstore.keys.model import Caller
from petstore.keys.store import unconditional
from petstore.webhooks.model import Resume, Webhook, WebhookPatch
from petstore.webhooks.store import begin_resume, change_webhook
from support.delivering import deliveries, webhook_row
from support.stores import do
from support.webhooks import NOW, add_deliveries, add_webhook, issue_key

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def key(store: Store) -> Caller:
    """A key with a webhook that is disabled."""
    key = await issue_key(store)
    await add_webhook(store, key)
    await store.write(do("UPDATE webhooks SET enabled = 0"))
    return key


def enable(resume: Resume = "lastSuccess") -> WebhookPatch:
    return WebhookPatch(enabled=True, resume=resume)


async def begin(store: Store, key: Caller, resume: Resume = "lastSuccess") -> int:
    return await begin_resume(store, 1, enable(resume), key.id, NOW, unconditional)


async def finish(
    store: Store,
    key: Caller,
    resume: Resume = "lastSuccess",
    now: Milliseconds = NOW,
    before: int = 2**62,
) -> None:
    unit = change_webhook(1, enable(resume), key.id, now, unconditional, before)
    await store.write(unit)


async def states(store: Store) -> list[str]:
    return [state for (state,) in await deliveries(store, "state")]


async def test_resuming_after_the_last_success_resets_all_later_deliveries_to_pending(
    store: Store, key: Caller
) -> None:
    await add_deliveries(store, 2, "failed")
    await add_deliveries(store, 1, "failed", "succeeded", *["failed"] * 600, "pending")
    await finish(store, key, now=NOW + DAY)
    names = "webhook_id, sequence, state, attempts, due_at, first_attempt_at"
    of_other, failed, succeeded, *others = await deliveries(store, names)
    untouched = (3, NOW + 5000, NOW)
    assert of_other == (2, 1, "failed", *untouched)
    assert failed == (1, 1, "failed", *untouched)
    assert succeeded == (1, 2, "succeeded", *untouched)
    assert others == [(1, sequence, "pending", 0, NOW + DAY, None) for sequence in range(3, 604)]


@pytest.mark.parametrize("count", [0, 500, 501])
async def test_a_webhook_without_a_success_resumes_with_its_first_delivery(
    store: Store, key: Caller, count: int
) -> None:
    if count:
        await add_deliveries(store, 1, *["failed"] * count)
    await finish(store, key)
    assert await states(store) == ["pending"] * count


async def test_resuming_stops_at_the_last_success_even_between_two_batches(
    store: Store, key: Caller
) -> None:
    await add_deliveries(store, 1, "failed", "succeeded", *["failed"] * 500)
    await finish(store, key)
    assert await states(store) == ["failed", "succeeded", *["pending"] * 500]


async def test_resuming_from_now_fails_the_pending_deliveries(store: Store, key: Caller) -> None:
    await add_deliveries(store, 2, "pending")
    await add_deliveries(store, 1, "succeeded", "failed", *["pending"] * 501)
    await store.write(do("UPDATE webhook_deliveries SET error = NULL WHERE id = 4"))
    await finish(store, key, "now")
    rows = await deliveries(store, "state, error")
    assert rows[:3] == [("pending", "not 2xx"), ("succeeded", "not 2xx"), ("failed", "not 2xx")]
    skipped = "skipped: the webhook was enabled to go on from then"
    assert rows[3:] == [("failed", skipped), *[("failed", f"not 2xx; {skipped}")] * 500]


async def test_resuming_after_the_last_success_forgets_earlier_attempts(
    store: Store, key: Caller
) -> None:
    await add_deliveries(store, 1, "pending")
    await finish(store, key, "now")
    await store.write(do("UPDATE webhooks SET enabled = 0"))
    await finish(store, key)
    columns = "state, attempts, last_attempt_at, response_status, response_body, error"
    assert await deliveries(store, columns) == [("pending", 0, *[None] * 4)]


@pytest.mark.parametrize(("resume", "before"), [("lastSuccess", "failed"), ("now", "pending")])
async def test_only_the_last_batch_is_left_to_the_change_itself(
    store: Store, key: Caller, resume: Resume, before: str
) -> None:
    after = "pending" if resume == "lastSuccess" else "failed"
    await add_deliveries(store, 1, "succeeded", *[before] * 1001)
    rest = await begin(store, key, resume)
    assert (await states(store)).count(after) == 1000
    assert await webhook_row(store, "enabled") == (0,)
    await finish(store, key, resume, before=rest)
    assert await states(store) == ["succeeded", *[after] * 1001]
    assert await webhook_row(store, "enabled") == (1,)


async def test_a_short_backlog_is_left_to_the_change_as_a_whole(store: Store, key: Caller) -> None:
    await add_deliveries(store, 1, *["failed"] * 499)
    await begin(store, key)
    assert await states(store) == ["failed"] * 499


async def test_an_enabled_webhook_has_nothing_to_resume(store: Store, key: Caller) -> None:
    await add_deliveries(store, 1, *["failed"] * 500)
    await store.write(do("UPDATE webhooks SET enabled = 1"))
    await begin(store, key)
    await finish(store, key)
    assert await states(store) == ["failed"] * 500


async def test_a_refused_change_leaves_the_deliveries_as_they_were(
    store: Store, key: Caller
) -> None:
    def refuse(webhook: Webhook) -> None:
        raise PreconditionFailed(str(webhook.id))

    await add_deliveries(store, 1, *["failed"] * 500)
    with pytest.raises(PreconditionFailed):
        await begin_resume(store, 1, enable(), key.id, NOW, refuse)
    with pytest.raises(PreconditionFailed):
        await store.write(change_webhook(1, enable(), key.id, NOW, refuse))
    assert await states(store) == ["failed"] * 500


async def test_resuming_leaves_out_what_was_sent_again(store: Store, key: Caller) -> None:
    await add_deliveries(store, 1, "failed", "failed", "pending")
    await store.write(do("UPDATE webhook_deliveries SET retried_at = 1 WHERE sequence = 1"))
    await finish(store, key)
    assert await states(store) == ["failed", "pending", "pending"]
