"""Create, change and delete webhooks, test them, and send events again.

A webhook belongs to its key: for all others it is not there. What sends the events is elsewhere; it
reads these rows, and moves ``position`` and the deliveries on.
"""

from collections.abc import Callable
from itertools import takewhile
from secrets import randbits
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from petstore.clock import Milliseconds, rfc3339_milliseconds, utc_second
from petstore.databases.contract import Reader, Row, Statement, Store, Unit, placeholder_list
from petstore.domain.api_keys import ApiKey
from petstore.domain.deliveries import GONE
from petstore.domain.events import NewEvent
from petstore.domain.webhooks import (
    MAX_REPLAY,
    MAX_WEBHOOKS,
    Delivery,
    DeliveryState,
    Resume,
    Webhook,
    WebhookCreate,
    WebhookPatch,
    known_types,
    wanted_types,
)
from petstore.errors import (
    DeliveriesPending,
    InvalidBody,
    ReplayTooLarge,
    TooManyWebhooks,
    WebhookDisabled,
)
from petstore.store.events import record
from petstore.store.pages import Page, found, read_page
from petstore.store.plans import LAST_ID, SHORT, in_short, index_range, unplanned
from petstore.store.retention import are_first, prune_in_order

COLUMNS = "id, url, types, description, enabled, disabled_reason, created_at, last_success_at"
"""The columns of a webhook in SQL, as ``webhook_of`` reads them."""

_SELECT = f"SELECT {COLUMNS} FROM webhooks"  # noqa: S608 - only names
_DELIVERY = (
    "id, event_id, type, resource, state, attempts, created_at, last_attempt_at, due_at,"
    " response_status, response_body, error"
)
_NEWEST = "(SELECT coalesce(max(sequence), 0) FROM events)"
_VERSION_BITS = 62
_BEFORE = (
    "/*sqlite*/ WHERE webhook_id = ?1 AND id < ?2 ORDER BY id DESC /*end*/"
    f" /*pg {index_range(['webhook_id'], [unplanned(1)], 'id', '?2', descending=True)} */"
)
_BATCH = 500
_SEARCHED_AT_ONCE = 500
# The times of events are those of several clocks, so not quite in the order of the feed.
_CLOCKS_DIFFER: Milliseconds = 10_000
_MAX_SEARCHED = 50_000


class IssuedSecret(NamedTuple):
    """A webhook, and the version of its new secret."""

    webhook: Webhook
    version: int


class Window(NamedTuple):
    """The events from ``since`` on, and before ``until``."""

    since: Milliseconds
    until: Milliseconds


async def list_webhooks(store: Reader, key_id: int, after: int | None, limit: int) -> Page[Webhook]:
    """Return the first ``limit`` webhooks of a key with an id above ``after``, by ascending id."""
    filters = {"key_id": key_id}
    return await read_page(store, "select_webhooks", _SELECT, filters, after, limit, webhook_of)


async def get_webhook(store: Reader, webhook_id: int, key_id: int) -> Webhook:
    """Return a webhook of a key.

    Raises:
        NotFound: the key has no webhook with this id.
    """
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2"
    rows = await store.read(Statement(sql, (webhook_id, key_id), name="select_webhook"))
    return found(rows, webhook_of, "webhook", webhook_id)


async def has_webhooks(store: Reader) -> bool:
    """Return whether any key has a webhook."""
    select = Statement("SELECT max(id) FROM webhooks", name="select_last_webhook")
    return await store.read(select) != [(None,)]


