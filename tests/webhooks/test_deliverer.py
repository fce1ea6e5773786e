"""Deliveries of what changes in a store, to real endpoints, by the clock of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import permutations
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from petstore.clock import DAY, MINUTE, SECOND, system_clock
from petstore.databases.contract import Row, Store, Unit
from petstore.errors import WebhooksNotConfigured
from petstore.events.model import Author, Event, NewEvent
from petstore.events.store import Change, record
from petstore.keys.model import Caller, Scope
from petstore.logs import LogEvent
from petstore.pets.model import NewPet, PetPatch
from petstore.pets.store import update_pet
from petstore.webhooks.deliverer import Deliverer
from petstore.webhooks.deliveries import recover
from petstore.webhooks.model import WebhookPatch
from petstore.webhooks.store import LEASE, LeasedWebhook, change_webhook
from support.changes import create_pets
from support.history import plain, published, read_feed
from support.keys import issue
from support.manual_clock import ManualClock
from support.receivers import OK, Behaviour, Receiver, Request, Writer, receiving, saying, silent
from support.stores import do, locked, open_store
from support.waiting import eventually
from support.webhooks import (
    SECRET,
    Watched,
    add_webhook,
    deliveries,
    delivering,
    issue_key,
    webhook_row,
)

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1, "available")
SCOPES = frozenset[Scope]({"pets:read", "orders:read", "webhooks:write"})
AUTHOR = Author("person/2", "r-1")
NO = b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nsick"
GAPS = [5 * SECOND, *(m * MINUTE for m in (5, 30, 120, 300, 600, 840, 1200, 1440))]


class Hook(NamedTuple):
    """A key's webhook, the first one of its store, and the endpoint that it leads to."""

    store: Store
    clock: ManualClock
    key: Caller
    endpoint: Receiver

    def delivering(self, **options: Any) -> AbstractAsyncContextManager[Deliverer]:
        return delivering(self.store, self.clock, **options)

    async def add_pets(self, count: int = 1) -> None:
        """Add pets; each is an event of a resource of its own."""
        await self.store.write(create_pets([BELLA] * count))

    async def rename(self, pet_id: int, name: str) -> None:
        """Change a pet, which is an event of the same resource as its creation."""
        await self.store.write(update_pet(Change(0, AUTHOR), pet_id, PetPatch(name=name)))

    async def happened(self, resource: str, kind: str, key_id: int, times: int = 1) -> None:
        event = NewEvent(kind, resource, {"id": 1}, None, key_id)  # type: ignore[arg-type]
        await self.store.write(recorded(*[event] * times))

    async def row(self, columns: str) -> Row:
        return await webhook_row(self.store, columns)

    async def attempted(self, times: int) -> None:
        await eventually(lambda: len(self.endpoint.requests) >= times, 30)

    async def settled(self, count: int) -> None:
        async def are_settled() -> bool:
            states = [state for (state,) in await deliveries(self.store, "state")]
            return len(states) - states.count("pending") >= count

        await eventually(are_settled, 30)

    async def saved(self, attempts: int) -> None:
        async def are_saved() -> bool:
            rows = await deliveries(self.store, "attempts")
            return sum(int(row[0]) for row in rows) >= attempts

        await eventually(are_saved, 30)

    async def looked(self) -> None:
        """Wait until the webhook was looked at since the clock was moved, by 10 seconds or more."""

        async def is_renewed() -> bool:
            return await self.row("leased_until") == (self.clock.now + LEASE,)

        await eventually(is_renewed, 30)

    @property
    def sent(self) -> list[tuple[int, int]]:
        """The sequence of each event that was sent, and after how many seconds."""
        start = ManualClock().now // SECOND
        return [
            (request.event["sequence"], int(request.headers["webhook-timestamp"]) - start)
            for request in self.endpoint.requests
        ]

    async def disabling(self) -> Event:
        await published(self.store)
        page = await read_feed(self.store, ["webhook.disabled"], self.key.id, None, 2)
        (event,) = page.events
        return event


@pytest.fixture
async def hook(store: Store, clock: ManualClock) -> AsyncIterator[Hook]:
    """A webhook whose endpoint takes everything."""
    async with receiving() as receiver:
        hook = Hook(store, clock, await issue_key(store, scopes=SCOPES), receiver)
        assert await add_webhook(store, hook.key, url=receiver.url) == 1
        yield hook


