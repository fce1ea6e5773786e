"""The pages that send events to a webhook again: that of one delivery, and those of many."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import UNSET, json

from petstore.clock import rfc3339_milliseconds, utc
from petstore.console.fields import Field, FieldSet, choice, optional
from petstore.console.forms import typed_id
from petstore.console.notices import Notice
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.decoding import convert
from petstore.errors import DeliveriesPending, InvalidBody, PetstoreError
from petstore.events.model import Event, readable_types
from petstore.http.messages import Response
from petstore.webhooks.deliveries import find_delivery
from petstore.webhooks.model import MAX_REPLAY, ReplayWindow, Webhook
from petstore.webhooks.operations import selection_of
from petstore.webhooks.pages import outcome_in_words, type_options
from petstore.webhooks.replays import count_replay
from petstore.webhooks.waits import read_wait

_WINDOWS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_DEFAULTS = {"state": "failed", "window": "ever"}
_CANNOT_UNDO = "This cannot be undone."


def _selection(visit: PageRequest, webhook: Webhook) -> FieldSet:
    """Return the form that selects events, of the types that the webhook gets."""
    options = [
        each for each in type_options(visit) if not webhook.types or each[0] in webhook.types
    ]
    types = Field(
        *("type", "Types"),
        parse=str.split,
        control="boxes",
        options=options,
        hint="If none is chosen, events of all types are sent.",
    )
    return FieldSet(
        choice(
            *("state", "Which events"),
            ("failed", "those that failed"),
            ("", "all, also those that arrived"),
            parse=optional,
        ),
        choice(
            *("window", "Of what time"),
            ("ever", "since the webhook exists"),
            ("hour", "of the last hour"),
            ("day", "of the last 24 hours"),
            ("week", "of the last 7 days"),
            ("own", "between the times below"),
        ),
        Field("since", "From", control="moment"),
        Field("until", "Until", control="moment", hint="Empty is until now."),
        *([types] if len(options) > 1 else []),
    )


async def _delivery(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Return the page of a delivery: what was sent, and what came back."""
    webhook = (await visit.execute("getWebhook")).value
    delivery, event = await find_delivery(
        visit.services.store,
        visit.path_id,
        visit.child_id,
        is_gone=webhook.disabled_reason == "gone",
    )
    now, wait = visit.services.clock(), None
    if delivery.state == "pending" and webhook.enabled:
        wait = await read_wait(visit.services.store, webhook.id, delivery.id, now)
    may_read = delivery.type in readable_types(visit.caller.scopes)
    return visit.page(
        "webhook_delivery.html",
        error=error,
        problem=FieldSet().problem(error),
        webhook=webhook,
        delivery=delivery,
        event=event,
        may_read=may_read,
        wait=wait,
        waits_until=wait and rfc3339_milliseconds(wait.until),
        now=rfc3339_milliseconds(now),
        outcome=outcome_in_words(delivery),
        payload=_payload(event) if event is not None and may_read else "",
    )


def _payload(event: Event) -> str:
    """Return the body that sends an event, in lines."""
    return json.format(json.encode(event), indent=2).decode()


async def _retry(visit: PageRequest) -> Response:
    made = (await visit.execute("retryWebhookDelivery")).value
    path = f"/webhooks/{visit.path_id}"
    if visit.form.text("back") != "list":
        path += f"/deliveries/{made.id}"
    when = "now" if made.id == visit.child_id else "again"
    return await visit.redirect(path, Notice(f"The event is sent {when}. {_CANNOT_UNDO}"))


async def _replay(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Return the page that selects events, and says how many are selected."""
    webhook = (await visit.execute("getWebhook")).value
    fields = _selection(visit, webhook)
    form = fields.new(visit.form, error, None if visit.request.method == "POST" else _DEFAULTS)
    count, body = None, {}
    if error is None:
        body = _selected(visit, fields.values(form.typed))
        selection = selection_of(convert(body, ReplayWindow, InvalidBody), visit.caller)
        count = await count_replay(visit.services.store, webhook, selection, visit.caller)
    return visit.page(
        "webhook_replay.html", error=error, webhook=webhook, form=form, count=count, body=body
    )


async def _send(visit: PageRequest) -> Response:
    """Say how many events are selected, or send the next part of them."""
    if not visit.form.text("send"):
        return await _replay(visit)
    names = ("since", "until", "state", "cursor")
    body: dict[str, Any] = {name: text for name in names if (text := visit.form.text(name))}
    if types := visit.form.all("type"):
        body["type"] = types
    done = typed_id(visit.form.text("done")) or 0
    try:
        part = (await visit.execute("replayWebhook", body)).value
    except DeliveriesPending:
        if not done:
            raise
        return await _part(visit, body, done, is_full=True)
    done += part.deliveries
    if part.next is not UNSET:
        body["cursor"] = part.next
        return await _part(visit, body, done, is_full=part.deliveries == MAX_REPLAY)
    text = "1 event is sent again." if done == 1 else f"{done:,} events are sent again."
    notice = Notice(f"{text} {_CANNOT_UNDO}" if done else "No event has to be sent again.")
    return await visit.redirect(f"/webhooks/{visit.path_id}", notice)


async def _part(
    visit: PageRequest, body: Mapping[str, Any], done: int, *, is_full: bool
) -> Response:
    """Return the page between two parts. It goes on by itself unless many are pending."""
    webhook = (await visit.execute("getWebhook")).value
    return visit.page(
        *("webhook_replay_part.html",),
        webhook=webhook,
        body=body,
        done=done,
        is_full=is_full,
        most=MAX_REPLAY,
    )


def _selected(visit: PageRequest, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what was selected, in the body of the operation.

    Raises:
        InvalidBody: a moment is missing or malformed.
    """
    window, since, until = (wanted.pop(name) for name in ("window", "since", "until"))
    body = {name: value for name, value in wanted.items() if value}
    if window in _WINDOWS:
        body["since"] = (utc(visit.services.clock()) - _WINDOWS[window]).isoformat()
    if window == "own":
        body["since"] = _moment("since", since)
        if until:
            body["until"] = _moment("until", until)
    return body


def _moment(name: str, typed: str) -> str:
    """Return what a person typed as a moment; without an offset it is in UTC."""
    try:
        moment = datetime.fromisoformat(typed)
        # In UTC, the first and the last moments of another zone may be in no year.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        msg = f"{name}: expected a date and time, such as 2026-11-21 10:00"
        raise InvalidBody(msg) from None


_DELIVERY = "/webhooks/{webhookId}/deliveries/{deliveryId}"

PAGES = (
    ConsolePage("GET", _DELIVERY, _delivery, "listWebhookDeliveries"),
    ConsolePage("POST", f"{_DELIVERY}/retry", _retry, "retryWebhookDelivery", _delivery),
    ConsolePage("GET", "/webhooks/{webhookId}/replay", _replay, "replayWebhook", _replay),
    ConsolePage("POST", "/webhooks/{webhookId}/replay", _send, "replayWebhook", _replay),
)
