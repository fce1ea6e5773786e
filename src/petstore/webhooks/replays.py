"""Events that are sent to a webhook again: that of one delivery, or those of a window of time.

Each is a new delivery. A failed one whose event was sent again says when, and is not counted among
the failed ones of a replay any more.
"""

from collections.abc import Callable, Collection
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import UNSET

from petstore.clock import SECOND, Milliseconds, milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Reader, Statement, T, Unit, placeholder_list
from petstore.databases.pages import found
from petstore.databases.planner import looked_up, unplanned
from petstore.errors import (
    AlreadyPending,
    DeliveriesPending,
    EventNotKept,
    InvalidBody,
)
from petstore.events.model import EventType, readable_by
from petstore.keys.model import Caller
from petstore.time_slices import TimeSlices
from petstore.webhooks.deliveries import DELIVERY_COLUMNS, delivery_of
from petstore.webhooks.model import (
    IN_REPLAY,
    MAX_REPLAY,
    Delivery,
    Replay,
    ReplayRange,
    Webhook,
    wanted_types,
)
from petstore.webhooks.store import lock_enabled
from petstore.webhooks.waits import send_now

# The times of events are those of several clocks, so not quite in the order of the feed.
_CLOCKS_DIFFER: Milliseconds = 10 * SECOND
_EVER, _FAR = -(2**62), 2**62
_MAX_SEARCHED = 50_000
_MAX_FAILED = 10_000  # each is looked up in the feed
# People count more often than they send, so a count searches less. One statement of it takes
# about half a millisecond.
_MAX_COUNTED = 10_000
_COUNTED_AT_ONCE = 500
_INSERT = (
    "INSERT INTO webhook_deliveries"
    " (webhook_id, sequence, event_id, type, resource, state, created_at, attempts, due_at)"
)
_NEW = "'pending', CAST(?4 AS BIGINT), 0, CAST(?4 AS BIGINT)"
_PENDING = (
    "SELECT sequence FROM webhook_deliveries"
    " WHERE webhook_id = CAST(?1 AS BIGINT) AND state = 'pending'"
)
_IN_RANGE = (
    "sequence > ?2 AND sequence < ?3 AND state = 'failed' AND retried_at IS NULL AND webhook_id ="
)
_FAILED = f"{_IN_RANGE} /*sqlite*/ ?1 /*end*/ /*pg {unplanned(1)} */ ORDER BY sequence"


class Selection(NamedTuple):
    """The events to send again: of ``types``, from ``since`` on, and before ``until``.

    By default they are of all types, since the webhook was created or the oldest event that is
    kept. With ``is_failed`` they are those whose delivery failed, and that were not sent again. The
    ``rest`` is what an earlier replay has left.
    """

    since: Milliseconds | None = None
    until: Milliseconds = _FAR
    types: Collection[str] | None = None
    is_failed: bool = False
    rest: ReplayRange | None = None


class ReplayCount(NamedTuple):
    """How many events or failed deliveries a replay would send again, and since when.

    If there ``is_more`` to search, there may be more.
    """

    number: int
    is_more: bool
    since: Milliseconds


class _FeedPart(NamedTuple):
    """A part of the feed to search for the events of a ``selection``, up to ``end`` at once."""

    webhook_id: int
    key_id: int
    types: tuple[str, ...]
    selection: Selection
    since: Milliseconds
    rest: ReplayRange
    end: int

    @property
    def parameters(self) -> tuple[int, int, int]:
        """The webhook, and the places in the feed between which it searches."""
        return self.webhook_id, self.rest.after, self.end + 1

    @property
    def filters(self) -> tuple[int | str, ...]:
        """What events must have: their time, the key that they are about, and their types."""
        return self.since, self.selection.until, self.key_id, *self.types


def retry(
    webhook_id: int,
    delivery_id: int,
    key_id: int,
    now: Milliseconds,
    check: Callable[[Webhook], None],
    check_type: Callable[[EventType], object],
) -> Unit[Delivery]:
    """Send the event of a delivery again to a webhook that passes ``check``.

    Its type has to pass ``check_type``. If the delivery is pending, its next attempt is made at
    once. Return the delivery that sends it, else a new one.

    Raises:
        NotFound: the key has no webhook with this id, or the webhook no such delivery.
        WebhookDisabled: it is disabled.
        DeliveriesPending: too many deliveries are still to come.
        AlreadyPending: another one of this event is still to come, or it cannot be sent now.
        EventNotKept: the event is too old.
    """
    yield from lock_enabled(webhook_id, key_id, check)
    rows = yield Statement(
        "SELECT sequence, event_id, type, state FROM webhook_deliveries"
        " WHERE id = ?1 AND webhook_id = ?2",
        (delivery_id, webhook_id),
        name="select_delivery_to_retry",
    )
    sequence, event_id, kind, state = found(rows, tuple, "delivery", delivery_id)
    check_type(kind)
    if state == "pending":
        return (yield from send_now(webhook_id, delivery_id, now))
    yield from _require_few_pending(webhook_id)
    pending = yield Statement(
        "SELECT id FROM webhook_deliveries"
        " WHERE webhook_id = ?1 AND state = 'pending' AND sequence = ?2",
        (webhook_id, sequence),
        name="select_pending_delivery",
    )
    if pending:
        msg = f"the event of delivery {delivery_id} is pending: delivery {pending[0][0]} sends it"
        raise AlreadyPending(msg)
    made = yield Statement(
        f"{_INSERT} SELECT CAST(?1 AS BIGINT), sequence, id, type, resource, {_NEW} FROM events"  # noqa: S608
        f" WHERE sequence = ?2 AND id = ?3 RETURNING {DELIVERY_COLUMNS}",
        (webhook_id, sequence, event_id, now),
        name="insert_retried_delivery",
    )
    if not made:
        msg = f"the event of delivery {delivery_id} is no longer kept"
        raise EventNotKept(msg)
    yield _note_retries(webhook_id, sequence - 1, sequence + 1, now)
    return delivery_of(made[0])