def recorded(*events: NewEvent) -> Unit[None]:
    yield record(ManualClock().now, *events, by=AUTHOR)


def failing_at(sequences: set[int]) -> Behaviour:

    async def respond(request: Request, writer: Writer) -> None:
        writer.write(NO if request.event["sequence"] in sequences else OK)

    return respond


def once(may_respond: asyncio.Event) -> Behaviour:
    async def wait(_: Request, writer: Writer) -> None:
        await may_respond.wait()
        writer.write(OK)

    return wait


def logged_members(caplog: pytest.LogCaptureFixture) -> dict[str, int | str]:
    event = caplog.records[-1].msg
    assert isinstance(event, LogEvent)
    return event.members


# What is delivered


@pytest.mark.each_database
async def test_each_event_arrives_once_and_signed_as_in_the_feed(hook: Hook) -> None:
    await hook.add_pets(20)
    async with hook.delivering():
        await hook.settled(20)
        await hook.rename(7, "Rex")
        await hook.settled(21)
    feed = await read_feed(hook.store, ["pet.created", "pet.updated"], hook.key.id, None, 100)
    got = [request.verified(SECRET) for request in hook.endpoint.requests]
    assert [each["data"]["name"] for each in got] == ["Bella"] * 20 + ["Rex"]
    assert sorted(got, key=itemgetter("sequence")) == [plain(event) for event in feed.events]
    now = hook.clock.now
    assert await hook.row("position, failures, last_success_at") == (21, 0, now)
    columns = "state, attempts, first_attempt_at, last_attempt_at, response_status, error"
    assert set(await deliveries(hook.store, columns)) == {("succeeded", 1, now, now, 204, None)}


@pytest.mark.each_database
async def test_a_webhook_gets_what_it_wants_and_its_key_can_read(hook: Hook) -> None:
    store, clock = hook.store, hook.clock
    limited = await issue_key(store, scopes=frozenset({"webhooks:write"}))
    admin, staging = [
        await issue_key(store, scopes=SCOPES | {"keys:admin"}, environment=name)
        for name in ("production", "staging")
    ]
    for key in (limited, admin, staging):
        await add_webhook(store, key, url=hook.endpoint.url)
    await add_webhook(store, hook.key, "pet.updated", url=hook.endpoint.url)
    await store.write(do("UPDATE webhooks SET types = 'pet.updated pet.deleted' WHERE id = 1"))
    await hook.add_pets()
    await hook.rename(1, "Rex")
    created = await issue(store, clock)
    for key_id in (hook.key.id, limited.id):
        await hook.happened(f"key/{key_id}", "key.banned", key_id)
    await hook.happened("webhook/5", "webhook.test", hook.key.id)
    async with hook.delivering():
        await hook.settled(7)
    assert sorted(await deliveries(store, "webhook_id, type, resource")) == [
        (1, "pet.updated", "pet/1"),
        (2, "key.banned", f"key/{limited.id}"),
        (3, "key.created", f"key/{created.id}"),
        (3, "pet.created", "pet/1"),
        (3, "pet.updated", "pet/1"),
        (5, "pet.updated", "pet/1"),
        (5, "webhook.test", "webhook/5"),
    ]
    assert len(hook.endpoint.requests) == 7


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
async def test_a_webhook_stops_when_its_key_ends(hook: Hook, end: str) -> None:
    await hook.store.write(do(f"UPDATE {end}"))
    await add_webhook(hook.store, await issue_key(hook.store), url=f"{hook.endpoint.url}/other")
    await hook.add_pets()
    async with hook.delivering():
        await hook.settled(1)
    assert [request.line.split()[1] for request in hook.endpoint.requests] == ["/hooks/other"]
    assert await hook.row("position, leased_by") == (0, None)


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
    hook: Hook, change: str, error: str
) -> None:
    hook.endpoint.behaviour = saying(NO)
    watched = Watched()
    await hook.add_pets()
    async with hook.delivering(watcher=watched):
        await hook.saved(1)
    await hook.store.write(do(change))
    hook.clock.advance(6)
    # A deliverer that was reading the webhooks during the change may still have the old scopes.
    async with hook.delivering(watcher=watched):
        await hook.settled(1)
        await eventually(lambda: len(watched.attempts) == 2)  # told after its commit
    assert await deliveries(hook.store, "state, attempts, last_attempt_at, error") == [
        ("failed", 1, ManualClock().now, error)
    ]
    assert len(hook.endpoint.requests) == 1
    assert watched.attempts == ["pending", "failed"]


