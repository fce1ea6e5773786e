"""Events that are sent to a webhook again: those of a window of time."""

from collections.abc import Callable
from typing import NamedTuple

from petstore.clock import SECOND, Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Statement, Unit, placeholder_list
from petstore.errors import DeliveriesPending, InvalidBody, ReplayTooLarge
from petstore.keys.model import Caller
from petstore.webhooks.model import MAX_REPLAY, Webhook, wanted_types
from petstore.webhooks.store import lock_enabled

# The times of events are those of several clocks, so not quite in the order of the feed.
_CLOCKS_DIFFER: Milliseconds = 10 * SECOND
_MAX_SEARCHED = 50_000


class TimeWindow(NamedTuple):
    """The events from ``since`` on, and before ``until``."""

    since: Milliseconds
    until: Milliseconds


def replay(
    webhook_id: int,
    window: TimeWindow,
    key: Caller,
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
    first, last = yield from _events_around(webhook_id, window)
    kinds = tuple(wanted_types(webhook.types, key.scopes))
    names = placeholder_list(8, kinds)
    rows = yield Statement(
        "INSERT INTO webhook_deliveries"  # noqa: S608 - only names
        " (webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at)"
        " SELECT CAST(?1 AS BIGINT), sequence, id, type, resource, 'pending',"
        " CAST(?2 AS BIGINT), 0, CAST(?2 AS BIGINT) FROM events"
        " WHERE sequence >= ?3 AND sequence <= ?4 AND at >= ?5 AND at < ?6"
        " AND (key_id IS NULL OR key_id = ?7)"
        f" AND type IN ({names}) AND sequence NOT IN (SELECT sequence FROM webhook_deliveries"
        " WHERE webhook_id = CAST(?1 AS BIGINT) AND state = 'pending')"
        " ORDER BY sequence RETURNING 1",
        (webhook_id, now, first, last, *window, key.id, *kinds),
        name="insert_replayed_deliveries",
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


def _events_around(webhook_id: int, window: TimeWindow) -> Unit[tuple[int, int]]:
    """Return the first and the last sequence of what may be in a window, to search there alone.

    What comes behind the position of the webhook will be sent anyway.
    """
    ((position,),) = yield Statement(
        "SELECT position FROM webhooks WHERE id = ?1", (webhook_id,), name="select_position"
    )
    oldest = yield Statement(
        "SELECT sequence, at FROM events WHERE sequence = (SELECT min(sequence) FROM events)",
        name="select_time_of_oldest_event",
    )
    start, at = oldest[0] if oldest else (1, window.since)
    if start > 1 and window.since < at:
        msg = f"since: expected {rfc3339_milliseconds(at)} or later, the time of the oldest event"
        raise InvalidBody(msg)
    first = yield from _first_since(window.since - _CLOCKS_DIFFER, start, position + 1)
    behind = yield from _first_since(window.until + _CLOCKS_DIFFER, first, position + 1)
    if behind - first <= _MAX_SEARCHED:
        ((count,),) = yield Statement(
            "SELECT count(*) FROM events WHERE sequence >= ?1 AND sequence < ?2"
            " AND at >= ?3 AND at < ?4",
            (first, behind, *window),
            name="count_events",
        )
        if count <= MAX_REPLAY:
            return first, behind - 1
    msg = (
        f"since, until: expected a window of up to {MAX_REPLAY} events, of whatever type;"
        " replay a longer one in parts"
    )
    raise ReplayTooLarge(msg)


def _first_since(moment: Milliseconds, low: int, high: int) -> Unit[int]:
    """Return the sequence of the first event since a moment, from ``low`` to ``high``.

    No index has the times of events: each change would pay for one.
    """
    while low < high:
        middle = (low + high) // 2
        rows = yield Statement(
            "SELECT at FROM events WHERE sequence >= ?1 ORDER BY sequence LIMIT 1",
            (middle,),
            name="select_time_of_event",
        )
        if rows and rows[0][0] < moment:
            low = middle + 1
        else:
            high = middle
    return low