async def list_deliveries(
    store: Reader,
    webhook_id: int,
    state: DeliveryState | UnsetType,
    before: int | None,
    limit: int,
    *,
    is_gone: bool = False,
) -> Page[Delivery]:
    """Return ``limit`` deliveries of a webhook with an id below ``before``, the newest first.

    If the webhook ``is_gone``, a 410 disabled it, and the delivery that got it has failed.
    With a ``state`` it searches a bounded part: a page may be short although there is a next one.
    """
    width = limit + 1 if state is UNSET else max(limit + 1, _SEARCHED_AT_ONCE)
    sql = f"SELECT {_DELIVERY} FROM webhook_deliveries {_BEFORE}"  # noqa: S608 - only names
    rows = await store.read(
        Statement(
            f"{in_short(sql) if width <= SHORT else sql} LIMIT ?3",
            (webhook_id, LAST_ID if before is None else before, width),
            name="select_deliveries",
        )
    )
    deliveries = [_delivery_of(row, is_gone=is_gone) for row in rows]
    matching = [each for each in deliveries if state in (UNSET, each.state)]
    page = matching[:limit]
    if len(matching) > limit:
        return Page(page, page[-1].id)
    return Page(page, rows[-1][0] if len(rows) == width else None)


def create_webhook(new: WebhookCreate, key_id: int, now: Milliseconds) -> Unit[IssuedSecret]:
    """Create a webhook, which gets the events from now on.

    Raises:
        TooManyWebhooks: the key has as many as it may have.
    """
    # So two requests at once cannot both create the last one.
    yield Statement(
        "SELECT id FROM api_keys WHERE id = ?1 /*pg FOR NO KEY UPDATE */",
        (key_id,),
        name="lock_key",
    )
    ((count,),) = yield Statement(
        "SELECT count(*) FROM webhooks WHERE key_id = ?1", (key_id,), name="count_webhooks"
    )
    if count >= MAX_WEBHOOKS:
        msg = f"this key has {count} webhooks, the maximum; delete one first"
        raise TooManyWebhooks(msg)
    # Its start is random: the id of a webhook that a restored backup does not have is given again,
    # and must not come with the secret of the one before.
    version = randbits(_VERSION_BITS)
    rows = yield Statement(
        "INSERT INTO webhooks (key_id, url, types, description, created_at, enabled,"  # noqa: S608
        " secret_version, failures, position)"
        f" VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, 0, {_NEWEST}) RETURNING {COLUMNS}",
        (key_id, new.url, " ".join(known_types(new.types)), new.description, now, version),
        name="insert_webhook",
        affects_pages=False,
    )
    return IssuedSecret(webhook_of(rows[0]), version)


async def resume_deliveries(
    store: Store, webhook_id: int, resume: Resume, now: Milliseconds
) -> None:
    """Prepare the deliveries of a disabled webhook for the moment when it is enabled again.

    Those since its last success become pending, as if they had never been attempted; or those that
    are pending fail. There may be many, so they are changed in batches.
    """
    if resume == "now":
        while await store.write(_skip(webhook_id)) == _BATCH:
            pass
        return
    before: int | None = LAST_ID
    while before is not None:
        before = await store.write(_requeue(webhook_id, before, now))


def change_webhook(
    webhook_id: int, patch: WebhookPatch, key_id: int, check: Callable[[Webhook], None]
) -> Unit[Webhook]:
    """Change a webhook that passes ``check``, and return it.

    Raises:
        NotFound: the key has no webhook with this id.
    """
    webhook = yield from _locked(webhook_id, key_id)
    check(webhook)
    changed = _patched(webhook, patch)
    if changed == webhook:
        return webhook
    yield Statement(
        "UPDATE webhooks SET url = ?2, types = ?3, description = ?4, enabled = ?5,"
        " disabled_reason = ?6,"
        # Another endpoint has not asked to wait.
        " paused_until = CASE WHEN url = ?2 THEN paused_until END WHERE id = ?1",
        (
            *(webhook_id, changed.url, " ".join(changed.types), changed.description),
            *(int(changed.enabled), changed.disabledReason),
        ),
        name="update_webhook",
        affects_pages=False,
    )
    if changed.enabled and not webhook.enabled:
        position = _NEWEST if patch.resume == "now" else "position"
        yield Statement(
            "UPDATE webhooks SET failures = 0, failing_since = NULL, paused_until = NULL,"  # noqa: S608 - only names
            f" position = {position} WHERE id = ?1",
            (webhook_id,),
            name="resume_webhook",
            affects_pages=False,
        )
    return changed