async def test_an_event_that_cannot_be_read_is_sent_later(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.endpoint.behaviour = failing_at({1})
    await hook.add_pets()
    async with hook.delivering():
        await hook.saved(1)
        hook.endpoint.behaviour = saying(OK)
        await hook.store.write(do("ALTER TABLE events RENAME TO mislaid"))
        hook.clock.advance(6)
        await eventually(lambda: "delivery 1 not attempted" in caplog.text, 30)
        await hook.store.write(do("ALTER TABLE mislaid RENAME TO events"))
        await hook.settled(1)
    assert hook.sent == [(1, 0), (1, 6)]


# Attempts


async def test_a_delivery_is_attempted_ten_times_each_signed_at_its_time(hook: Hook) -> None:
    hook.endpoint.behaviour = saying(NO)
    watched, times = Watched(), []
    await hook.add_pets()
    async with hook.delivering(watcher=watched):
        for attempts, gap in enumerate([*GAPS, 0], 1):
            times.append(hook.clock.now // SECOND)
            await hook.saved(attempts)
            if gap:
                assert await deliveries(hook.store, "due_at") == [(hook.clock.now + gap,)]
            hook.clock.now += gap
        hook.clock.advance(86400 * 3)
        await hook.add_pets()
        await hook.attempted(11)
    requests = hook.endpoint.requests[:10]
    assert {request.verified(SECRET)["sequence"] for request in requests} == {1}
    assert [int(request.headers["webhook-timestamp"]) for request in requests] == times
    columns = "state, attempts, response_status, response_body, error"
    assert (await deliveries(hook.store, columns))[0] == (
        *("failed", 10, 500, "sick"),
        "the receiver responded with 500 Internal Server Error, not 2xx",
    )
    assert watched.attempts[:10] == [*["pending"] * 9, "failed"]


async def test_a_webhook_has_at_most_eight_concurrent_attempts(hook: Hook) -> None:
    most = 0
    may_respond = asyncio.Event()

    async def waiting(_: Request, writer: Writer) -> None:
        nonlocal most
        most = max(most, hook.endpoint.under_way)
        await may_respond.wait()
        writer.write(OK)

    hook.endpoint.behaviour = waiting
    await hook.add_pets(30)
    await hook.rename(1, "Rex")
    async with hook.delivering():
        await hook.attempted(8)
        may_respond.set()
        await hook.settled(31)
    assert most == 8


async def test_a_429_with_retry_after_pauses_the_webhook(hook: Hook) -> None:
    hook.endpoint.behaviour = saying(b"HTTP/1.1 429 No\r\nRetry-After: 3600\r\n\r\n")
    await hook.add_pets()
    async with hook.delivering():
        await hook.saved(1)
        assert await hook.row("paused_until") == (hook.clock.now + 3600 * SECOND,)
        assert await deliveries(hook.store, "due_at") == [(hook.clock.now + 3600 * SECOND,)]
        hook.endpoint.behaviour = saying(OK)
        await hook.add_pets()
        for seconds in (20, 3579):
            hook.clock.advance(seconds)
            await hook.looked()
        hook.clock.advance(1)
        await hook.settled(2)
    assert hook.sent[0] == (1, 0)
    assert sorted(hook.sent[1:]) == [(1, 3600), (2, 3600)]


# Order


@pytest.mark.each_database
async def test_a_failing_delivery_delays_the_next_of_its_resource_for_five_minutes(
    hook: Hook,
) -> None:
    hook.endpoint.behaviour = failing_at({1})
    await hook.add_pets(2)
    for pet_id, name in ((1, "Rex"), (1, "Max"), (2, "Luna")):
        await hook.rename(pet_id, name)
    async with hook.delivering():
        await hook.settled(2)
        hook.clock.advance(20)
        await hook.saved(4)
        hook.clock.advance(279)
        await hook.looked()
        hook.clock.advance(1)
        await hook.settled(4)
    assert tuple(hook.sent[:3]) in permutations([(1, 0), (2, 0), (5, 0)])
    assert hook.sent[3:] == [(1, 20), (3, 300), (4, 300)]


async def test_a_long_queue_of_one_resource_does_not_delay_others(hook: Hook) -> None:
    hook.endpoint.behaviour = failing_at({1})
    await hook.happened("pet/1", "pet.updated", hook.key.id, 120)
    await hook.happened("pet/2", "pet.updated", hook.key.id)
    async with hook.delivering():
        await hook.settled(1)
        hook.endpoint.behaviour = saying(OK)
        hook.clock.advance(6)
        await hook.settled(121)
    assert {(1, 0), (121, 0)} == set(hook.sent[:2])
    assert hook.sent[2:] == [(1, 6), *((n, 6) for n in range(2, 121))]


# Webhooks that fail


@pytest.mark.each_database
async def test_a_410_disables_the_webhook_at_once(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.endpoint.behaviour = saying(b"HTTP/1.1 410 Gone\r\n\r\n")
    await hook.add_pets()
    await hook.rename(1, "Rex")
    async with hook.delivering():
        await hook.saved(1)
        await eventually(lambda: caplog.messages)
    assert await deliveries(hook.store, "state, attempts") == [("failed", 1), ("pending", 0)]
    assert await hook.row("enabled, disabled_reason") == (0, "gone")
    event = plain(await hook.disabling())
    assert event["resource"] == "webhook/1"
    assert (event["data"]["enabled"], event["data"]["disabledReason"]) == (False, "gone")
    assert event["previous"] == {"enabled": True, "disabledReason": None}
    assert caplog.messages == [f"webhook 1 of key {hook.key.id} was disabled: gone"]
    assert logged_members(caplog)["error"] == "the receiver responded with 410 Gone, not 2xx"


async def test_a_410_loses_no_event_of_concurrent_attempts(hook: Hook) -> None:
    is_gone = asyncio.Event()

    async def refuse_the_first(request: Request, writer: Writer) -> None:
        if request.event["sequence"] == 1:
            writer.write(b"HTTP/1.1 410 Gone\r\n\r\n")
        else:
            await is_gone.wait()
            writer.write(OK)

    hook.endpoint.behaviour = refuse_the_first
    await hook.add_pets(2)
    async with hook.delivering():
        await hook.saved(1)
        is_gone.set()
        await hook.saved(2)
        hook.endpoint.behaviour = saying(OK)
        await hook.store.write(change_webhook(Change(0), 1, WebhookPatch(enabled=True)))
        await hook.store.write(recover(Change(0), 1, 0))
        hook.clock.advance(6)
        await hook.settled(4)
    # The third event tells that the webhook was disabled.
    assert sorted(hook.sent[2:]) == [(1, 6), (3, 6)]


async def test_missed_events_of_each_webhook_are_sent_in_order(hook: Hook) -> None:
    await add_webhook(hook.store, hook.key, url=hook.endpoint.url)
    await hook.happened("pet/1", "pet.updated", hook.key.id, 30)
    await hook.store.write(do("UPDATE webhooks SET position = 30"))
    for webhook_id in (1, 2):
        await hook.store.write(recover(Change(0), webhook_id, 0))
    async with hook.delivering():
        await hook.settled(60)
    for webhook_id in (1, 2):
        made = await deliveries(hook.store, f"sequence, webhook_id = {webhook_id}")
        assert [number for number, is_own in made if is_own] == [*range(1, 31)]
    assert await hook.row("recovered_to") == (None,)
    assert sorted(number for number, _ in hook.sent) == sorted([*range(1, 31)] * 2)


async def test_a_webhook_without_success_for_five_days_is_disabled(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    await hook.add_pets()
    async with hook.delivering():
        await hook.settled(1)
        hook.endpoint.behaviour = saying(NO)
        await hook.add_pets(9)
        await hook.saved(10)
        assert await hook.row("failures, failing_since") == (9, hook.clock.now)
        hook.clock.now += 5 * DAY
        await eventually(lambda: "was disabled" in caplog.text, 30)
    failures, *rest = await hook.row("failures, enabled, disabled_reason")
    assert failures >= 10
    assert rest == [0, "failing"]
    data = msgspec.json.decode((await hook.disabling()).data)
    assert (data["disabledReason"], data["lastSuccessAt"]) == ("failing", "2026-12-01T12:00:00Z")
    assert caplog.messages == [
        f"deliveries to webhook 1 of key {hook.key.id} fail",
        f"webhook 1 of key {hook.key.id} was disabled: failing",
    ]
    assert logged_members(caplog) == {
        "webhook": 1,
        "key": hook.key.id,
        "reason": "failing",
        "error": "the receiver responded with 500 Internal Server Error, not 2xx",
    }


async def test_a_webhook_that_is_deleted_during_an_attempt_is_not_updated(hook: Hook) -> None:
    may_respond = asyncio.Event()
    hook.endpoint.behaviour = once(may_respond)
    await hook.add_pets()
    async with hook.delivering(stop_seconds=30):
        await hook.attempted(1)
        await hook.store.write(do("DELETE FROM webhooks"))
        may_respond.set()
        await hook.settled(1)


# Many processes, and their ends


@pytest.mark.each_database
async def test_only_one_of_two_processes_delivers_and_another_resumes_at_once(
    address: str, hook: Hook
) -> None:
    async with open_store(address) as other:
        async with hook.delivering(), delivering(other, hook.clock):
            for count in (10, 20):
                await hook.add_pets(10)
                await hook.settled(count)
                hook.clock.advance(20)  # both want the lease
                await hook.looked()
        assert await hook.row("leased_by, leased_until") == (None, None)
        await hook.add_pets()
        async with delivering(other, hook.clock):
            await hook.settled(21)
    assert sorted(sequence for sequence, _ in hook.sent) == list(range(1, 22))


async def test_without_the_secret_nothing_is_sent_and_the_log_says_so_once(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    def missing(_: LeasedWebhook) -> list[bytes]:
        nonlocal asked
        asked += 1
        raise WebhooksNotConfigured("the secret file is missing")

    await hook.add_pets()
    async with hook.delivering(secrets_of=missing):
        await eventually(lambda: asked > 3, 30)
    assert hook.endpoint.connections == 0
    assert caplog.messages == ["deliveries to webhook 1 not started: the secret file is missing"]


async def test_outcomes_are_saved_once_the_database_is_back(
    database: Path, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    may_respond = asyncio.Event()
    hook.endpoint.behaviour = once(may_respond)
    await hook.add_pets()
    async with hook.delivering():
        await hook.attempted(1)
        with locked(database, hook.store):
            may_respond.set()
            await eventually(lambda: "outcomes of deliveries not saved yet" in caplog.text, 30)
        await hook.settled(1)
    assert len(hook.endpoint.requests) == 1


async def test_a_stop_does_not_wait_for_a_database_that_is_gone(
    database: Path, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    may_respond = asyncio.Event()
    hook.endpoint.behaviour = once(may_respond)
    await hook.add_pets()
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(hook.delivering())
        await hook.attempted(1)
        with locked(database, hook.store):
            may_respond.set()
            await eventually(lambda: "outcomes of deliveries not saved yet" in caplog.text, 30)
            await opened.aclose()
    assert "leases of webhooks not released" in caplog.text
    assert await deliveries(hook.store) == [(1, "pending", 0)]


async def test_a_dead_endpoint_among_200_does_not_delay_the_others(hook: Hook) -> None:
    async with receiving(silent) as dead:
        await add_webhook(hook.store, hook.key, url=dead.url)
        for number in range(3, 201):
            await add_webhook(hook.store, hook.key, url=f"{hook.endpoint.url}/{number}")
        async with delivering(hook.store, system_clock, seconds=300):
            await hook.add_pets(2)
            await eventually(lambda: dead.under_way == 2, 30)
            await hook.add_pets(2)
            await hook.attempted(4 * 199)
            # All others have their events, and not one attempt of the dead one has ended.
            await eventually(lambda: dead.under_way == 4)
            assert (dead.connections, dead.under_way) == (4, 4)
