"""Delivers the events of the feed to the webhooks that this process has leased."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.coalescing import Batcher
from petstore.databases.contract import Store
from petstore.events.model import Event
from petstore.events.store import newest_position, read_event
from petstore.keys.model import Environment
from petstore.logs import LogEvent
from petstore.periodic_tasks import PeriodicTask, attempt, background
from petstore.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    WebhookNotice,
    batches,
    due_deliveries,
    make_deliveries,
    recover_batch,
    save_progress,
)
from petstore.webhooks.model import (
    DeliveryState,
    is_success,
    next_attempt,
    paused_until,
    status_in_words,
)
from petstore.webhooks.sender import DeliveryFailed, Sender
from petstore.webhooks.signing import signed_headers
from petstore.webhooks.store import (
    LEASE,
    LeasedWebhook,
    active_webhooks,
    release_leases,
    take_leases,
)

Secrets: TypeAlias = Callable[[LeasedWebhook], list[bytes]]
"""Returns the secrets that sign a delivery to a webhook now, the newest first."""

NoteAttempt: TypeAlias = Callable[[DeliveryState, float], None]
"""Notes an attempt, which succeeded, is to be repeated (``pending``) or was the last, and how many
seconds it took."""

_RENEW_BEFORE: Milliseconds = 10 * SECOND
_MAX_UNDER_WAY = 8
_MAX_SAVED_AT_ONCE = 100
_SAVE_AGAIN_SECONDS = 1
_LOG = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode


@dataclass(eq=False)
class Deliverer:
    """It looks for changes to webhooks every ``refresh_seconds``. ``chance`` is from 0 to 1."""

    store: Store
    sender: Sender
    secrets_of: Secrets
    clock: Clock
    note_attempt: NoteAttempt
    environment: Environment
    poll_seconds: float = 0.05
    refresh_seconds: float = 0.5
    stop_seconds: float = 5
    chance: Callable[[], float] = lambda: secrets.randbelow(1001) / 1000

    def __post_init__(self) -> None:
        self.attempts: set[asyncio.Task[None]] = set()
        self._owner = secrets.token_hex(8)
        # What arrives during a write is in the next one: an outcome to save, or one to let wait.
        self._changes: Batcher[Outcome | DueDelivery, None] = Batcher(
            self._write, _MAX_SAVED_AT_ONCE
        )
        self._queues: dict[int, _Queue] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        poll, failure = self.poll_seconds, "webhooks not read"
        refresh = PeriodicTask(self._refresh, self.refresh_seconds, failure, at_start=True)
        follow = PeriodicTask(self._follow, poll, "no deliveries of new events made")
        recover = PeriodicTask(self._recover, poll, "nothing recovered for webhooks")
        try:
            async with background(refresh, follow, recover):
                yield
        finally:
            self._keep([])
            if self.attempts:
                _, unfinished = await asyncio.wait(self.attempts, timeout=self.stop_seconds)
                for task in unfinished:
                    task.cancel()
                await asyncio.gather(*unfinished, return_exceptions=True)
            self._changes.cancel()
            release = partial(self.store.write, release_leases(self._owner))
            await attempt(PeriodicTask(release, 0, "leases of webhooks not released"))

    async def save(self, *changes: Outcome | DueDelivery) -> None:
        """Return once the outcomes, and that some deliveries wait, are durable."""
        await asyncio.gather(*map(self._changes.call, changes))

    async def _refresh(self) -> None:
        now = self.clock()
        active = await active_webhooks(self.store, self.environment, now)
        own, ending = set(), []
        for webhook in active:
            until = webhook.leased_until or 0
            if webhook.leased_by == self._owner and now < until:
                own.add(webhook.id)
            renew_at = now + (_RENEW_BEFORE if webhook.id in own else 0)
            if not renew_at < until <= now + LEASE:
                ending.append(webhook)
        taken = set()
        if ending:
            taken = await self.store.write(take_leases(self._owner, ending, now))
        self._keep(
            webhook._replace(leased_until=now + LEASE) if webhook.id in taken else webhook
            for webhook in active
            if webhook.id in own | taken
        )

    def _keep(self, webhooks: Iterable[LeasedWebhook]) -> None:
        before, self._queues = self._queues, {}
        for webhook in webhooks:
            queue = before.get(webhook.id) or _Queue(self, webhook)
            queue.update(webhook)
            self._queues[webhook.id] = queue
        for webhook_id in before.keys() - self._queues.keys():
            before[webhook_id].close()

    async def _follow(self) -> None:
        queues = self._queues
        if not queues:
            return
        newest = (await newest_position(self.store)).sequence
        for webhooks, end in batches([queue.webhook for queue in queues.values()], newest):
            unit = make_deliveries(self._owner, webhooks, end, self.clock())
            for webhook_id, made in (await self.store.write(unit)).items():
                queue = queues[webhook_id]
                queue.webhook = queue.webhook._replace(position=end)
                if made:
                    queue.wake()

    async def _recover(self) -> None:
        """Make a batch of deliveries for the recovery that is farthest behind and has room."""
        queues = [each for each in self._queues.values() if each.webhook.recovered_to is not None]
        for queue in sorted(queues, key=lambda each: each.webhook.recovered_to or 0):
            before = queue.webhook
            recovered = await self.store.write(recover_batch(self._owner, before, self.clock()))
            if recovered.to != before.recovered_to:
                queue.webhook = queue.webhook._replace(recovered_to=recovered.to)
                if recovered.made:
                    queue.wake()
                return

    async def _write(self, changes: Sequence[Outcome | DueDelivery]) -> Sequence[None]:
        failure = "outcomes of deliveries not saved yet"
        write = PeriodicTask(partial(self._save, changes), _SAVE_AGAIN_SECONDS, failure)
        is_failing = False
        while not await attempt(write, quiet=is_failing):
            is_failing = True
            await asyncio.sleep(write.seconds)
        return [None] * len(changes)

    async def _save(self, changes: Sequence[Outcome | DueDelivery]) -> None:
        outcomes = [change for change in changes if isinstance(change, Outcome)]
        held = [change for change in changes if isinstance(change, DueDelivery)]
        for notice in await self.store.write(save_progress(outcomes, held, self.clock())):
            _log(notice)


class _Queue:
    """Attempts the deliveries of a leased webhook, a few at a time, until it is closed."""

    def __init__(self, deliverer: Deliverer, webhook: LeasedWebhook) -> None:
        self._deliverer = deliverer
        self._under_way: set[int] = set()
        self._wake = asyncio.Event()
        self._starting = asyncio.create_task(self._start_whenever_due())
        self.webhook = webhook

    def update(self, webhook: LeasedWebhook) -> None:
        # The row may have been read before its position was moved here.
        position = max(webhook.position, self.webhook.position)
        self.webhook = webhook._replace(position=position)
        if webhook.due_at is not None and webhook.due_at <= self._deliverer.clock():
            self.wake()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self._starting.cancel()

    @property
    def _room(self) -> int:
        now, webhook = self._deliverer.clock(), self.webhook
        may_begin = (webhook.paused_until or 0) <= now < (webhook.leased_until or 0)
        return _MAX_UNDER_WAY - len(self._under_way) if may_begin else 0

    async def _start_whenever_due(self) -> None:
        failure = f"deliveries to webhook {self.webhook.id} not started"
        start = PeriodicTask(self._start_due, 0, failure)
        is_failing = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            is_failing = not await attempt(start, quiet=is_failing)

    async def _start_due(self) -> None:
        deliverer = self._deliverer
        while self._room:
            deliverer.secrets_of(self.webhook)  # without them, nothing can be sent
            now = deliverer.clock()
            # One whose outcome is saved during the query may still be pending in its result.
            under_way = frozenset(self._under_way)
            due = await due_deliveries(deliverer.store, self.webhook.id, now)
            due = [delivery for delivery in due if delivery.id not in under_way]
            ready = [delivery for delivery in due if delivery.held_until <= now]
            for delivery in ready[: self._room]:
                self._under_way.add(delivery.id)
                task = asyncio.create_task(self._deliver(delivery))
                deliverer.attempts.add(task)
                task.add_done_callback(deliverer.attempts.discard)
            held = [delivery for delivery in due if delivery.held_until > now]
            if not held:
                return
            # Else they would stand in front of others the next time.
            await deliverer.save(*held)

    async def _deliver(self, delivery: DueDelivery) -> None:
        failure = f"delivery {delivery.id} not attempted"
        was_attempted = await attempt(PeriodicTask(lambda: self._attempt(delivery), 0, failure))
        self._under_way.discard(delivery.id)
        if was_attempted:
            self.wake()

    async def _attempt(self, delivery: DueDelivery) -> None:
        deliverer, webhook = self._deliverer, self.webhook
        event = await read_event(deliverer.store, delivery.sequence, delivery.event_id)
        at, started = deliverer.clock(), time.monotonic()
        given_up = partial(Outcome, delivery, "failed", None, at)
        if event is None:
            outcome = given_up(error="the event is no longer kept")
        elif event.type not in webhook.readable:
            outcome = given_up(error="the owner can no longer read this event")
        else:
            outcome = await self._send(delivery, event, at)
        deliverer.note_attempt(outcome.state, time.monotonic() - started)
        await deliverer.save(outcome)

    async def _send(self, delivery: DueDelivery, event: Event, at: Milliseconds) -> Outcome:
        deliverer, url, body = self._deliverer, self.webhook.url, _encode(event)
        headers = signed_headers(event.id, at // SECOND, body, deliverer.secrets_of(self.webhook))
        response, error = None, None
        try:
            response = await deliverer.sender.post(url, headers, body)
        except DeliveryFailed as failure:
            error = str(failure)
        else:
            if not is_success(response.status):
                status = status_in_words(response.status)
                error = f"the receiver responded with {status}, not 2xx"
        now = deliverer.clock()
        outcome = Outcome(delivery, "succeeded", at, now, error=error)
        if error is not None:
            is_gone = response is not None and response.status == HTTPStatus.GONE
            due_at = next_attempt(delivery.attempts + 1, now, deliverer.chance())
            if is_gone or due_at is None:
                outcome = outcome._replace(state="failed")
            else:
                outcome = outcome._replace(state="pending", due_at=due_at)
        if response is None:
            return outcome
        pause = paused_until(response.status, response.retry_after, now)
        if pause is not None:
            outcome = outcome._replace(due_at=max(outcome.due_at, pause), paused_until=pause)
            self.webhook = self.webhook._replace(paused_until=pause)
        return outcome._replace(status=response.status, body=response.body)


def _log(notice: WebhookNotice) -> None:
    webhook_id, key_id, reason, error = notice
    webhook = f"webhook {webhook_id} of key {key_id}"
    named = partial(LogEvent, webhook=webhook_id, key=key_id, error=error)
    if reason is None:
        _LOG.warning(named("webhook_failing", f"deliveries to {webhook} fail"))
    else:
        message = f"{webhook} was disabled: {reason}"
        _LOG.warning(named("webhook_disabled", message, reason=reason))