def replay(
    webhook_id: int,
    selection: Selection,
    key: Caller,
    now: Milliseconds,
    check: Callable[[Webhook], None],
) -> Unit[Replay]:
    """Send selected events again to a webhook that passes ``check``; say where to continue.

    They are those that it would get today, and that are not pending already. However many there
    are, one replay searches a bounded part of the feed and sends a bounded number.

    Raises:
        NotFound: the key has no webhook with this id.
        WebhookDisabled: it is disabled.
        DeliveriesPending: too many deliveries are still to come.
        InvalidBody: the window, or its rest, begins before the oldest event that is kept.
    """
    webhook = yield from lock_enabled(webhook_id, key.id, check)
    yield from _require_few_pending(webhook_id)
    search = yield from _search(webhook, selection, key, _MAX_SEARCHED)
    kinds = placeholder_list(8, search.types)
    sequences = yield Statement(
        _insert_failed(kinds) if selection.is_failed else _insert_all(kinds),
        (*search.parameters, now, *search.filters),
        name="insert_replayed_deliveries",
    )
    count, end = len(sequences), search.end
    if count == MAX_REPLAY:
        end = max(sequence for (sequence,) in sequences)
    yield _note_retries(webhook_id, search.rest.after, end + 1, now)
    rest = ReplayRange(end, search.rest.last)
    return Replay(count, IN_REPLAY.encode(rest) if end < rest.last else UNSET)


async def count_replay(
    reader: Reader, webhook: Webhook, selection: Selection, key: Caller
) -> ReplayCount:
    """Count what ``replay`` would send, until that is more than one part, or a long search.

    It reads in slices, so that neither changes nor other reads wait for it.

    Raises:
        NotFound: the webhook was deleted meanwhile.
        DeliveriesPending: too many deliveries are still to come, so nothing could be sent.
        InvalidBody: the window begins before the oldest event that is kept.
        Unavailable: the database is unreachable or failing.
    """
    await _read(reader, _require_few_pending(webhook.id))
    search = await _read(reader, _search(webhook, selection, key, _MAX_COUNTED))
    select = Statement(_PENDING, (webhook.id,), name="select_pending_sequences")
    pending = {sequence for (sequence,) in await reader.read(select)}
    count, after, slices = 0, search.rest.after, TimeSlices()
    while count < MAX_REPLAY and after < search.end:
        part = await _read(reader, _next_counted(search, after))
        rows = await reader.read(_select_replayed(part))
        count += sum(sequence not in pending for (sequence,) in rows)
        after = part.end
        await slices.rest()
    return ReplayCount(count, after < search.rest.last, search.since)


async def _read(reader: Reader, unit: Unit[T]) -> T:
    """Run a unit of work that only reads, outside a transaction; return its result."""
    rows: Any = None  # begins the unit
    while True:
        try:
            statement = unit.send(rows)
        except StopIteration as finished:
            result: T = finished.value
            return result
        rows = await reader.read(statement)


def _next_counted(search: _FeedPart, after: int) -> Unit[_FeedPart]:
    """Return the part of a search that is counted after a place of the feed."""
    rest = search.rest._replace(after=after)
    if search.selection.is_failed:
        end = yield from _end_of_failed(search.webhook_id, rest, _COUNTED_AT_ONCE)
    else:
        end = after + _COUNTED_AT_ONCE
    return search._replace(rest=rest, end=min(search.end, end))


def _select_replayed(part: _FeedPart) -> Statement:
    """Return the SELECT of the places of the events, or failed deliveries, in a part of the feed.

    It also finds those that are pending.
    """
    parameters: tuple[int, ...] = part.parameters
    if part.selection.is_failed:
        from_where = _failed_events(placeholder_list(7, part.types), number=4)
    else:
        parameters = parameters[1:]
        from_where = (
            "FROM events e WHERE e.sequence > ?1 AND e.sequence < ?2"
            f" {_matching(placeholder_list(6, part.types), 3)}"
        )
    return Statement(
        f"SELECT e.sequence {from_where}",
        (*parameters, *part.filters),
        name="select_replayed",
    )


