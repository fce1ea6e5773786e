"""Deliveries of events to webhooks: which there are, which are due, and how they went."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from http import HTTPStatus
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from petstore.clock import SECOND, Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit, found, placeholder_list
from petstore.databases.pages import Page, read_page
from petstore.errors import EventNotKept
from petstore.events.model import EventType, NewEvent, readable_by
from petstore.events.store import Change, record
from petstore.webhooks.model import (
    HOLD,
    NOTICED_FAILURES,
    Delivery,
    DeliveryState,
    DisabledReason,
    Webhook,
    WebhookHealth,
)
from petstore.webhooks.store import COLUMNS, LeasedWebhook, lock_enabled, webhook_of

DELIVERY_COLUMNS = (
    "id, event_id, type, resource, state, attempts, created_at, last_attempt_at, due_at,"
    " response_status, response_body, error"
)
_INSERT = (
    "INSERT INTO webhook_deliveries"
    " (webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at)"
    " SELECT CAST(?1 AS BIGINT), e.sequence, e.id, e.type, e.resource, 'pending',"
    " CAST(?2 AS BIGINT), 0, CAST(?2 AS BIGINT) FROM events e"
)
# A recovery waits while a webhook has so many pending deliveries.
_MAX_PENDING = 1000
_CLOCKS_DIFFER: Milliseconds = 10 * SECOND
_SEARCHED_AT_ONCE = 500
_MADE_AT_ONCE = 1000
_WEBHOOKS_AT_ONCE = 100
_READ_AT_ONCE = 100
_TEST: EventType = "webhook.test"


class DueDelivery(NamedTuple):
    """A pending delivery. Until ``held_until`` it waits for another one of its resource."""

    id: int
    webhook_id: int
    sequence: int
    event_id: str
    type: str
    resource: str
    attempts: int
    held_until: Milliseconds


class Outcome(NamedTuple):
    """Without an attempt (``at`` is ``None``) it could not even be sent."""

    delivery: DueDelivery
    state: DeliveryState
    at: Milliseconds | None
    due_at: Milliseconds
    status: int | None = None
    body: str | None = None
    error: str | None = None
    paused_until: Milliseconds | None = None


class WebhookNotice(NamedTuple):
    webhook_id: int
    key_id: int
    reason: DisabledReason | None
    error: str


class Recovered(NamedTuple):
    """The position of a recovery, ``None`` at its end, and how many deliveries it has made."""

    to: int | None
    made: int


class Backlog(NamedTuple):
    """Since when the oldest event waits to be delivered, and how many webhooks are disabled."""

    oldest: Milliseconds | None
    disabled: int


async def list_deliveries(
    store: Reader, webhook_id: int, state: DeliveryState | UnsetType, before: int | None, limit: int
) -> Page[Delivery]:
    """With a ``state`` it searches a bounded part: a page may be short although more follow."""
    select = f"SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries"  # noqa: S608 - only names
    searched = await read_page(
        *(store, "select_deliveries", select, {"webhook_id": webhook_id}, before),
        *(limit if state is UNSET else max(limit, _SEARCHED_AT_ONCE), delivery_of),
        newest_first=True,
    )
    matching = [each for each in searched.items if state in (UNSET, each.state)]
    if len(matching) > limit:
        return Page(matching[:limit], matching[limit - 1].id)
    return Page(matching, searched.next_after)


def retry(change: Change, webhook_id: int, delivery_id: int) -> Unit[Delivery]:
    """Return the pending delivery of this event, which becomes due now, or else a new one."""
    yield from lock_enabled(change, webhook_id)
    rows = yield Statement(
        "SELECT sequence, event_id FROM webhook_deliveries WHERE id = ?1 AND webhook_id = ?2",
        (delivery_id, webhook_id),
        name="select_delivery_to_retry",
    )
    sequence, event_id = found(rows, tuple, "delivery", delivery_id)
    pending = yield Statement(
        "UPDATE webhook_deliveries SET due_at = CASE WHEN due_at > ?3 THEN ?3 ELSE due_at END"  # noqa: S608 - only names
        " WHERE webhook_id = ?1 AND sequence = ?2 AND state || '' = 'pending'"
        f" RETURNING {DELIVERY_COLUMNS}",
        (webhook_id, sequence, change.now),
        name="hasten_delivery",
    )
    made = pending or (
        yield Statement(
            f"{_INSERT} WHERE e.sequence = ?3 AND e.id = ?4 RETURNING {DELIVERY_COLUMNS}",
            (webhook_id, change.now, sequence, event_id),
            name="insert_retried_delivery",
        )
    )
    if not made:
        raise EventNotKept(f"the event of delivery {delivery_id} is no longer kept")
    return delivery_of(made[0])


def recover(change: Change, webhook_id: int, since: Milliseconds) -> Unit[Webhook]:
    """The process that delivers to the webhook does the rest (``recover_batch``)."""
    webhook = yield from lock_enabled(change, webhook_id)
    before = (yield from _first_since(since)) - 1
    yield Statement(
        "UPDATE webhooks SET recovered_to = ?2"
        " WHERE id = ?1 AND (recovered_to IS NULL OR recovered_to > ?2)",
        (webhook_id, before),
        name="recover_webhook",
    )
    return webhook


def _first_since(moment: Milliseconds) -> Unit[int]:
    """No index has the times of events, which are of several clocks: not quite in order."""
    ((first,),) = yield Statement("SELECT min(sequence) FROM events", name="select_oldest_event")
    ((last,),) = yield Statement("SELECT max(sequence) FROM events", name="select_newest_event")
    low, end = first or 1, (last or 0) + 1
    high = end
    while low < high:
        middle = (low + high) // 2
        rows = yield Statement(
            "SELECT at FROM events WHERE sequence >= ?1 ORDER BY sequence LIMIT 1",
            (middle,),
            name="select_time_of_event",
        )
        if rows[0][0] < moment - _CLOCKS_DIFFER:
            low = middle + 1
        else:
            high = middle
    rows = yield Statement(
        "SELECT sequence FROM events WHERE sequence >= ?1 AND at >= ?2 ORDER BY sequence LIMIT 1",
        (low, moment),
        name="select_first_event_since",
    )
    return rows[0][0] if rows else end


def recover_batch(owner: str, webhook: LeasedWebhook, now: Milliseconds) -> Unit[Recovered]:
    """It stays where it is while too many deliveries are pending."""
    before = webhook.recovered_to or 0
    pending = yield Statement(
        "SELECT id FROM webhook_deliveries WHERE"
        " /*sqlite*/ webhook_id = ?1 /*end*/ /*pg webhook_id >= ?1 AND webhook_id <= ?1 */"
        " AND state = 'pending' ORDER BY /*pg webhook_id, */ id LIMIT 1 OFFSET ?2",
        (webhook.id, _MAX_PENDING - 1),
        name="select_last_pending_delivery",
    )
    if pending:
        return Recovered(before, 0)
    end = min(before + _MADE_AT_ONCE, webhook.position)
    moved = yield Statement(
        "UPDATE webhooks SET recovered_to = CASE WHEN position > ?1 THEN CAST(?1 AS BIGINT) END"
        " WHERE id = ?2 AND recovered_to = ?3 AND leased_by = ?4 AND enabled = 1"
        " RETURNING recovered_to",
        (end, webhook.id, before, owner),
        name="move_recovery",
    )
    if not moved:
        return Recovered(before, 0)
    wanted = webhook.wanted
    made = yield Statement(
        f"{_INSERT} WHERE e.sequence > ?3 AND e.sequence <= ?4"  # noqa: S608 - only parameters
        f" AND {readable_by('?5', '?1', 'e.')} AND e.type IN ({placeholder_list(6, wanted)})"
        # With an OFFSET it stays a search for each event, whatever the statistics say.
        " AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = ?1"
        " AND d.sequence = e.sequence AND d.event_id = e.id AND d.state || '' <> 'failed'"
        " LIMIT 1 OFFSET 0) ORDER BY e.sequence RETURNING id",
        (webhook.id, now, before, end, webhook.key_id, *wanted),
        name="insert_recovered_deliveries",
    )
    return Recovered(moved[0][0], len(made))


async def due_deliveries(store: Reader, webhook_id: int, now: Milliseconds) -> list[DueDelivery]:
    """Return the first deliveries of a webhook that are due, also those that have to wait."""
    held = _pending_beside(
        "coalesce(e.first_attempt_at, ?2) + ?3", "d.webhook_id", "d.resource", "d.id", before=True
    )
    rows = await store.read(
        Statement(
            "SELECT d.id, d.webhook_id, d.sequence, d.event_id, d.type, d.resource, d.attempts,"  # noqa: S608
            # A test waits for none: it shows how the endpoint responds now.
            f" CASE WHEN d.type <> '{_TEST}' THEN ({held}) END FROM webhook_deliveries d"
            " WHERE d.webhook_id = ?1 AND d.state = 'pending' AND d.due_at <= ?2"
            " AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = ?1 AND w.enabled = 1)"
            " ORDER BY d.due_at, d.id LIMIT ?4",
            (webhook_id, now, HOLD, _READ_AT_ONCE),
            name="select_due_deliveries",
        )
    )
    return [DueDelivery._make((*row[:-1], row[-1] or 0)) for row in rows]


async def read_backlog(store: Reader, webhooks: Iterable[LeasedWebhook]) -> Backlog:
    """An event counts even without a delivery: perhaps no process makes one."""
    ids = [webhook.id for webhook in webhooks]
    listed = placeholder_list(1, ids)
    ((delivery, event, disabled),) = await store.read(
        Statement(
            "SELECT (SELECT min(d.created_at) FROM webhooks w JOIN webhook_deliveries d ON"  # noqa: S608
            " d.id = (SELECT e.id FROM webhook_deliveries e WHERE"
            " /*sqlite*/ e.webhook_id = w.id /*end*/"
            " /*pg e.webhook_id >= w.id AND e.webhook_id <= w.id */"
            " AND e.state = 'pending' ORDER BY /*pg e.webhook_id, */ e.id LIMIT 1)"
            f" WHERE w.id IN ({listed})),"
            " (SELECT min(e.at) FROM webhooks w JOIN events e ON e.sequence ="
            " (SELECT n.sequence FROM events n WHERE n.sequence > w.position"
            " ORDER BY n.sequence LIMIT 1)"
            f" WHERE w.id IN ({listed})),"
            " (SELECT count(*) FROM webhooks WHERE enabled = 0 AND disabled_reason IS NOT NULL)",
            ids,
            name="select_backlog",
        )
    )
    times = [at for at in (delivery, event) if at is not None]
    return Backlog(min(times, default=None), disabled)


def batches(
    webhooks: Collection[LeasedWebhook], newest: int
) -> Iterable[tuple[list[LeasedWebhook], int]]:
    """A transaction that makes many deliveries would keep others from writing."""
    behind = sorted(
        (webhook for webhook in webhooks if webhook.position < newest), key=attrgetter("position")
    )
    for position, group in groupby(behind, attrgetter("position")):
        end = min(newest, position + _MADE_AT_ONCE)
        size = min(_WEBHOOKS_AT_ONCE, _MADE_AT_ONCE // (end - position))
        waiting = list(group)
        for first in range(0, len(waiting), size):
            yield waiting[first : first + size], end


def make_deliveries(
    owner: str, webhooks: Sequence[LeasedWebhook], end: int, now: Milliseconds
) -> Unit[dict[int, int]]:
    """Return how many for each webhook; one lost, disabled or moved meanwhile is missing."""
    made = {}
    for webhook in webhooks:
        moved = yield Statement(
            "UPDATE webhooks SET position = ?1"
            " WHERE id = ?2 AND position = ?3 AND leased_by = ?4 AND enabled = 1 RETURNING id",
            (end, webhook.id, webhook.position, owner),
            name="move_webhook",
        )
        if moved:
            wanted = webhook.wanted
            rows = yield Statement(
                f"{_INSERT} WHERE e.sequence > ?3 AND e.sequence <= ?4"
                f" AND {readable_by('?5', '?1')}"
                f" AND (e.type IN ({placeholder_list(8, wanted)})"
                " OR e.type = ?6 AND e.resource = ?7)"
                " ORDER BY e.sequence RETURNING id",
                (
                    *(webhook.id, now, webhook.position, end, webhook.key_id),
                    *(_TEST, f"webhook/{webhook.id}", *wanted),
                ),
                name="insert_deliveries",
            )
            made[webhook.id] = len(rows)
    return made


def save_progress(
    outcomes: Sequence[Outcome], held: Sequence[DueDelivery], now: Milliseconds
) -> Unit[list[WebhookNotice]]:
    """An outcome is ignored if another process has made an attempt at the delivery meanwhile."""
    notices = []
    by_webhook = attrgetter("delivery.webhook_id")
    for webhook_id, group in groupby(sorted(outcomes, key=by_webhook), by_webhook):
        stored = yield Statement(
            "SELECT failures, failing_since, last_success_at, enabled, key_id, paused_until"
            " FROM webhooks WHERE id = ?1 /*pg FOR UPDATE */",
            (webhook_id,),
            name="select_webhook_health",
        )
        saved: list[Outcome] = []
        for outcome in group:
            saved += yield from _save(outcome, now)
        if stored and saved:
            notices += yield from _update_webhook(webhook_id, stored[0], saved, now)
    before = _pending_beside("e.id", "?3", "?4", "?2", before=True)
    for delivery in held:
        # Unless what it waits for has meanwhile ended.
        yield Statement(
            f"UPDATE webhook_deliveries SET due_at = ?1 WHERE id = ?2 AND ({before}) IS NOT NULL",  # noqa: S608
            (delivery.held_until, delivery.id, delivery.webhook_id, delivery.resource),
            name="hold_delivery",
        )
    return notices


def _save(outcome: Outcome, now: Milliseconds) -> Unit[list[Outcome]]:
    delivery, at = outcome.delivery, outcome.at
    saved = yield Statement(
        "UPDATE webhook_deliveries SET state = ?1, due_at = ?2, attempts = attempts + ?3,"
        " first_attempt_at = coalesce(first_attempt_at, ?4),"
        " last_attempt_at = coalesce(?4, last_attempt_at),"
        " response_status = ?5, response_body = ?6, error = ?7"
        # Found by its id: PostgreSQL must not look through the index of pending ones.
        " WHERE id = ?8 AND state || '' = 'pending' AND attempts = ?9 RETURNING id",
        (
            *(outcome.state, outcome.due_at, int(at is not None), at),
            *(outcome.status, outcome.body, outcome.error, delivery.id, delivery.attempts),
        ),
        name="update_delivery",
    )
    if saved and outcome.state != "pending":
        following = _pending_beside("e.id", "?2", "?3", "?4", before=False)
        yield Statement(
            "UPDATE webhook_deliveries SET due_at = ?1 WHERE attempts = 0 AND due_at > ?1"  # noqa: S608
            f" AND id = ({following})",
            (now, delivery.webhook_id, delivery.resource, delivery.id),
            name="free_next_delivery",
        )
    return [outcome] if saved else []


@cache
def _pending_beside(column: str, webhook: str, resource: str, number: str, *, before: bool) -> str:
    """Return the SELECT of the pending delivery of a resource just before another one, or after it.

    The index for PostgreSQL leaves out what is done, instead of having what is pending: the indexes
    of pending deliveries were empty when all was delivered, so the planner thinks each is as good.
    """
    beyond, bound, order = ("<", ">=", " DESC") if before else (">", "<=", "")
    key = ("e.webhook_id", "e.resource", "e.id")
    return (
        f"SELECT {column} FROM webhook_deliveries e WHERE"  # noqa: S608 - only names
        f" /*sqlite*/ e.webhook_id = {webhook} AND e.resource = {resource} AND e.state = 'pending'"
        f" AND e.id {beyond} {number} ORDER BY e.id{order} /*end*/"
        f" /*pg e.state NOT IN ('succeeded', 'failed')"
        f" AND ({', '.join(key)}) {beyond} ({webhook}, {resource}, {number})"
        f" AND (e.webhook_id, e.resource) {bound} ({webhook}, {resource})"
        f" ORDER BY {', '.join(f'{name}{order}' for name in key)} */ LIMIT 1"
    )


def _update_webhook(
    webhook_id: int, stored: Row, outcomes: Sequence[Outcome], now: Milliseconds
) -> Unit[list[WebhookNotice]]:
    failures, failing_since, last_success_at, enabled, key_id, paused = stored
    health = WebhookHealth(failures, failing_since, last_success_at)
    for outcome in outcomes:
        if outcome.at is not None:
            health = health.after(outcome.at, succeeded=outcome.state == "succeeded")
    reason: DisabledReason | None = None
    if enabled and any(outcome.status == HTTPStatus.GONE for outcome in outcomes):
        reason = "gone"
    elif enabled and health.is_failing_for_good(now):
        reason = "failing"
    pauses = [outcome.paused_until for outcome in outcomes if outcome.paused_until is not None]
    (row,) = yield Statement(
        "UPDATE webhooks SET failures = ?1, failing_since = ?2, last_success_at = ?3,"  # noqa: S608
        " paused_until = ?4, enabled = ?5, disabled_reason = coalesce(?6, disabled_reason)"
        f" WHERE id = ?7 RETURNING {COLUMNS}",
        (*(*health, max(pauses, default=paused)), *(0 if reason else enabled, reason, webhook_id)),
        name="update_webhook_health",
    )
    if reason is not None:
        was = {"enabled": True, "disabledReason": None}
        resource = f"webhook/{webhook_id}"
        yield record(now, NewEvent("webhook.disabled", resource, webhook_of(row), was, key_id))
    elif not failures < NOTICED_FAILURES <= health.failures:
        return []
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    return [WebhookNotice(webhook_id, key_id, reason, next(reversed(errors), ""))]


def delivery_of(row: Row) -> Delivery:
    *_, state, _, created_at, last_attempt_at, due_at = row[:9]
    moments = created_at, last_attempt_at, due_at if state == "pending" else None
    times: Any = (None if at is None else rfc3339_milliseconds(at) for at in moments)
    return Delivery(*row[:6], *times, *row[9:])
