"""Metrics of deliveries to webhooks."""

from collections.abc import Callable

from petstore.chores import PeriodicTask
from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Reader
from petstore.keys.model import Environment
from petstore.observability.metrics import (
    DELIVERIES,
    DELIVERY_SECONDS,
    OLDEST_DELIVERY,
    WEBHOOKS_DISABLED,
    observe,
)
from petstore.observability.registry import Registry
from petstore.webhooks.deliveries import Backlog, read_backlog
from petstore.webhooks.model import DeliveryState
from petstore.webhooks.store import active_webhooks

_OUTCOMES: dict[DeliveryState, str] = {
    "succeeded": "succeeded",
    "pending": "failed",
    "failed": "abandoned",
}
_BACKLOG_SECONDS = 2
_BACKLOG_LASTS: Milliseconds = 15 * SECOND


def report_attempts(registry: Registry) -> Callable[[DeliveryState, float], None]:
    counts = registry.samples(DELIVERIES)
    times = registry.samples(DELIVERY_SECONDS)[()]

    def note(state: DeliveryState, seconds: float) -> None:
        counts[_OUTCOMES[state],][0] += 1
        observe(times, DELIVERY_SECONDS, seconds)

    return note


def report_backlog(
    registry: Registry, store: Reader, environment: Environment, clock: Clock
) -> None:
    """Report what is left to deliver, as the database has it.

    Every process of the service does so: the one that delivers may be stuck or gone. If the
    database cannot be read any more, the age is the time since it was.
    """
    backlog, read_at = Backlog(None, 0), clock()

    async def read() -> None:
        nonlocal backlog, read_at
        now = clock()
        backlog = await read_backlog(store, await active_webhooks(store, environment, now))
        read_at = now

    def age() -> float:
        since = backlog.oldest
        if since is None and clock() - read_at > _BACKLOG_LASTS:
            since = read_at
        return 0 if since is None else max(0, clock() - since) / SECOND

    registry.report_shared(OLDEST_DELIVERY, age)
    registry.report_shared(WEBHOOKS_DISABLED, lambda: backlog.disabled)
    registry.chores.append(PeriodicTask(read, _BACKLOG_SECONDS, "deliveries not counted"))
