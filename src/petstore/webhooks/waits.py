"""What a pending delivery waits for, and how its next attempt is made at once."""

from typing import NamedTuple

from petstore.clock import Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Reader, Statement, Unit
from petstore.databases.pages import found
from petstore.errors import AlreadyPending
from petstore.webhooks.deliveries import DELIVERY_COLUMNS, TEST, delivery_of, pending_beside
from petstore.webhooks.model import Delivery
from petstore.webhooks.schedule import HOLD


class Wait(NamedTuple):
    """Until when a pending delivery cannot be sent, and which earlier one (``holder``) has to end.

    Without a ``holder``, the endpoint asked to wait.
    """

    until: Milliseconds
    holder: int | None = None


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
    before = pending_beside("e.id", "d.webhook_id", "d.resource", "d.id", before=True)
    return Statement(
        "SELECT w.paused_until, h.id, h.first_attempt_at FROM webhook_deliveries d"  # noqa: S608
        " JOIN webhooks w ON w.id = d.webhook_id"
        f" LEFT JOIN webhook_deliveries h ON d.type <> ?3 AND h.id = ({before})"
        " WHERE d.id = ?1 AND d.webhook_id = ?2",
        (delivery_id, webhook_id, TEST),
        name="select_wait",
    )


def _wait_of(row: tuple[int | None, int | None, int | None], now: Milliseconds) -> Wait | None:
    paused_until, holder, first_attempt_at = row
    held_until = (now if first_attempt_at is None else first_attempt_at) + HOLD
    if holder is not None and held_until > now:
        return Wait(held_until, holder)
    if paused_until is not None and paused_until > now:
        return Wait(paused_until)
    return None
