"""Webhooks and their deliveries, below HTTP."""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.databases.contract import Row, Statement, Store
from petstore.domain.api_keys import ApiKey
from petstore.domain.webhooks import (
    MAX_REPLAY,
    MAX_WEBHOOKS,
    WebhookCreate,
    WebhookPatch,
)
from petstore.errors import (
    DeliveriesPending,
    InvalidBody,
    NotFound,
    ReplayTooLarge,
    TooManyWebhooks,
    WebhookDisabled,
)
from petstore.store.api_keys import unconditional
from petstore.store.webhooks import (
    Window,
    change_webhook,
    create_webhook,
    delete_deliveries,
    delete_webhook,
    get_webhook,
    has_webhooks,
    list_deliveries,
    list_webhooks,
    prune_deliveries,
    record_test,
    replay,
    resume_deliveries,
    rotate_webhook,
)
from support.races import lingering
from support.stores import do
from support.webhooks import (
    NOW,
    URL,
    add_deliveries,
    add_events,
    add_webhook,
    issue_key,
    publish,
)

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ALL = Window(0, 2**62)
OFF = WebhookPatch(enabled=False)
ON = WebhookPatch(enabled=True)


@pytest.fixture
async def key(store: Store) -> ApiKey:
    """A key that may do everything."""
    return await issue_key(store)


async def change(store: Store, key: ApiKey, patch: WebhookPatch, webhook_id: int = 1) -> None:
    await store.write(change_webhook(webhook_id, patch, key.id, unconditional))


async def replayed(store: Store, key: ApiKey, window: Window = ALL, webhook_id: int = 1) -> int:
    return await store.write(replay(webhook_id, window, key, NOW, unconditional))


async def column(store: Store, name: str, webhook_id: int = 1) -> Any:
    sql = f"SELECT {name} FROM webhooks WHERE id = ?1"  # noqa: S608 - a name
    ((value,),) = await store.read(Statement(sql, (webhook_id,)))
    return value


async def deliveries(store: Store, names: str = "sequence, state") -> list[Row]:
    sql = f"SELECT {names} FROM webhook_deliveries ORDER BY id"  # noqa: S608 - only names
    return await store.read(Statement(sql))


# Webhooks of a key


