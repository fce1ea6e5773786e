"""A webhook of the demo store that leads nowhere, and how the service has disabled it."""

from collections.abc import Iterator
from operator import attrgetter

from petstore.clock import HOUR, Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.keys.model import Caller
from petstore.keys.store import unconditional
from petstore.webhooks.deliveries import DueDelivery, Outcome, save_progress
from petstore.webhooks.model import WebhookCreate
from petstore.webhooks.replays import Selection, replay
from petstore.webhooks.schedule import next_attempt
from petstore.webhooks.store import create_webhook

_NEW = WebhookCreate(
    "https://webhooks.example.com/petstore",
    frozenset({"order.delivered"}),
    "Tells the accounts what was sold",
)
# Enough for the five days of failures after which a webhook is disabled.
_EVENTS = 20
_ERROR = "Name or service not known"
_NO_JITTER = 0.5


def record_failing_webhook(owner: Caller, now: Milliseconds) -> Unit[None]:
    """Create a webhook before the last sales, and let all deliveries of them fail until ``now``."""
    rows = yield Statement(
        "SELECT at FROM events WHERE type = 'order.delivered' ORDER BY sequence DESC LIMIT ?1",
        (_EVENTS,),
        name="select_last_sales",
    )
    times = [at for (at,) in reversed(rows)]
    webhook = (yield from create_webhook(_NEW, owner.id, times[0] - HOUR)).webhook
    for at in times:
        yield from replay(webhook.id, Selection(at, at + 1), owner, at, unconditional)
    deliveries = yield Statement(
        "SELECT id, webhook_id, sequence, event_id, type, resource, attempts, created_at"
        " FROM webhook_deliveries WHERE webhook_id = ?1 ORDER BY id",
        (webhook.id,),
        name="select_failing_deliveries",
    )
    outcomes = [
        outcome
        for *delivery, created_at in deliveries
        for outcome in _attempts(DueDelivery._make((*delivery, 0)), created_at, now)
    ]
    yield from save_progress(sorted(outcomes, key=attrgetter("at")), [], now)


def _attempts(delivery: DueDelivery, at: Milliseconds, now: Milliseconds) -> Iterator[Outcome]:
    """Yield how all attempts until ``now`` failed, the first one ``at`` a moment."""
    due_at: Milliseconds | None = at
    while due_at is not None and due_at <= now:
        at, due_at = due_at, next_attempt(delivery.attempts + 1, due_at, _NO_JITTER)
        if due_at is None:
            yield Outcome(delivery, "failed", at, at, error=_ERROR)
        else:
            yield Outcome(delivery, "pending", at, due_at, error=_ERROR)
        delivery = delivery._replace(attempts=delivery.attempts + 1)
