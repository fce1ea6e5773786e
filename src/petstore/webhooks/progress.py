"""Saves how attempts went, many in one transaction."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

from petstore.chores import PeriodicTask, attempt
from petstore.clock import Clock
from petstore.coalescing import Batches
from petstore.databases.contract import Store
from petstore.logs import LogEvent
from petstore.webhooks.deliveries import DueDelivery, Outcome, WebhookNotice, save_progress

_MAX_AT_ONCE = 100
_AGAIN_SECONDS = 1
_LOG = logging.getLogger(__name__)

_Change: TypeAlias = Outcome | DueDelivery
"""An outcome to save, or a delivery to let wait."""


class OutcomeWriter:
    """Writes one group after another: what arrives during a write is in the next one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._changes: Batches[_Change, None] = Batches(self._write, _MAX_AT_ONCE)

    async def save(self, outcome: Outcome) -> None:
        """Return once ``outcome`` is durable, however long the database is unreachable."""
        await self._changes.call(outcome)

    async def hold(self, deliveries: Iterable[DueDelivery]) -> None:
        """Let ``deliveries`` wait; return once it is durable."""
        await asyncio.gather(*map(self._changes.call, deliveries))

    def close(self) -> None:
        """Give up what could not be written."""
        self._changes.cancel()

    async def _write(self, changes: Sequence[_Change]) -> Sequence[None]:
        failure = "outcomes of deliveries not saved yet"
        write = PeriodicTask(partial(self._save, changes), _AGAIN_SECONDS, failure)
        is_saved, tries = False, 0
        while not is_saved:
            is_saved = await attempt(write, quiet=tries > 0)
            tries += 1
            await asyncio.sleep(0 if is_saved else write.seconds)
        return [None] * len(changes)

    async def _save(self, changes: Sequence[_Change]) -> None:
        outcomes = [change for change in changes if isinstance(change, Outcome)]
        held = [change for change in changes if isinstance(change, DueDelivery)]
        for notice in await self._store.write(save_progress(outcomes, held, self._clock())):
            _log(notice)


def _log(notice: WebhookNotice) -> None:
    webhook = f"webhook {notice.webhook_id} of key {notice.key_id}"
    members: dict[str, int | str] = {
        "webhook": notice.webhook_id,
        "key": notice.key_id,
        "error": notice.error,
    }
    if notice.reason is None:
        _LOG.warning(LogEvent("webhook_failing", f"deliveries to {webhook} fail", **members))
    else:
        message = f"{webhook} was disabled: {notice.reason}"
        _LOG.warning(LogEvent("webhook_disabled", message, reason=notice.reason, **members))
