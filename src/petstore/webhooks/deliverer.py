"""Delivers the events of the feed to the webhooks that this process has leased."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from petstore.chores import PeriodicTask, attempt, background
from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Store
from petstore.events.store import newest_position, publish_all
from petstore.keys.model import Environment
from petstore.webhooks.deliveries import batches, has_room, make_deliveries, recover_batch
from petstore.webhooks.leases import (
    LEASE,
    LeasedWebhook,
    active_webhooks,
    release_leases,
    take_leases,
)
from petstore.webhooks.progress import OutcomeWriter
from petstore.webhooks.queue import Dependencies, NoteAttempt, Queue, Secrets
from petstore.webhooks.sender import Sender

_RENEW_BEFORE: Milliseconds = 10 * SECOND


class Rules(NamedTuple):
    """How a process delivers, and for the keys of which environment.

    It looks for new events every ``poll_seconds``, and for changes to webhooks every
    ``refresh_seconds``. If it ``publishes`` it gives places in the feed, too (PostgreSQL).
    Attempts in progress have ``stop_seconds`` to end at a stop.
    ``chance`` returns a random number from 0 to 1.
    """

    environment: Environment
    publishes: bool = False
    poll_seconds: float = 0.05
    refresh_seconds: float = 0.5
    stop_seconds: float = 5
    chance: Callable[[], float] = lambda: secrets.randbelow(1001) / 1000


class Deliverer:
    """Delivers events, beside other processes that do so on the same store."""

    def __init__(
        self,
        store: Store,
        sender: Sender,
        secrets_of: Secrets,
        clock: Clock,
        note_attempt: NoteAttempt,
        rules: Rules,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._owner = secrets.token_hex(8)
        self._progress = OutcomeWriter(store, clock)
        self._attempts: set[asyncio.Task[None]] = set()
        self._parts = Dependencies(
            store=store,
            sender=sender,
            secrets_of=secrets_of,
            clock=clock,
            progress=self._progress,
            chance=rules.chance,
            note_attempt=note_attempt,
            attempts=self._attempts,
        )
        self._queues: dict[int, Queue] = {}
        self._last_recovered = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver until the block ends.

        Attempts that have not ended some time later stay pending.
        """
        rules = self._rules
        refresh = PeriodicTask(
            self._refresh, rules.refresh_seconds, "webhooks not read", at_start=True
        )
        follow = PeriodicTask(self._follow, rules.poll_seconds, "no deliveries of new events made")
        recover = PeriodicTask(self._recover, rules.poll_seconds, "nothing recovered for webhooks")
        try:
            async with background(refresh, follow, recover):
                yield
        finally:
            self._keep([])
            if self._attempts:
                _, unfinished = await asyncio.wait(self._attempts, timeout=self._rules.stop_seconds)
                for task in unfinished:
                    task.cancel()
                await asyncio.gather(*unfinished, return_exceptions=True)
            self._progress.close()
            await attempt(PeriodicTask(self._release, 0, "leases of webhooks not released"))

    async def _refresh(self) -> None:
        """Read the webhooks, renew leases and take those that are free."""
        now = self._clock()
        active = await active_webhooks(self._store, self._rules.environment, now)
        own = {webhook.id for webhook in active if self._is_own(webhook, now)}
        ending = [
            webhook
            for webhook in active
            if not now + (_RENEW_BEFORE if webhook.id in own else 0)
            < (webhook.leased_until or 0)
            <= now + LEASE
        ]
        taken = set()
        if ending:
            taken = await self._store.write(take_leases(self._owner, ending, now))
        self._keep(
            webhook._replace(leased_until=now + LEASE) if webhook.id in taken else webhook
            for webhook in active
            if webhook.id in own | taken
        )

    def _is_own(self, webhook: LeasedWebhook, now: Milliseconds) -> bool:
        return webhook.leased_by == self._owner and now < (webhook.leased_until or 0)

    def _keep(self, webhooks: Iterable[LeasedWebhook]) -> None:
        """Deliver to these webhooks and no others."""
        before, self._queues = self._queues, {}
        for webhook in webhooks:
            queue = before.get(webhook.id) or Queue(self._parts, webhook)
            queue.update(webhook)
            self._queues[webhook.id] = queue
        for webhook_id in before.keys() - self._queues.keys():
            before[webhook_id].close()

    async def _follow(self) -> None:
        """Make deliveries of new events."""
        queues = self._queues
        if not queues:
            return
        if self._rules.publishes:
            await publish_all(self._store)
        newest = (await newest_position(self._store)).sequence
        for webhooks, end in batches([queue.webhook for queue in queues.values()], newest):
            unit = make_deliveries(self._owner, webhooks, end, self._clock())
            for webhook_id, made in (await self._store.write(unit)).items():
                queue = queues[webhook_id]
                queue.webhook = queue.webhook._replace(position=end)
                if made:
                    queue.wake()

    async def _recover(self) -> None:
        """Let the next recovery, in turn, make a batch of deliveries: no more at once."""
        last = self._last_recovered
        queues = [each for each in self._queues.values() if each.webhook.recovered_to is not None]
        for queue in sorted(queues, key=lambda each: (each.webhook.id <= last, each.webhook.id)):
            if await has_room(self._store, queue.webhook.id):
                self._last_recovered = queue.webhook.id
                unit = recover_batch(self._owner, queue.webhook, self._clock())
                recovered = await self._store.write(unit)
                queue.webhook = queue.webhook._replace(recovered_to=recovered.to)
                if recovered.made:
                    queue.wake()
                return

    async def _release(self) -> None:
        await self._store.write(release_leases(self._owner))