def _insert_all(kinds: str) -> str:
    return (
        f"{_INSERT} SELECT CAST(?1 AS BIGINT), e.sequence, e.id, e.type, e.resource, {_NEW}"  # noqa: S608
        f" FROM events e WHERE e.sequence > ?2 AND e.sequence < ?3 {_matching(kinds, 5)}"
        f" AND e.sequence NOT IN ({_PENDING})"
        f" ORDER BY e.sequence LIMIT {MAX_REPLAY} RETURNING sequence"
    )


def _insert_failed(kinds: str) -> str:
    # An event may have several failed deliveries.
    return (
        f"{_INSERT} SELECT DISTINCT CAST(?1 AS BIGINT), e.sequence, e.id, e.type, e.resource,"
        f" {_NEW} {_failed_events(kinds, number=5)} AND e.sequence NOT IN ({_PENDING})"
        f" ORDER BY e.sequence LIMIT {MAX_REPLAY} RETURNING sequence"
    )


def _failed_events(kinds: str, number: int) -> str:
    event = looked_up("JOIN", "events", "e", "sequence", "d.sequence")
    return (
        "FROM (SELECT sequence, event_id FROM webhook_deliveries"  # noqa: S608 - only names
        f" WHERE {_FAILED}) d {event} WHERE e.id = d.event_id {_matching(kinds, number)}"
    )


def _matching(kinds: str, number: int) -> str:
    """Return the condition of the ``filters`` of a search, the first of which has this number."""
    since, until, key = range(number, number + 3)
    return (
        f"AND e.at >= ?{since} AND e.at < ?{until} AND {readable_by(f'?{key}', 'e.')}"
        f" AND e.type IN ({kinds})"
    )


def _note_retries(webhook_id: int, after: int, before: int, now: Milliseconds) -> Statement:
    """Note at failed deliveries between two places of the feed that their event is pending."""
    return Statement(
        "UPDATE webhook_deliveries SET retried_at = ?4 WHERE"  # noqa: S608 - only names
        f" /*sqlite*/ {_IN_RANGE} ?1 /*end*/ /*pg ctid = ANY (ARRAY ("
        f"SELECT ctid FROM webhook_deliveries WHERE {_IN_RANGE} {unplanned(1)})) */"
        f" AND sequence IN ({_PENDING})",
        (webhook_id, after, before, now),
        name="note_retries",
    )


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


def _search(webhook: Webhook, selection: Selection, key: Caller, longest: int) -> Unit[_FeedPart]:
    """Return what to search at once: at most ``longest`` places, or ``_MAX_FAILED`` deliveries."""
    since, rest = yield from _range_of(webhook, selection)
    if selection.is_failed:
        end = yield from _end_of_failed(webhook.id, rest, _MAX_FAILED)
    else:
        end = min(rest.last, rest.after + longest)
    types = wanted_types(webhook.types, key.scopes)
    if selection.types is not None:
        types = types.intersection(selection.types)
    return _FeedPart(webhook.id, key.id, tuple(sorted(types)), selection, since, rest, end)


def _end_of_failed(webhook_id: int, rest: ReplayRange, count: int) -> Unit[int]:
    """Return the place of the last one of ``count`` failed deliveries, or the end of the range."""
    last = yield Statement(
        f"SELECT sequence FROM webhook_deliveries WHERE {_FAILED} LIMIT 1 OFFSET ?4",  # noqa: S608
        (webhook_id, rest.after, rest.last + 1, count - 1),
        name="select_last_failed_delivery",
    )
    return last[0][0] if last else rest.last


def _range_of(webhook: Webhook, selection: Selection) -> Unit[tuple[Milliseconds, ReplayRange]]:
    """Return since when, and between which places of the feed, there are selected events.

    What comes behind the position of the webhook will be sent anyway.
    """
    rows = yield Statement(
        "SELECT position FROM webhooks WHERE id = ?1", (webhook.id,), name="select_position"
    )
    position = found(rows, itemgetter(0), "webhook", webhook.id)
    oldest = yield Statement(
        "SELECT sequence, at FROM events WHERE sequence = (SELECT min(sequence) FROM events)",
        name="select_time_of_oldest_event",
    )
    start, kept_since = oldest[0] if oldest and oldest[0][0] > 1 else (1, _EVER)
    since = selection.since
    if since is None:
        since = max(kept_since, milliseconds(webhook.created_at))
    if selection.rest is not None:
        after, last = selection.rest
        if after + 1 < start:
            msg = "cursor: events after it are no longer kept; begin again without it"
            raise InvalidBody(msg)
        return since, ReplayRange(after, min(last, position))
    if since < kept_since:
        moment = rfc3339_milliseconds(kept_since)
        msg = f"since: expected {moment} or later, the time of the oldest event"
        raise InvalidBody(msg)
    first = yield from _first_since(since - _CLOCKS_DIFFER, start, position + 1)
    behind = yield from _first_since(selection.until + _CLOCKS_DIFFER, first, position + 1)
    return since, ReplayRange(first - 1, behind - 1)


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
