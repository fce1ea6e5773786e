"""A webhook of the demo store that leads nowhere, and how the service has disabled it."""

from collections.abc import Iterator
from operator import attrgetter

from petstore.clock import HOUR, Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.keys.model import Caller
from petstore.webhooks.deliveries import DueDelivery, Outcome, save_progress
from petstore.webhooks.model import WebhookCreate
from petstore.webhooks.schedule import next_attempt
from petstore.webhooks.store import create_webhook

_NEW = WebhookCreate(
    "https://webhooks.example.com/petstore",
    frozenset({"order.delivered"}),
    "Tells the accounts what was sold",
)
# Enough for the five days of failures after which a webhook is disabled.
_EVENTS = 20
_ERROR = "host not found (DNS): Name or service not known"
_NO_JITTER = 0.5


def record_failing_webhook(owner: Caller, now: Milliseconds) -> Unit[None]:
    """Create a webhook before the last sales, and let all deliveries of them fail until ``now``."""
    sales = (
        "FROM (SELECT * FROM events WHERE type = 'order.delivered' ORDER BY sequence DESC LIMIT ?1)"
        " AS sales"
    )
    ((oldest,),) = yield Statement(f"SELECT min(at) {sales}", (_EVENTS,), name="select_last_sales")
    webhook = (yield from create_webhook(_NEW, owner.id, oldest - HOUR)).webhook
    deliveries = yield Statement(
        "INSERT INTO webhook_deliveries"
        " (webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at)"
        " SELECT CAST(?2 AS BIGINT), sequence, id, type, resource, 'pending', at, 0, at"
        f" {sales} ORDER BY sequence RETURNING id, webhook_id, sequence, event_id, type, resource,"
        " attempts, created_at",
        (_EVENTS, webhook.id),
        name="insert_failing_deliveries",
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