async def test_a_webhook_of_another_key_is_not_there(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    other = await issue_key(store)
    for unit in (
        change_webhook(1, OFF, other.id, unconditional),
        rotate_webhook(1, 0, other.id, NOW, unconditional),
        record_test(1, other.id, NOW, unconditional),
        replay(1, ALL, other, NOW, unconditional),
        delete_webhook(1, other.id, unconditional),
    ):
        with pytest.raises(NotFound, match=r"^there is no webhook 1$"):
            await store.write(unit)
    with pytest.raises(NotFound):
        await get_webhook(store, 1, other.id)
    assert (await list_webhooks(store, other.id, None, 100)).items == []
    assert [each.id for each in (await list_webhooks(store, key.id, None, 100)).items] == [1]


async def test_a_key_has_up_to_16_webhooks_whoever_else_has_some(store: Store, key: ApiKey) -> None:
    assert not await has_webhooks(store)
    other = await issue_key(store)
    for _ in range(MAX_WEBHOOKS):
        await add_webhook(store, key)
    assert await has_webhooks(store)
    with pytest.raises(TooManyWebhooks, match=r"^this key has 16 webhooks, the maximum"):
        await add_webhook(store, key)
    await add_webhook(store, other)
    await store.write(delete_webhook(1, key.id, unconditional))
    assert (await add_webhook(store, key)).webhook.id == 18


async def test_requests_at_once_do_not_create_more_than_16(
    store: Store, key: ApiKey, database_kind: str
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


async def test_a_webhook_starts_behind_the_newest_event(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    assert await column(store, "position") == 0
    await add_events(store, [NOW, NOW])
    await add_webhook(store, key)
    assert await column(store, "position", 2) == 2


async def test_a_secret_begins_with_a_version_that_nobody_can_foresee(
    store: Store, key: ApiKey
) -> None:
    versions = {(await add_webhook(store, key)).version for _ in range(4)}
    assert len(versions) == 4
    assert min(versions) > 2**32


async def test_a_rotation_gives_the_next_version_and_ends_the_one_before(
    store: Store, key: ApiKey
) -> None:
    issued = await add_webhook(store, key)
    assert await column(store, "previous_secret_ends_at") is None
    rotated = await store.write(rotate_webhook(1, 5 * SECOND, key.id, NOW, unconditional))
    assert rotated.webhook == issued.webhook
    assert rotated.version == issued.version + 1 == await column(store, "secret_version")
    assert await column(store, "previous_secret_ends_at") == NOW + 5 * SECOND


async def test_what_failed_before_is_forgotten_when_a_webhook_is_enabled_again(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key)
    sql = "UPDATE webhooks SET enabled = 0, disabled_reason = 'x', failures = 9, failing_since = 5"
    await store.write(do(sql))
    await change(store, key, WebhookPatch(description="The till"))
    shown = await get_webhook(store, 1, key.id)
    assert (shown.enabled, shown.disabledReason) == (False, "x")
    assert await column(store, "failures") == 9
    await change(store, key, ON)
    shown = await get_webhook(store, 1, key.id)
    assert (shown.enabled, shown.disabledReason, shown.description) == (True, None, "The till")
    assert (await column(store, "failures"), await column(store, "failing_since")) == (0, None)


async def test_a_new_url_need_not_wait_as_the_old_one_asked(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await store.write(do("UPDATE webhooks SET paused_until = 9"))
    await change(store, key, WebhookPatch(url=URL, description="The till"))
    assert await column(store, "paused_until") == 9
    await change(store, key, WebhookPatch(url=f"{URL}/new"))
    assert await column(store, "paused_until") is None


async def test_a_webhook_that_is_enabled_again_goes_on_or_skips(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await change(store, key, OFF)
    await add_events(store, [NOW] * 3)
    await store.write(do("UPDATE webhooks SET position = 1"))
    await change(store, key, WebhookPatch(enabled=True, resume="lastSuccess"))
    assert await column(store, "position") == 1
    # It is enabled already: so a repeated request changes nothing.
    await change(store, key, WebhookPatch(enabled=True, resume="now"))
    assert await column(store, "position") == 1
    await change(store, key, OFF)
    await change(store, key, WebhookPatch(enabled=True, resume="now"))
    assert await column(store, "position") == 3


async def test_a_test_is_an_event_of_the_webhook_that_its_key_alone_can_read(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key, "order.placed")
    event_id = await store.write(record_test(1, key.id, NOW, unconditional))
    await publish(store)
    (row,) = await store.read(Statement("SELECT id, type, resource, key_id, at FROM events"))
    assert row == (event_id, "webhook.test", "webhook/1", key.id, NOW)
    await change(store, key, OFF)
    with pytest.raises(WebhookDisabled, match=r"^webhook 1 is disabled; enable it first$"):
        await store.write(record_test(1, key.id, NOW, unconditional))


# Deliveries


async def test_deliveries_are_listed_newest_first_page_by_page(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await add_webhook(store, key)
    await add_deliveries(store, 1, "succeeded", "failed", "pending")
    await add_deliveries(store, 2, "pending")
    first = await list_deliveries(store, 1, UNSET, None, 2)
    assert [(each.id, each.state) for each in first.items] == [(3, "pending"), (2, "failed")]
    assert first.next_after == 2
    last = await list_deliveries(store, 1, UNSET, first.next_after, 2)
    assert [each.id for each in last.items] == [1]
    assert last.next_after is None
    whole = await list_deliveries(store, 1, UNSET, None, 3)
    assert (len(whole.items), whole.next_after) == (3, None)


async def test_only_a_pending_delivery_has_a_next_attempt(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, "succeeded", "failed", "pending")
    pending, *others = (await list_deliveries(store, 1, UNSET, None, 3)).items
    assert pending.nextAttemptAt == "2026-12-01T12:00:05.000Z"
    assert pending.lastAttemptAt == "2026-12-01T12:00:01.000Z"
    assert (pending.attempts, pending.responseStatus, pending.responseBody) == (3, 500, "no")
    assert [each.nextAttemptAt for each in others] == [None, None]


async def test_a_state_is_searched_in_bounded_steps(store: Store, key: ApiKey) -> None:
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


async def test_old_deliveries_are_deleted_in_batches_the_oldest_first(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key)
    await add_deliveries(store, 1, *["failed"] * 600, created_at=NOW - DAY)
    await add_deliveries(store, 1, "pending", "succeeded", first=601)
    counts = [await store.write(prune_deliveries(NOW)) for _ in range(3)]
    assert counts == [500, 100, 0]
    assert await deliveries(store) == [(601, "pending"), (602, "succeeded")]


async def test_the_deliveries_of_a_webhook_are_deleted_in_batches(store: Store) -> None:
    await add_deliveries(store, 2, "pending")
    await add_deliveries(store, 1, *["pending"] * 501)
    counts = [await store.write(delete_deliveries(1)) for _ in range(3)]
    assert counts == [500, 1, 0]
    assert await deliveries(store, "webhook_id") == [(2,)]


async def test_to_go_on_after_the_last_success_all_since_is_pending_as_if_never_attempted(
    store: Store,
) -> None:
    await add_deliveries(store, 2, "failed")
    await add_deliveries(store, 1, "failed", "succeeded", *["failed"] * 600, "pending")
    await resume_deliveries(store, 1, "lastSuccess", NOW + DAY)
    names = "webhook_id, sequence, state, attempts, due_at, first_attempt_at"
    of_other, failed, succeeded, *others = await deliveries(store, names)
    untouched = (3, NOW + 5000, NOW)
    assert of_other == (2, 1, "failed", *untouched)
    assert failed == (1, 1, "failed", *untouched)
    assert succeeded == (1, 2, "succeeded", *untouched)
    assert others == [(1, sequence, "pending", 0, NOW + DAY, None) for sequence in range(3, 604)]


@pytest.mark.parametrize("count", [0, 1, 500, 501])
async def test_a_webhook_without_a_success_begins_with_its_first_delivery(
    store: Store, count: int
) -> None:
    if count:
        await add_deliveries(store, 1, *["failed"] * count)
    await resume_deliveries(store, 1, "lastSuccess", NOW)
    assert [state for _, state in await deliveries(store)] == ["pending"] * count


async def test_a_success_is_where_it_stops_even_between_two_batches(store: Store) -> None:
    await add_deliveries(store, 1, "failed", "succeeded", *["failed"] * 500)
    await resume_deliveries(store, 1, "lastSuccess", NOW)
    states = [state for _, state in await deliveries(store)]
    assert states == ["failed", "succeeded", *["pending"] * 500]


async def test_to_go_on_from_now_what_is_pending_fails(store: Store) -> None:
    await add_deliveries(store, 2, "pending")
    await add_deliveries(store, 1, "succeeded", "failed", *["pending"] * 501)
    await resume_deliveries(store, 1, "now", NOW)
    rows = await deliveries(store, "state, error")
    assert rows[:3] == [("pending", "not 2xx"), ("succeeded", "not 2xx"), ("failed", "not 2xx")]
    skipped = ("failed", "skipped: the webhook was enabled to go on from then")
    assert rows[3:] == [skipped] * 501


# Replays


async def test_a_replay_sends_the_events_in_its_window_with_their_ids(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW + number * SECOND for number in range(10)])
    window = Window(NOW + 3 * SECOND, NOW + 6 * SECOND)
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
async def test_a_window_is_found_among_many_events(
    store: Store, key: ApiKey, since: Milliseconds, until: Milliseconds, count: int
) -> None:
    await add_webhook(store, key)
    times = [day * DAY for day in range(100) for _ in range(4)]
    await add_events(store, times)
    assert await replayed(store, key, Window(since, until)) == count


async def test_clocks_that_differ_by_seconds_hide_no_event_of_a_window(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key)
    times = [NOW + (number + (8 if number % 3 else 0)) * SECOND for number in range(90)]
    await add_events(store, times)
    window = Window(NOW + 30 * SECOND, NOW + 60 * SECOND)
    within = sum(window.since <= at < window.until for at in times)
    assert await replayed(store, key, window) == within


async def test_a_replay_has_what_the_webhook_wants_and_its_key_may_read(
    store: Store, key: ApiKey
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


async def test_a_replay_leaves_out_what_is_pending_or_will_be_sent_anyway(
    store: Store, key: ApiKey
) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 5)
    await add_deliveries(store, 1, "succeeded", "failed", "pending")
    await store.write(do("UPDATE webhooks SET position = 4"))
    assert await replayed(store, key) == 3
    assert (await deliveries(store))[3:] == [(1, "pending"), (2, "pending"), (4, "pending")]
    assert await replayed(store, key) == 0


async def test_a_disabled_webhook_takes_no_replay(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await change(store, key, OFF)
    with pytest.raises(WebhookDisabled):
        await replayed(store, key)


async def test_a_replay_without_any_event_sends_nothing(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    assert await replayed(store, key) == 0


async def test_a_window_before_the_oldest_event_kept_is_refused(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW - DAY, NOW, NOW + SECOND])
    assert await replayed(store, key, Window(0, NOW)) == 1
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    expected = "^since: expected 2026-12-01T12:00:00.000Z or later, the time of the oldest event$"
    with pytest.raises(InvalidBody, match=expected):
        await replayed(store, key, Window(NOW - 1, NOW + DAY))
    assert await replayed(store, key, Window(NOW, NOW + DAY)) == 2


async def test_a_window_too_full_to_be_searched_is_refused(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await add_events(store, [NOW] * 50_001)
    with pytest.raises(ReplayTooLarge, match=r"; replay a longer one in parts$"):
        await replayed(store, key, Window(NOW - 1, NOW))


async def test_a_window_has_up_to_2_000_events(store: Store, key: ApiKey) -> None:
    await add_webhook(store, key)
    await add_events(store, range(NOW, NOW + MAX_REPLAY + 1))
    with pytest.raises(ReplayTooLarge, match=r"^since, until: expected a window of up to 2000 .*"):
        await replayed(store, key)
    middle = Window(NOW + 1, NOW + MAX_REPLAY + 1)
    assert await replayed(store, key, middle) == MAX_REPLAY
    with pytest.raises(DeliveriesPending, match=r"^2000 deliveries or more are pending; "):
        await replayed(store, key)
