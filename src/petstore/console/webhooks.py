"""The pages of webhooks: where a key's events are sent, and what became of each delivery."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from petstore.clock import utc
from petstore.console.forms import Problem, number_or_text, problem_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import Page, Result, Visit
from petstore.domain.deliveries import DisabledReason
from petstore.domain.events import EventType, readable_types
from petstore.domain.webhooks import MAX_WEBHOOKS, Webhook
from petstore.errors import (
    Conflict,
    InvalidBody,
    InvalidParameter,
    InvalidWebhookUrl,
    MissingScope,
    PetstoreError,
    PreconditionFailed,
    ReplayTooLarge,
    ResponseSealed,
    UnknownEventType,
    WebhooksNotConfigured,
)
from petstore.http.messages import Response

_DELIVERIES = 20  # on a page, which has its forms below them
_LABELS = {"url": "Address", "description": "What it is for", "types": "Events"}
_REFUSED = (
    *(InvalidBody, InvalidWebhookUrl, UnknownEventType, MissingScope),
    *(Conflict, PreconditionFailed, ReplayTooLarge, WebhooksNotConfigured),
)
_SENT_BEFORE = (
    "This form was sent before, and the secret was shown then. It cannot be shown again; make a new"
    " one on the page of the webhook."
)
_GRACES = (
    ("0", "at once"),
    ("3600", "after 1 hour"),
    ("86400", "after 1 day"),
    ("604800", "after 7 days"),
)
EVENT_WORDS: Mapping[EventType, str] = {
    "pet.created": "An animal was added",
    "pet.updated": "An animal was changed",
    "pet.deleted": "An animal was deleted",
    "order.placed": "An order was placed",
    "order.updated": "An order was changed",
    "order.approved": "An order was approved",
    "order.delivered": "An order was delivered",
    "order.cancelled": "An order was cancelled",
    "order.lapsed": "An order lapsed because nobody approved it in time",
    "category.created": "A category was added",
    "category.updated": "A category was changed",
    "category.deleted": "A category was deleted",
    "key.limit_near": "This key is near a limit",
    "key.banned": "This key was banned",
    "key.expiring": "This key expires soon",
    "deprecation.used": "This key called an operation that will end",
    "webhook.disabled": "A webhook was disabled",
}
"""The types of events in words. A test that a person asks for cannot be chosen."""

DISABLED_WORDS: Mapping[DisabledReason, str] = {
    "gone": "The address responded with 410: it takes no more events.",
    "failing": "No delivery has succeeded for days.",
}
"""Why the service disabled a webhook, in words."""

_WINDOWS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}


async def _list(visit: Visit) -> Response:
    found = await visit.call("listWebhooks", query={"limit": MAX_WEBHOOKS})
    return visit.page(
        "webhooks.html",
        webhooks=found.value,
        is_set_up=visit.services.webhook_secret.is_set_up,
        is_full=len(found.value) == MAX_WEBHOOKS,
        most=MAX_WEBHOOKS,
    )


async def _new(visit: Visit) -> Response:
    return _form(visit, {"url": "", "description": "", "types": []})


async def _create(visit: Visit) -> Response:
    typed = _typed(visit)
    try:
        once = visit.form.text("once")
        created = await visit.call("createWebhook", body=_body(typed), once=once)
    except _REFUSED as error:
        return _form(visit, typed, error)
    webhook = created.value
    return visit.page("webhook_secret.html", 201, webhook=webhook, secret=webhook.secret)


async def _show(visit: Visit) -> Response:
    return await _page(visit)


async def _update(visit: Visit) -> Response:
    typed = _typed(visit)
    before = await visit.call("getWebhook", path_id=visit.path_id)
    try:
        changed = await _change(visit, _body(typed), visit.form.text("version"))
    except _REFUSED as error:
        return await _page(visit, typed, error)
    undo = Undo(_path(visit), _fields(before.value) | {"version": changed.tag})
    pressed = visit.form.text("undo")
    notice = change_notice("The webhook", "The webhook is changed.", undo, pressed)
    return await visit.redirect(_path(visit), notice)


async def _disable(visit: Visit) -> Response:
    undo = Undo(f"{_path(visit)}/enable", {"resume": "lastSuccess"}, "Enable it again")
    return await _switch(visit, {"enabled": False}, Notice("No more events are sent.", undo))


async def _enable(visit: Visit) -> Response:
    body = {"enabled": True, "resume": visit.form.text("resume") or "lastSuccess"}
    undo = Undo(f"{_path(visit)}/disable")
    return await _switch(visit, body, Notice("Events are sent again.", undo))


async def _test(visit: Visit) -> Response:
    once = visit.form.text("once")
    try:
        await visit.call("testWebhook", path_id=visit.path_id, once=once)
    except _REFUSED as error:
        return await _page(visit, error=error)
    text = "A test is on its way. The deliveries below show what comes back."
    return await visit.redirect(_path(visit), Notice(text))


async def _rotate(visit: Visit) -> Response:
    body = {"graceSeconds": number_or_text(visit.form.text("grace"))}
    try:
        once = visit.form.text("once")
        rotated = await visit.call("rotateWebhook", path_id=visit.path_id, body=body, once=once)
    except _REFUSED as error:
        return await _page(visit, error=error)
    webhook = rotated.value
    return visit.page("webhook_secret.html", 200, webhook=webhook, secret=webhook.secret)


async def _replay(visit: Visit) -> Response:
    try:
        body = await _window(visit)
        once = visit.form.text("once")
        replayed = await visit.call("replayWebhook", path_id=visit.path_id, body=body, once=once)
    except _REFUSED as error:
        return await _page(visit, error=error)
    return await visit.redirect(_path(visit), Notice(_replayed(replayed.value.deliveries)))


async def _delete(visit: Visit) -> Response:
    version = visit.form.text("version")
    try:
        await visit.call("deleteWebhook", path_id=visit.path_id, if_match=version)
    except PreconditionFailed as error:
        return await _page(visit, error=error)
    return await visit.redirect("/webhooks", Notice("The webhook is deleted."))


async def _switch(visit: Visit, body: dict[str, Any], notice: Notice) -> Response:
    try:
        await _change(visit, body)
    except _REFUSED as error:
        return await _page(visit, error=error)
    return await visit.redirect(_path(visit), notice)


async def _change(visit: Visit, body: dict[str, Any], version: str = "") -> Result:
    return await visit.call("updateWebhook", path_id=visit.path_id, body=body, if_match=version)


async def _page(
    visit: Visit, typed: dict[str, Any] | None = None, error: PetstoreError | None = None
) -> Response:
    """Return the page of a webhook as it is now, with its deliveries and what was typed."""
    found = await visit.call("getWebhook", path_id=visit.path_id)
    is_get = visit.request.method != "POST"
    state = visit.form.text("state") if is_get else ""
    cursor = visit.form.text("cursor") if is_get else ""
    query = {"limit": _DELIVERIES, "state": state or None, "cursor": cursor or None}
    problem = None if error is None else _problem(error)
    try:
        deliveries = await visit.call("listWebhookDeliveries", path_id=visit.path_id, query=query)
    except InvalidParameter as refused:
        problem, error, deliveries = problem_of(refused), refused, Result([], "", "")
    return visit.page(
        "webhook.html",
        200 if error is None else error.status,
        found=found,
        typed=typed or _fields(found.value),
        disabled_words=DISABLED_WORDS,
        known=_known(visit),
        deliveries=deliveries,
        state=state,
        graces=_GRACES,
        problem=problem,
    )


def _form(visit: Visit, typed: dict[str, Any], error: PetstoreError | None = None) -> Response:
    return visit.page(
        "webhook_new.html",
        200 if error is None else error.status,
        typed=typed,
        known=_known(visit),
        problem=None if error is None else _problem(error),
    )


def _known(visit: Visit) -> Sequence[tuple[EventType, str]]:
    """Return the types of events that a webhook of the person can get, with words."""
    readable = readable_types(visit.key.scopes)
    return [(kind, words) for kind, words in EVENT_WORDS.items() if kind in readable]


def _problem(error: PetstoreError) -> Problem:
    if isinstance(error, PreconditionFailed):
        text = (
            "Somebody else changed this webhook while you were editing. The facts above are as"
            " they are now; what you typed is still in the form. Save again to use yours."
        )
        return Problem("", text)
    if isinstance(error, ResponseSealed):
        return Problem("", _SENT_BEFORE)
    return problem_of(error, _LABELS)


async def _window(visit: Visit) -> dict[str, str]:
    """Return the window of a replay, in the body of the operation.

    Raises:
        InvalidBody: a moment is missing or malformed.
    """
    wanted = visit.form.text("window")
    if wanted in _WINDOWS:
        since = utc(visit.services.clock()) - _WINDOWS[wanted]
        return {"since": since.isoformat()}
    body = {"since": _moment(visit, "since")}
    return body | ({"until": _moment(visit, "until")} if visit.form.text("until") else {})


def _replayed(count: int) -> str:
    if count == 0:
        return "No event of that time has to be sent again."
    return "1 event is sent again." if count == 1 else f"{count} events are sent again."


def _moment(visit: Visit, name: str) -> str:
    """Return what a person typed as a moment; without an offset it is in UTC."""
    try:
        moment = datetime.fromisoformat(visit.form.text(name))
    except ValueError:
        msg = f"{name}: expected a date and time, such as 2026-11-21 10:00"
        raise InvalidBody(msg) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _typed(visit: Visit) -> dict[str, Any]:
    return {
        "url": visit.form.text("url"),
        "description": visit.form.text("description"),
        "types": list(visit.form.all("types")),
    }


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {
        "url": webhook.url,
        "description": webhook.description or "",
        "types": webhook.types,
    }


def _body(typed: dict[str, Any]) -> dict[str, Any]:
    return typed | {"description": typed["description"] or None}


def _path(visit: Visit) -> str:
    return f"/webhooks/{visit.path_id}"


PAGES = (
    Page("GET", "/webhooks", _list, needs="listWebhooks"),
    Page("GET", "/webhooks/new", _new, needs="createWebhook"),
    Page("POST", "/webhooks", _create, needs="createWebhook"),
    Page("GET", "/webhooks/{webhookId}", _show, needs="getWebhook"),
    Page("POST", "/webhooks/{webhookId}", _update, needs="updateWebhook"),
    Page("POST", "/webhooks/{webhookId}/enable", _enable, needs="updateWebhook"),
    Page("POST", "/webhooks/{webhookId}/disable", _disable, needs="updateWebhook"),
    Page("POST", "/webhooks/{webhookId}/test", _test, needs="testWebhook"),
    Page("POST", "/webhooks/{webhookId}/rotate", _rotate, needs="rotateWebhook"),
    Page("POST", "/webhooks/{webhookId}/replay", _replay, needs="replayWebhook"),
    Page("POST", "/webhooks/{webhookId}/delete", _delete, needs="deleteWebhook"),
)