def rotate_webhook(
    webhook_id: int,
    grace: Milliseconds,
    key_id: int,
    now: Milliseconds,
    check: Callable[[Webhook], None],
) -> Unit[IssuedSecret]:
    """Give a webhook that passes ``check`` a new secret. The one before signs too for ``grace``.

    Raises:
        NotFound: the key has no webhook with this id.
    """
    webhook = yield from _locked(webhook_id, key_id)
    check(webhook)
    ((version,),) = yield Statement(
        "UPDATE webhooks SET secret_version = secret_version + 1, previous_secret_ends_at = ?2"
        " WHERE id = ?1 RETURNING secret_version",
        (webhook_id, now + grace),
        name="rotate_webhook",
        affects_pages=False,
    )
    return IssuedSecret(webhook, version)


def delete_webhook(webhook_id: int, key_id: int, check: Callable[[Webhook], None]) -> Unit[None]:
    """Delete a webhook that passes ``check``. ``delete_deliveries`` deletes its deliveries.

    Raises:
        NotFound: the key has no webhook with this id.
    """
    check((yield from _locked(webhook_id, key_id)))
    yield Statement(
        "DELETE FROM webhooks WHERE id = ?1",
        (webhook_id,),
        name="delete_webhook",
        affects_pages=False,
    )


def record_test(
    webhook_id: int, key_id: int, now: Milliseconds, check: Callable[[Webhook], None]
) -> Unit[str]:
    """Record an event for a webhook that passes ``check``, and return its id.

    Raises:
        NotFound: the key has no webhook with this id.
        WebhookDisabled: it is disabled.
    """
    webhook = yield from _locked(webhook_id, key_id)
    check(webhook)
    _require_enabled(webhook)
    insert = record(now, NewEvent("webhook.test", f"webhook/{webhook_id}", webhook, None, key_id))
    ((event_id,),) = yield replace(insert, sql=f"{insert.sql} RETURNING id")
    return str(event_id)


def replay(
    webhook_id: int,
    window: Window,
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
    webhook = yield from _locked(webhook_id, key.id)
    check(webhook)
    _require_enabled(webhook)
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
        (webhook_id, now, first, last, window.since, window.until, key.id, *kinds),
        name="insert_replayed_deliveries",
        affects_pages=False,
    )
    return len(rows)


def delete_deliveries(webhook_id: int) -> Unit[int]:
    """Delete a batch of the deliveries of a webhook; return how many."""
    which = are_first("webhook_deliveries", "id", "webhook_id = ?1 ORDER BY id LIMIT ?2")
    deleted = yield Statement(
        f"DELETE FROM webhook_deliveries WHERE {which} RETURNING id",  # noqa: S608 - only names
        (webhook_id, _BATCH),
        name="delete_deliveries",
        affects_pages=False,
    )
    return len(deleted)


