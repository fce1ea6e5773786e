"""Deliveries of what changes in a store, to real endpoints, by the clock of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import permutations
from operator import itemgetter
from pathlib import Path

import msgspec
import pytest

from petstore.clock import DAY, MINUTE, SECOND, system_clock
from petstore.databases.contract import Store, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.errors import WebhooksNotConfigured
from petstore.events.model import Author, Event, NewEvent
from petstore.events.store import Change, publish_all, record
from petstore.logs import LogEvent
from petstore.pets.model import NewPet, PetPatch
from petstore.pets.store import update_pet
from petstore.webhooks.deliveries import recover
from petstore.webhooks.model import WebhookPatch
from petstore.webhooks.store import LEASE, LeasedWebhook, change_webhook
from support.changes import create_pets
from support.delivering import (
    SCOPES,
    SECRET,
    Watched,
    add_webhook,
    deliveries,
    delivering,
    issue_with_webhooks,
    webhook_row,
)
from support.history import plain, read_feed
from support.keys import issue
from support.manual_clock import ManualClock
from support.receivers import OK, Behaviour, Receiver, Request, Writer, receiving, saying, silent
from support.stores import do, locked, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1, "available")
AUTHOR = Author("person/2", "r-1")
NO = b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nsick"
GAPS = [5 * SECOND, *(m * MINUTE for m in (5, 30, 120, 300, 600, 840, 1200, 1440))]


@pytest.fixture
async def key_id(store: Store, clock: ManualClock) -> int:
    return await issue_with_webhooks(store, clock)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """An endpoint that takes everything."""
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def endpoint(store: Store, key_id: int, receiver: Receiver) -> Receiver:
    assert await add_webhook(store, key_id, receiver.url) == 1
    return receiver


async def add_pets(store: Store, count: int = 1) -> None:
    """Add pets; each is an event of a resource of its own."""
    await store.write(create_pets([BELLA] * count))


async def rename(store: Store, pet_id: int, name: str) -> None:
    """Change a pet, which is an event of the same resource as its creation."""
    await store.write(update_pet(Change(0), pet_id, PetPatch(name=name)))


async def attempted(receiver: Receiver, times: int) -> None:
    """Wait until an endpoint has got so many requests."""
    await eventually(lambda: len(receiver.requests) >= times, 30)


async def settled(store: Store, count: int) -> None:
    async def are_settled() -> bool:
        states = [state for (state,) in await deliveries(store, "state")]
        return len(states) - states.count("pending") >= count

    await eventually(are_settled, 30)


async def saved(store: Store, attempts: int) -> None:
    async def are_saved() -> bool:
        rows = await deliveries(store, "attempts")
        return sum(int(row[0]) for row in rows) >= attempts

    await eventually(are_saved, 30)


async def looked(store: Store, clock: ManualClock) -> None:
    """Wait until the webhook was looked at since the clock was moved, by 10 seconds or more."""

    async def is_renewed() -> bool:
        until: int
        (until,) = await webhook_row(store, "leased_until")
        return until == clock.now + LEASE

    await eventually(is_renewed, 30)


def failing_at(sequences: set[int]) -> Behaviour:
    """Return what refuses the events with these numbers."""

    async def respond(request: Request, writer: Writer) -> None:
        writer.write(NO if request.event["sequence"] in sequences else OK)

    return respond


def once(may_respond: asyncio.Event) -> Behaviour:
    async def wait(_: Request, writer: Writer) -> None:
        await may_respond.wait()
        writer.write(OK)

    return wait


def sent(receiver: Receiver) -> list[tuple[int, int]]:
    start = ManualClock().now // SECOND
    return [
        (request.event["sequence"], int(request.headers["webhook-timestamp"]) - start)
        for request in receiver.requests
    ]


async def disabled(store: Store) -> None:
    async def is_disabled() -> bool:
        (is_enabled,) = await webhook_row(store, "enabled")
        return not is_enabled

    await eventually(is_disabled, 30)


def logged_members(caplog: pytest.LogCaptureFixture) -> dict[str, int | str]:
    """Return what programs read of the last event in the log."""
    event = caplog.records[-1].msg
    assert isinstance(event, LogEvent)
    return event.members


async def disabled_event(store: Store, key_id: int) -> Event:
    if not isinstance(store, SqliteStore):
        await publish_all(store)
    (event,) = (await read_feed(store, ["webhook.disabled"], key_id, None, 2)).events
    return event


def recorded(*events: NewEvent) -> Unit[None]:
    yield record(ManualClock().now, *events, by=AUTHOR)


# What is delivered


@pytest.mark.each_database
async def test_each_event_arrives_once_and_signed_as_in_the_feed(
    store: Store, clock: ManualClock, key_id: int, endpoint: Receiver
) -> None:
    await add_pets(store, 20)
    async with delivering(store, clock):
        await settled(store, 20)
        await store.write(update_pet(Change(0, AUTHOR), 7, PetPatch(name="Rex")))
        await settled(store, 21)
    feed = await read_feed(store, ["pet.created", "pet.updated"], key_id, None, 100)
    got = [request.verified(SECRET) for request in endpoint.requests]
    assert [each["data"]["name"] for each in got] == ["Bella"] * 20 + ["Rex"]
    assert sorted(got, key=itemgetter("sequence")) == [plain(event) for event in feed.events]
    assert await webhook_row(store, "position, failures, last_success_at") == (21, 0, clock.now)
    columns = "state, attempts, first_attempt_at, last_attempt_at, response_status, error"
    assert set(await deliveries(store, columns)) == {
        ("succeeded", 1, clock.now, clock.now, 204, None)
    }


@pytest.mark.each_database
async def test_a_webhook_gets_what_it_wants_and_its_key_can_read(
    store: Store, clock: ManualClock, key_id: int, receiver: Receiver
) -> None:
    limited = await issue_with_webhooks(store, clock, scopes=frozenset({"webhooks:write"}))
    admin, staging = [
        await issue_with_webhooks(store, clock, scopes=SCOPES | {"keys:admin"}, environment=name)
        for name in ("production", "staging")
    ]
    wanted = "pet.updated pet.deleted"
    for key, types in (
        (key_id, wanted),
        (limited, ""),
        (admin, ""),
        (staging, ""),
        (key_id, wanted),
    ):
        await add_webhook(store, key, receiver.url, types)
    await add_pets(store)
    await rename(store, 1, "Rex")
    created = await issue(store, clock)
    for key in (key_id, limited):
        await store.write(recorded(NewEvent("key.banned", f"key/{key}", {}, None, key)))
    await store.write(recorded(NewEvent("webhook.test", "webhook/5", {}, None, key_id)))
    async with delivering(store, clock):
        await settled(store, 7)
    assert sorted(await deliveries(store, "webhook_id, type, resource")) == [
        (1, "pet.updated", "pet/1"),
        (2, "key.banned", f"key/{limited}"),
        (3, "key.created", f"key/{created.id}"),
        (3, "pet.created", "pet/1"),
        (3, "pet.updated", "pet/1"),
        (5, "pet.updated", "pet/1"),
        (5, "webhook.test", "webhook/5"),
    ]
    assert len(receiver.requests) == 7


@pytest.mark.parametrize(
    "end",
    [
        "api_keys SET revoked_at = 1",
        f"api_keys SET expires_at = {ManualClock().now}",
        "api_keys SET scopes = 'pets:read orders:read'",
        "webhooks SET enabled = 0",
        "webhooks SET environment = 'staging'",
    ],
)
async def test_a_webhook_stops_when_its_key_ends(
    store: Store, clock: ManualClock, endpoint: Receiver, end: str
) -> None:
    await store.write(do(f"UPDATE {end}"))
    other = await issue_with_webhooks(store, clock)
    await add_webhook(store, other, f"{endpoint.url}/other")
    await add_pets(store)
    async with delivering(store, clock):
        await settled(store, 1)
    assert [request.line.split()[1] for request in endpoint.requests] == ["/hooks/other"]
    assert await webhook_row(store, "position, leased_by") == (0, None)


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            "UPDATE api_keys SET scopes = 'orders:read webhooks:write'",
            "the owner can no longer read this event",
        ),
        ("DELETE FROM events", "the event is no longer kept"),
    ],
)
async def test_an_event_that_can_no_longer_be_read_is_not_sent(
    store: Store, clock: ManualClock, endpoint: Receiver, change: str, error: str
) -> None:
    endpoint.behaviour = saying(NO)
    watched = Watched()
    await add_pets(store)
    async with delivering(store, clock, watcher=watched):
        await saved(store, 1)
    await store.write(do(change))
    clock.advance(6)
    # A deliverer that was reading the webhooks during the change may still have the old scopes.
    async with delivering(store, clock, watcher=watched):
        await settled(store, 1)
        await eventually(lambda: len(watched.attempts) == 2)  # told after its commit
    assert await deliveries(store, "state, attempts, last_attempt_at, error") == [
        ("failed", 1, ManualClock().now, error)
    ]
    assert len(endpoint.requests) == 1
    assert watched.attempts == ["pending", "failed"]


async def test_an_event_that_cannot_be_read_is_sent_later(
    store: Store, clock: ManualClock, endpoint: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.behaviour = failing_at({1})
    await add_pets(store)
    async with delivering(store, clock):
        await saved(store, 1)
        endpoint.behaviour = saying(OK)
        await store.write(do("ALTER TABLE events RENAME TO mislaid"))
        clock.advance(6)
        await eventually(lambda: "delivery 1 not attempted" in caplog.text, 30)
        await store.write(do("ALTER TABLE mislaid RENAME TO events"))
        await settled(store, 1)
    assert sent(endpoint) == [(1, 0), (1, 6)]


# Attempts


async def test_a_delivery_is_attempted_ten_times_each_signed_at_its_time(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    endpoint.behaviour = saying(NO)
    watched, times = Watched(), []
    await add_pets(store)
    async with delivering(store, clock, watcher=watched):
        for attempts, gap in enumerate([*GAPS, 0], 1):
            times.append(clock.now // SECOND)
            await saved(store, attempts)
            if gap:
                ((due_at,),) = await deliveries(store, "due_at")
                assert due_at == clock.now + gap
            clock.now += gap
        clock.advance(86400 * 3)
        await add_pets(store)
        await attempted(endpoint, 11)
    requests = endpoint.requests[:10]
    assert {request.verified(SECRET)["sequence"] for request in requests} == {1}
    assert [int(request.headers["webhook-timestamp"]) for request in requests] == times
    columns = "state, attempts, response_status, response_body, error"
    assert (await deliveries(store, columns))[0] == (
        *("failed", 10, 500, "sick"),
        "the receiver responded with 500 Internal Server Error, not 2xx",
    )
    assert watched.attempts[:10] == [*["pending"] * 9, "failed"]


async def test_a_webhook_has_at_most_eight_concurrent_attempts(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    most = 0
    may_respond = asyncio.Event()

    async def waiting(_: Request, writer: Writer) -> None:
        nonlocal most
        most = max(most, endpoint.under_way)
        await may_respond.wait()
        writer.write(OK)

    endpoint.behaviour = waiting
    await add_pets(store, 30)
    await rename(store, 1, "Rex")
    async with delivering(store, clock):
        await attempted(endpoint, 8)
        may_respond.set()
        await settled(store, 31)
    assert most == 8


async def test_a_429_with_retry_after_pauses_the_webhook(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    endpoint.behaviour = saying(b"HTTP/1.1 429 No\r\nRetry-After: 3600\r\n\r\n")
    await add_pets(store)
    async with delivering(store, clock):
        await saved(store, 1)
        assert await webhook_row(store, "paused_until") == (clock.now + 3600 * SECOND,)
        assert await deliveries(store, "due_at") == [(clock.now + 3600 * SECOND,)]
        endpoint.behaviour = saying(OK)
        await add_pets(store)
        for seconds in (20, 3579):
            clock.advance(seconds)
            await looked(store, clock)
        clock.advance(1)
        await settled(store, 2)
    assert sent(endpoint)[0] == (1, 0)
    assert sorted(sent(endpoint)[1:]) == [(1, 3600), (2, 3600)]


# Order


@pytest.mark.each_database
async def test_a_failing_delivery_delays_the_next_of_its_resource_for_five_minutes(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    endpoint.behaviour = failing_at({1})
    await add_pets(store, 2)
    await rename(store, 1, "Rex")
    await rename(store, 1, "Max")
    await rename(store, 2, "Luna")
    async with delivering(store, clock):
        await settled(store, 2)
        clock.advance(20)
        await saved(store, 4)
        clock.advance(279)
        await looked(store, clock)
        clock.advance(1)
        await settled(store, 4)
    assert tuple(sent(endpoint)[:3]) in permutations([(1, 0), (2, 0), (5, 0)])
    assert sent(endpoint)[3:] == [(1, 20), (3, 300), (4, 300)]


async def test_a_test_does_not_wait_for_an_earlier_one_that_fails(
    store: Store, clock: ManualClock, key_id: int, endpoint: Receiver
) -> None:
    endpoint.behaviour = failing_at({1})
    test = NewEvent("webhook.test", "webhook/1", {}, None, key_id)
    async with delivering(store, clock):
        await store.write(recorded(test))
        await saved(store, 1)
        await store.write(recorded(test))
        await settled(store, 1)
    assert await deliveries(store) == [(1, "pending", 1), (2, "succeeded", 1)]
    assert sent(endpoint) == [(1, 0), (2, 0)]


async def test_a_long_queue_of_one_resource_does_not_delay_others(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    endpoint.behaviour = failing_at({1})
    updates = [NewEvent("pet.updated", "pet/1", {"id": 1})] * 120
    await store.write(recorded(*updates, NewEvent("pet.updated", "pet/2", {"id": 2})))
    async with delivering(store, clock):
        await settled(store, 1)
        endpoint.behaviour = saying(OK)
        clock.advance(6)
        await settled(store, 121)
    assert {(1, 0), (121, 0)} == set(sent(endpoint)[:2])
    assert sent(endpoint)[2:] == [(1, 6), *((n, 6) for n in range(2, 121))]


# Webhooks that fail


@pytest.mark.each_database
async def test_a_410_disables_the_webhook_at_once(
    store: Store,
    clock: ManualClock,
    key_id: int,
    endpoint: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint.behaviour = saying(b"HTTP/1.1 410 Gone\r\n\r\n")
    await add_pets(store)
    await rename(store, 1, "Rex")
    async with delivering(store, clock):
        await saved(store, 1)
        await eventually(lambda: caplog.messages)
    assert await deliveries(store, "state, attempts") == [("failed", 1), ("pending", 0)]
    assert await webhook_row(store, "enabled, disabled_reason") == (0, "gone")
    event = await disabled_event(store, key_id)
    assert event.resource == "webhook/1"
    assert msgspec.json.decode(event.data) == {
        "id": 1,
        "url": endpoint.url,
        "types": [],
        "description": None,
        "enabled": False,
        "disabledReason": "gone",
        "createdAt": "1970-01-01T00:00:00Z",
        "lastSuccessAt": None,
        "failingSince": None,
        "owner": {"type": "key", "id": key_id},
    }
    assert msgspec.json.decode(msgspec.json.encode(event.previous)) == {
        "enabled": True,
        "disabledReason": None,
    }
    (logged,) = caplog.messages
    assert logged == f"webhook 1 of key {key_id} was disabled: gone"
    assert logged_members(caplog)["error"] == "the receiver responded with 410 Gone, not 2xx"


async def test_a_410_loses_no_event_of_concurrent_attempts(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    is_gone = asyncio.Event()

    async def refuse_the_first(request: Request, writer: Writer) -> None:
        if request.event["sequence"] == 1:
            writer.write(b"HTTP/1.1 410 Gone\r\n\r\n")
        else:
            await is_gone.wait()
            writer.write(OK)

    endpoint.behaviour = refuse_the_first
    await add_pets(store, 2)
    async with delivering(store, clock):
        await saved(store, 1)
        is_gone.set()
        await saved(store, 2)
        endpoint.behaviour = saying(OK)
        await store.write(change_webhook(Change(0), 1, WebhookPatch(enabled=True)))
        await store.write(recover(Change(0), 1, 0))
        clock.advance(6)
        await settled(store, 4)
    # The third event tells that the webhook was disabled.
    assert sorted(sent(endpoint)[2:]) == [(1, 6), (3, 6)]


@pytest.mark.each_database
async def test_missed_events_of_each_webhook_are_sent_in_turn_and_in_order(
    store: Store, clock: ManualClock, key_id: int, endpoint: Receiver
) -> None:
    await add_webhook(store, key_id, endpoint.url)
    await store.write(recorded(*[NewEvent("pet.updated", "pet/1", {"id": 1})] * 30))
    if not isinstance(store, SqliteStore):
        await publish_all(store)
    await store.write(do("UPDATE webhooks SET position = 30"))
    for webhook_id in (1, 2):
        await store.write(recover(Change(0), webhook_id, 0))
    async with delivering(store, clock):
        await settled(store, 60)
    for webhook_id in (1, 2):
        made = await deliveries(store, f"sequence, webhook_id = {webhook_id}")
        assert [number for number, is_own in made if is_own] == [*range(1, 31)]
    assert await webhook_row(store, "recovered_to") == (None,)
    assert sorted(number for number, _ in sent(endpoint)) == sorted([*range(1, 31)] * 2)


async def test_a_webhook_without_success_for_five_days_is_disabled(
    store: Store,
    clock: ManualClock,
    key_id: int,
    endpoint: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await add_pets(store)
    async with delivering(store, clock):
        await settled(store, 1)
        endpoint.behaviour = saying(NO)
        await add_pets(store, 9)
        await saved(store, 10)
        assert await webhook_row(store, "failures, failing_since") == (9, clock.now)
        clock.now += 5 * DAY
        await disabled(store)
        await eventually(lambda: "was disabled" in caplog.text)
    failures, *rest = await webhook_row(store, "failures, enabled, disabled_reason")
    assert failures >= 10
    assert rest == [0, "failing"]
    data = msgspec.json.decode((await disabled_event(store, key_id)).data)
    assert data["disabledReason"] == "failing"
    assert data["lastSuccessAt"] == "2026-12-01T12:00:00Z"
    assert caplog.messages == [
        f"deliveries to webhook 1 of key {key_id} fail",
        f"webhook 1 of key {key_id} was disabled: failing",
    ]
    assert logged_members(caplog) == {
        "webhook": 1,
        "key": key_id,
        "reason": "failing",
        "error": "the receiver responded with 500 Internal Server Error, not 2xx",
    }


async def test_a_webhook_that_is_deleted_during_an_attempt_is_not_updated(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    may_respond = asyncio.Event()
    endpoint.behaviour = once(may_respond)
    await add_pets(store)
    async with delivering(store, clock, stop_seconds=30):
        await attempted(endpoint, 1)
        await store.write(do("DELETE FROM webhooks"))
        may_respond.set()
        await settled(store, 1)


# Many processes, and their ends


@pytest.mark.each_database
async def test_only_one_of_two_processes_delivers(
    address: str, store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    async with open_store(address) as other, delivering(store, clock), delivering(other, clock):
        for count in (10, 20):
            await add_pets(store, 10)
            await settled(store, count)
            clock.advance(20)  # both want the lease
            await looked(store, clock)
    assert sorted(sequence for sequence, _ in sent(endpoint)) == list(range(1, 21))


@pytest.mark.each_database
async def test_another_process_resumes_where_one_has_stopped(
    address: str, store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    async with open_store(address) as other:
        async with delivering(other, clock):
            await add_pets(store)
            await settled(store, 1)
        assert await webhook_row(store, "leased_by, leased_until") == (None, None)
        await add_pets(store)
        async with delivering(store, clock):
            await settled(store, 2)
    assert [sequence for sequence, _ in sent(endpoint)] == [1, 2]


async def test_an_attempt_that_is_cut_off_by_a_stop_stays_pending(
    store: Store, clock: ManualClock, endpoint: Receiver
) -> None:
    endpoint.behaviour = silent
    await add_pets(store)
    async with delivering(store, clock):
        await attempted(endpoint, 1)
    assert await deliveries(store) == [(1, "pending", 0)]


async def test_without_the_secret_nothing_is_sent_and_the_log_says_so_once(
    store: Store, clock: ManualClock, endpoint: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    def missing(_: LeasedWebhook) -> list[bytes]:
        nonlocal asked
        asked += 1
        msg = "the secret file is missing"
        raise WebhooksNotConfigured(msg)

    await add_pets(store)
    async with delivering(store, clock, secrets_of=missing):
        await eventually(lambda: asked > 3, 30)
    assert endpoint.connections == 0
    assert caplog.messages == ["deliveries to webhook 1 not started: the secret file is missing"]


async def test_outcomes_are_saved_once_the_database_is_back(
    database: Path,
    store: Store,
    clock: ManualClock,
    endpoint: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    may_respond = asyncio.Event()
    endpoint.behaviour = once(may_respond)
    await add_pets(store)
    async with delivering(store, clock):
        await attempted(endpoint, 1)
        with locked(database, store):
            may_respond.set()
            await eventually(lambda: "outcomes of deliveries not saved yet" in caplog.text, 30)
        await settled(store, 1)
    assert len(endpoint.requests) == 1


async def test_a_stop_does_not_wait_for_a_database_that_is_gone(
    database: Path,
    store: Store,
    clock: ManualClock,
    endpoint: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    may_respond = asyncio.Event()
    endpoint.behaviour = once(may_respond)
    await add_pets(store)
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(delivering(store, clock))
        await attempted(endpoint, 1)
        with locked(database, store):
            may_respond.set()
            await eventually(lambda: "outcomes of deliveries not saved yet" in caplog.text, 30)
            await opened.aclose()
    assert "leases of webhooks not released" in caplog.text
    assert await deliveries(store) == [(1, "pending", 0)]


async def test_a_dead_endpoint_among_200_does_not_delay_the_others(
    store: Store, key_id: int, receiver: Receiver
) -> None:
    async with receiving(silent) as dead:
        await add_webhook(store, key_id, dead.url)
        for number in range(2, 201):
            await add_webhook(store, key_id, f"{receiver.url}/{number}")
        async with delivering(store, system_clock, seconds=300):
            await add_pets(store, 2)
            await eventually(lambda: dead.under_way == 2, 30)
            await add_pets(store, 2)
            await attempted(receiver, 4 * 199)
            # All others have their events, and not one attempt of the dead one has ended.
            await eventually(lambda: dead.under_way == 4)
            assert (dead.connections, dead.under_way) == (4, 4)
