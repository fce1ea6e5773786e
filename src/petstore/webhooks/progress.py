"""Saves how attempts went, many in one transaction."""

import asyncio
import logging
from collections.abc import Iterable
from typing import TypeAlias

from petstore.chores import Chore, attempt
from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.logs import Event
from petstore.store.deliveries import Delivery, Notice, Outcome, save_progress

_MAX_AT_ONCE = 100
_AGAIN_SECONDS = 1
_LOG = logging.getLogger(__name__)

_Saved: TypeAlias = asyncio.Future[None]


class Progress:
    """Writes one group after another: what arrives during a write is in the next one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._outcomes: list[tuple[Outcome, _Saved]] = []
        self._held: list[tuple[Delivery, _Saved]] = []
        self._writing: asyncio.Task[None] | None = None

    async def save(self, outcome: Outcome) -> None:
        """Return once ``outcome`` is durable, however long the database is unreachable."""
        saved: _Saved = asyncio.get_running_loop().create_future()
        self._outcomes.append((outcome, saved))
        self._start()
        await saved

    async def hold(self, deliveries: Iterable[Delivery]) -> None:
        """Let ``deliveries`` wait; return once it is durable."""
        saved: _Saved = asyncio.get_running_loop().create_future()
        self._held += [(delivery, saved) for delivery in deliveries]
        self._start()
        await saved

    def close(self) -> None:
        """Give up what could not be written."""
        if self._writing is not None:
            self._writing.cancel()

    def _start(self) -> None:
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        write = Chore(self._write, _AGAIN_SECONDS, "outcomes of deliveries not saved yet")
        is_failing = False
        while self._outcomes or self._held:
            is_failing = not await attempt(write, quiet=is_failing)
            await asyncio.sleep(write.seconds if is_failing else 0)
        self._writing = None

    async def _write(self) -> None:
        outcomes, held = self._outcomes[:_MAX_AT_ONCE], self._held[:_MAX_AT_ONCE]
        unit = save_progress(
            [outcome for outcome, _ in outcomes], [each for each, _ in held], self._clock()
        )
        for notice in await self._store.write(unit):
            _log(notice)
        del self._outcomes[: len(outcomes)], self._held[: len(held)]
        still_waiting = {saved for _, saved in self._held}
        for _, saved in (*outcomes, *held):
            if saved not in still_waiting and not saved.done():
                saved.set_result(None)


def _log(notice: Notice) -> None:
    webhook = f"webhook {notice.webhook_id} of key {notice.key_id}"
    members = {"webhook": notice.webhook_id, "key": notice.key_id}
    if notice.reason is None:
        _LOG.warning(Event("webhook_failing", f"deliveries to {webhook} fail", **members))
    else:
        message = f"{webhook} was disabled: {notice.reason}"
        _LOG.warning(Event("webhook_disabled", message, reason=notice.reason, **members))