def prune_deliveries(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the deliveries from before a moment, the oldest first; return how many.

    Those that are pending as well: their events are not kept for longer.
    """
    return prune_in_order("webhook_deliveries", "id", before, "created_at")


def webhook_of(row: Row) -> Webhook:
    """Return the webhook in a row of ``COLUMNS``."""
    webhook_id, url, types, description, enabled, reason, created_at, last_success_at = row
    return Webhook(
        id=webhook_id,
        url=url,
        types=types.split(),
        description=description,
        enabled=bool(enabled),
        disabledReason=reason,
        createdAt=utc_second(created_at),
        lastSuccessAt=None if last_success_at is None else utc_second(last_success_at),
    )


def _locked(webhook_id: int, key_id: int) -> Unit[Webhook]:
    rows = yield Statement(
        f"{_SELECT} WHERE id = ?1 AND key_id = ?2 /*pg FOR UPDATE */",
        (webhook_id, key_id),
        name="lock_webhook",
    )
    return found(rows, webhook_of, "webhook", webhook_id)


def _lock(webhook_id: int) -> Statement:
    """Return what locks a webhook before its deliveries, as all who change several of them do."""
    sql = "SELECT id FROM webhooks WHERE id = ?1 /*pg FOR UPDATE */"
    return Statement(sql, (webhook_id,), name="lock_deliveries")


def _patched(webhook: Webhook, patch: WebhookPatch) -> Webhook:
    enabled = webhook.enabled if patch.enabled is UNSET else patch.enabled
    return replace(
        webhook,
        url=webhook.url if patch.url is UNSET else patch.url,
        types=webhook.types if patch.types is UNSET else known_types(patch.types),
        description=webhook.description if patch.description is UNSET else patch.description,
        enabled=enabled,
        disabledReason=None if enabled else webhook.disabledReason,
    )


def _require_enabled(webhook: Webhook) -> None:
    if not webhook.enabled:
        msg = f"webhook {webhook.id} is disabled; enable it first"
        raise WebhookDisabled(msg)


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


def _events_around(webhook_id: int, window: Window) -> Unit[tuple[int, int]]:
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
            (first, behind, window.since, window.until),
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

    No index has the times of events, and each change would pay for one.
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


def _requeue(webhook_id: int, before: int, now: Milliseconds) -> Unit[int | None]:
    """Make a batch of deliveries pending, back to the last success; return where to continue."""
    yield _lock(webhook_id)
    rows = yield Statement(
        f"SELECT id, state FROM webhook_deliveries {_BEFORE} LIMIT ?3",  # noqa: S608 - only names
        (webhook_id, before, _BATCH),
        name="select_deliveries_since",
    )
    since = [each for each, _ in takewhile(lambda row: row[1] != "succeeded", rows)]
    if not since:
        return None
    yield Statement(
        "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = ?1,"
        " first_attempt_at = NULL WHERE webhook_id = ?2 AND id >= ?3 AND id <= ?4"
        " AND state <> 'succeeded'",
        (now, webhook_id, since[-1], since[0]),
        name="requeue_deliveries",
        affects_pages=False,
    )
    return since[-1] if len(since) == _BATCH else None


def _skip(webhook_id: int) -> Unit[int]:
    """Let a batch of pending deliveries fail; return how many."""
    yield _lock(webhook_id)
    pending = "webhook_id = ?2 AND state = 'pending' ORDER BY id LIMIT ?3"
    which = are_first("webhook_deliveries", "id", pending)
    rows = yield Statement(
        "UPDATE webhook_deliveries SET state = 'failed', error = ?1"  # noqa: S608 - only names
        f" WHERE {which} RETURNING id",
        ("skipped: the webhook was enabled to go on from then", webhook_id, _BATCH),
        name="skip_deliveries",
        affects_pages=False,
    )
    return len(rows)


def _delivery_of(row: Row, *, is_gone: bool) -> Delivery:
    delivery_id, event_id, kind, resource, state, attempts, *times, status, body, error = row
    if is_gone and state == "pending" and status == GONE:
        # Its row is pending, because the webhook continues with it if it is enabled again.
        state = "failed"
    created_at, last_attempt_at, due_at = times
    return Delivery(
        id=delivery_id,
        eventId=event_id,
        type=kind,
        resource=resource,
        state=state,
        attempts=attempts,
        createdAt=rfc3339_milliseconds(created_at),
        lastAttemptAt=None if last_attempt_at is None else rfc3339_milliseconds(last_attempt_at),
        nextAttemptAt=rfc3339_milliseconds(due_at) if state == "pending" else None,
        responseStatus=status,
        responseBody=body,
        error=error,
    )
