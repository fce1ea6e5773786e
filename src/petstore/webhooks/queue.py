"""The deliveries of one webhook: attempted when they are due, a few at a time."""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from petstore.chores import PeriodicTask, attempt
from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Store
from petstore.events.store import read_event
from petstore.webhooks.deliveries import DueDelivery, Outcome, due_deliveries
from petstore.webhooks.leases import LeasedWebhook
from petstore.webhooks.model import DeliveryState
from petstore.webhooks.progress import OutcomeWriter
from petstore.webhooks.schedule import (
    GONE,
    is_success,
    next_attempt,
    paused_until,
)
from petstore.webhooks.sender import DeliveryFailed, EndpointResponse, Sender
from petstore.webhooks.signatures import signed_headers

Secrets: TypeAlias = Callable[[LeasedWebhook], list[bytes]]
"""Returns the secrets that sign a delivery to a webhook now, the newest first."""

NoteAttempt: TypeAlias = Callable[[DeliveryState, float], None]
"""Notes an attempt, which succeeded, is to be repeated (``pending``) or was the last, and how many
seconds it took."""

_MAX_UNDER_WAY = 8

_encode = msgspec.json.Encoder().encode


class Dependencies(NamedTuple):
    """What all queues of a process share. ``chance`` returns a random number from 0 to 1."""

    store: Store
    sender: Sender
    secrets_of: Secrets
    clock: Clock
    progress: OutcomeWriter
    chance: Callable[[], float]
    note_attempt: NoteAttempt
    attempts: set[asyncio.Task[None]]


class Queue:
    """Attempts the deliveries of a leased webhook until it is closed."""

    def __init__(self, parts: Dependencies, webhook: LeasedWebhook) -> None:
        self._parts = parts
        self._under_way: set[int] = set()
        self._wake = asyncio.Event()
        self._starting = asyncio.create_task(self._start_whenever_due())
        self.webhook = webhook

    def update(self, webhook: LeasedWebhook) -> None:
        """Take up changes to the webhook, and attempt what has become due."""
        # The row may have been read before its position was moved here.
        position = max(webhook.position, self.webhook.position)
        self.webhook = webhook._replace(position=position)
        if webhook.due_at is not None and webhook.due_at <= self._parts.clock():
            self.wake()

    def wake(self) -> None:
        """Look for deliveries that are due."""
        self._wake.set()

    def close(self) -> None:
        """Begin no more attempts."""
        self._starting.cancel()

    @property
    def _room(self) -> int:
        """How many attempts may begin."""
        now, webhook = self._parts.clock(), self.webhook
        may_begin = (webhook.paused_until or 0) <= now < (webhook.leased_until or 0)
        return _MAX_UNDER_WAY - len(self._under_way) if may_begin else 0

    async def _start_whenever_due(self) -> None:
        failure = f"deliveries to webhook {self.webhook.id} not started"
        is_failing = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            is_failing = not await attempt(
                PeriodicTask(self._start_due, 0, failure), quiet=is_failing
            )

    async def _start_due(self) -> None:
        while self._room:
            self._parts.secrets_of(self.webhook)  # without them, nothing can be sent
            now = self._parts.clock()
            # One whose outcome is saved during the query may still be pending in its result.
            under_way = frozenset(self._under_way)
            due = await due_deliveries(self._parts.store, self.webhook.id, now)
            due = [delivery for delivery in due if delivery.id not in under_way]
            ready = [delivery for delivery in due if delivery.held_until <= now]
            for delivery in ready[: self._room]:
                self._under_way.add(delivery.id)
                task = asyncio.create_task(self._deliver(delivery))
                self._parts.attempts.add(task)
                task.add_done_callback(self._parts.attempts.discard)
            held = [delivery for delivery in due if delivery.held_until > now]
            if not held:
                return
            # Else they would stand in front of others the next time.
            await self._parts.progress.hold(held)

    async def _deliver(self, delivery: DueDelivery) -> None:
        failure = f"delivery {delivery.id} not attempted"
        was_attempted = await attempt(PeriodicTask(lambda: self._attempt(delivery), 0, failure))
        self._under_way.discard(delivery.id)
        if was_attempted:
            self.wake()

    async def _attempt(self, delivery: DueDelivery) -> None:
        """Attempt a delivery and save the outcome.

        Raises:
            Unavailable: its event cannot be read now.
        """
        parts, webhook = self._parts, self.webhook
        event = await read_event(parts.store, delivery.sequence, delivery.event_id)
        at, started = parts.clock(), time.monotonic()
        if event is None:
            outcome = _given_up(delivery, at, "the event is no longer kept")
        elif event.type not in webhook.readable:
            outcome = _given_up(delivery, at, "the key may no longer read the event")
        else:
            body = _encode(event)
            secrets = parts.secrets_of(webhook)
            headers = signed_headers(event.id, at // SECOND, body, secrets)
            try:
                response = await parts.sender.post(webhook.url, headers, body)
            except DeliveryFailed as error:
                outcome = self._failed(delivery, at, str(error))
            else:
                outcome = self._responded(delivery, at, response)
        parts.note_attempt(outcome.state, time.monotonic() - started)
        await parts.progress.save(outcome)

    def _responded(
        self, delivery: DueDelivery, at: Milliseconds, response: EndpointResponse
    ) -> Outcome:
        now, status = self._parts.clock(), response.status
        if is_success(status):
            outcome = Outcome(delivery, "succeeded", at, now)
        else:
            error = f"expected a status of 2xx, not {status}"
            outcome = self._failed(delivery, at, error, is_last=status == GONE)
        pause = paused_until(status, response.retry_after, now)
        if pause is not None:
            outcome = outcome._replace(due_at=max(outcome.due_at, pause), paused_until=pause)
            self.webhook = self.webhook._replace(paused_until=pause)
        return outcome._replace(status=status, body=response.body)

    def _failed(
        self, delivery: DueDelivery, at: Milliseconds, error: str, *, is_last: bool = False
    ) -> Outcome:
        now = self._parts.clock()
        due_at = next_attempt(delivery.attempts + 1, now, self._parts.chance())
        if is_last or due_at is None:
            return Outcome(delivery, "failed", at, now, error=error)
        return Outcome(delivery, "pending", at, due_at, error=error)


def _given_up(delivery: DueDelivery, now: Milliseconds, error: str) -> Outcome:
    return Outcome(delivery, "failed", None, now, error=error)
