"""What pending deliveries wait for, and how the next attempt at one is made at once."""

from operator import itemgetter
from typing import NamedTuple

from petstore.clock import Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.databases.pages import found
from petstore.errors import AlreadyPending
from petstore.webhooks.deliveries import DELIVERY_COLUMNS, delivery_of, holder_of
from petstore.webhooks.model import Delivery
from petstore.webhooks.schedule import HOLD

_MAX_COUNTED = 100


class Waiting(NamedTuple):
    """How many deliveries of a webhook are pending, and how many of these have failed before.

    If there ``is_more``, they are the oldest 100. The last attempt that failed had this
    ``response_status`` and ``error``.
    """

    pending: int
    failing: int
    is_more: bool
    response_status: int | None
    error: str | None


class Wait(NamedTuple):
    """Until when a pending delivery cannot be sent, and which earlier one (``holder``) has to end.

    Without a ``holder``, the endpoint asked to wait.
    """

    until: Milliseconds
    holder: int | None = None


async def read_waiting(store: Reader, webhook_id: int) -> Waiting:
    """Return how many deliveries of a webhook wait, in a bounded read along an index."""
    rows = await store.read(
        Statement(
            "SELECT last_attempt_at, response_status, error FROM webhook_deliveries WHERE"
            " /*sqlite*/ webhook_id = ?1 /*end*/ /*pg webhook_id >= ?1 AND webhook_id <= ?1 */"
            " AND state = 'pending' ORDER BY /*pg webhook_id, */ id LIMIT ?2",
            (webhook_id, _MAX_COUNTED + 1),
            name="select_waiting_deliveries",
        )
    )
    oldest = rows[:_MAX_COUNTED]
    failed = [row for row in oldest if row[0] is not None]
    _, status, error = max(failed, key=itemgetter(0), default=(None, None, None))
    return Waiting(len(oldest), len(failed), len(rows) > len(oldest), status, error)


async def read_wait(
    store: Reader, webhook_id: int, delivery_id: int, now: Milliseconds
) -> Wait | None:
    """Return why a pending delivery cannot be sent now, or ``None`` if it can.

    Raises:
        NotFound: the webhook has no such delivery.
    """
    rows = await store.read(_select_wait(webhook_id, delivery_id))
    return _wait_of(found(rows, tuple, "delivery", delivery_id), now)


def send_now(webhook_id: int, delivery_id: int, now: Milliseconds) -> Unit[Delivery]:
    """Make the next attempt at a pending delivery at once; return the delivery.

    Its webhook is enabled and locked.

    Raises:
        AlreadyPending: it is being sent, or has to wait.
    """
    rows = yield _select_wait(webhook_id, delivery_id)
    wait = _wait_of(rows[0], now)
    if wait is not None:
        reason = (
            f"until {rfc3339_milliseconds(wait.until)}, as its receiver asked with Retry-After"
            if wait.holder is None
            else f"for delivery {wait.holder}, an earlier one of its resource; send that one first"
        )
        msg = f"delivery {delivery_id} waits {reason}"
        raise AlreadyPending(msg)
    hastened = yield Statement(
        "UPDATE webhook_deliveries SET due_at = ?1 WHERE id = ?2 AND due_at > ?1"  # noqa: S608
        f" RETURNING {DELIVERY_COLUMNS}",
        (now, delivery_id),
        name="hasten_delivery",
    )
    if not hastened:
        msg = f"delivery {delivery_id} is pending, and is being sent now"
        raise AlreadyPending(msg)
    return delivery_of(hastened[0])


def _select_wait(webhook_id: int, delivery_id: int) -> Statement:
    return Statement(
        "SELECT w.paused_until, h.id, h.first_attempt_at FROM webhook_deliveries d"  # noqa: S608
        " JOIN webhooks w ON w.id = d.webhook_id"
        f" LEFT JOIN webhook_deliveries h ON h.id = ({holder_of('e.id')})"
        " WHERE d.id = ?1 AND d.webhook_id = ?2",
        (delivery_id, webhook_id),
        name="select_wait",
    )


def _wait_of(row: Row, now: Milliseconds) -> Wait | None:
    paused_until, holder, first_attempt_at = row
    held_until = (now if first_attempt_at is None else first_attempt_at) + HOLD
    if holder is not None and held_until > now:
        return Wait(held_until, holder)
    if paused_until is not None and paused_until > now:
        return Wait(paused_until)
    return None
