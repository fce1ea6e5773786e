"""Events that are sent to a webhook again: those of a window of time."""

from collections.abc import Callable
from typing import NamedTuple

from petstore.clock import Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Statement, Unit, placeholder_list
from petstore.errors import DeliveriesPending, InvalidBody, ReplayTooLarge
from petstore.keys.model import ApiKey
from petstore.webhooks.model import MAX_REPLAY, Webhook, wanted_types
from petstore.webhooks.store import lock_enabled

# What comes behind the position of the webhook will be sent anyway.
_IN_WINDOW = (
    "FROM events WHERE at >= ?1 AND at < ?2"
    " AND sequence <= (SELECT position FROM webhooks WHERE id = CAST(?3 AS BIGINT))"
)


class TimeWindow(NamedTuple):
    """The events from ``since`` on, and before ``until``."""

    since: Milliseconds
    until: Milliseconds


def replay(
    webhook_id: int,
    window: TimeWindow,
    key: ApiKey,
    now: Milliseconds,
    check: Callable[[Webhook], None],
) -> Unit[int]:
    """Send the events in a window again to a webhook that passes ``check``; return how many.

    They are those that it would get today, and that are not pending already.

    Raises:
        NotFound: the key has no webhook with this id.
        WebhookDisabled: it is disabled.
        DeliveriesPending: too many deliveries are still to come.
        InvalidBody: the window begins before the oldest event that is kept.
        ReplayTooLarge: there are too many events in the window, of whatever type.
    """
    webhook = yield from lock_enabled(webhook_id, key.id, check)
    yield from _require_few_pending(webhook_id)
    yield from _require_kept(window.since)
    yield from _require_few_events(webhook_id, window)
    kinds = tuple(wanted_types(webhook.types, key.scopes))
    names = placeholder_list(6, kinds)
    rows = yield Statement(
        "INSERT INTO webhook_deliveries"  # noqa: S608 - only names
        " (webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at)"
        " SELECT CAST(?3 AS BIGINT), sequence, id, type, resource, 'pending',"
        " CAST(?4 AS BIGINT), 0, CAST(?4 AS BIGINT)"
        f" {_IN_WINDOW} AND type IN ({names})"
        " AND (key_id IS NULL OR key_id = ?5) AND sequence NOT IN (SELECT sequence"
        " FROM webhook_deliveries WHERE webhook_id = CAST(?3 AS BIGINT) AND state = 'pending')"
        " ORDER BY sequence RETURNING 1",
        (*window, webhook_id, now, key.id, *kinds),
        name="insert_replayed_deliveries",
        affects_pages=False,
    )
    return len(rows)


def _require_few_pending(webhook_id: int) -> Unit[None]:
    last = yield Statement(
        "SELECT id FROM webhook_deliveries WHERE webhook_id = ?1 AND state = 'pending'"
        " ORDER BY id LIMIT 1 OFFSET ?2",
        (webhook_id, MAX_REPLAY - 1),
        name="select_last_pending_delivery",
    )
    if last:
        msg = f"{MAX_REPLAY} deliveries or more are pending; wait until there are fewer"
        raise DeliveriesPending(msg)


def _require_kept(since: Milliseconds) -> Unit[None]:
    oldest = yield Statement(
        "SELECT sequence, at FROM events WHERE sequence = (SELECT min(sequence) FROM events)",
        name="select_time_of_oldest_event",
    )
    start, at = oldest[0] if oldest else (1, since)
    if start > 1 and since < at:
        msg = f"since: expected {rfc3339_milliseconds(at)} or later, the time of the oldest event"
        raise InvalidBody(msg)


def _require_few_events(webhook_id: int, window: TimeWindow) -> Unit[None]:
    following = yield Statement(
        f"SELECT 1 {_IN_WINDOW} ORDER BY at LIMIT 1 OFFSET ?4",
        (*window, webhook_id, MAX_REPLAY),
        name="select_event_beyond_replay",
    )
    if following:
        msg = (
            f"since, until: expected a window of up to {MAX_REPLAY} events, of whatever type;"
            " replay a longer one in parts"
        )
        raise ReplayTooLarge(msg)
