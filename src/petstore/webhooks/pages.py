"""The pages of webhooks: where a key's events are sent, and what became of each delivery."""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus

from petstore.clock import rfc3339_milliseconds
from petstore.console.fields import Field, FieldSet, choice, optional, undo_fields, words
from petstore.console.forms import Problem, number_or_text
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import ConsolePage, PageRequest, again_if_used
from petstore.errors import InvalidParameter, PetstoreError, SecretAlreadyShown
from petstore.events.model import EventType, readable_types
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.webhooks.model import MAX_WEBHOOKS, Delivery
from petstore.webhooks.schedule import DisabledReason, is_success
from petstore.webhooks.waits import Waiting, read_waiting

_NEWEST = 5  # whoever wants more goes on to a page of older ones
_DELIVERIES = 20
_SENT_BEFORE = Problem(
    "",
    "This form was sent before, and the secret was shown then. It cannot be shown again; make a new"
    " one on the page of the webhook.",
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
    "key.created": "A key was created",
    "key.updated": "A key was changed",
    "key.rotated": "A key got a new token",
    "key.revoked": "A key was revoked",
    "key.unbanned": "The ban of a key was lifted",
    "person.created": "A person was added",
    "person.updated": "A person was changed",
    "person.invited": "A password link was made for a person",
    "key.limit_near": "This key is near a limit",
    "key.banned": "This key was banned",
    "key.expiring": "This key expires soon",
    "deprecation.used": "This key called an operation that will end",
    "webhook.disabled": "A webhook was disabled",
}
"""The types of events in words. A test that a person asks for cannot be chosen."""

_OF_KEYS = frozenset({"key.limit_near", "key.banned", "key.expiring", "deprecation.used"})

DISABLED_WORDS: Mapping[DisabledReason, str] = {
    "gone": "The address responded with 410: it takes no more events.",
    "failing": "No delivery has succeeded for days.",
}
"""Why the service disabled a webhook, in words."""

# Errors of deliveries are worded for developers of receivers. Each pattern captures what is kept.
_OUTCOMES = {
    r"no response within ([\d.]+) seconds": "The receiver did not answer in {} s.",
    r"no connection within ([\d.]+) seconds": "The receiver could not be reached in {} s.",
    r"Connection refused()": "Nothing takes requests at the address.",
    r"(?:.*not known|.*name resolution|No address .*|the name has no address|not a valid name)()": (
        "The name in the address is not known."
    ),
    r"TLS: (.*)": "No secure connection was possible: {}.",
    r"the response is not valid HTTP/1\.1()": "The receiver did not answer in HTTP.",
    r"the connection was closed before a response()": "The receiver hung up without an answer.",
    r"the event is no longer kept()": "It was not sent: the event is no longer kept.",
    r"the key may no longer read the event()": "It was not sent: you may not read such events.",
}
_STATUSES = {*HTTPStatus}
_REFUSED = "The receiver refused it: {}."
_NOT_SENT = "It was not sent: the webhook was enabled from then on."
_GIVEN_UP = "{} It was given up: the webhook was enabled from then on."

_STATES = ("pending", "succeeded", "failed")
_STATE = FieldSet(
    choice("state", "State", ("", "any"), *((state, state) for state in _STATES), parse=optional)
)
_PAUSED = "No more events are sent. Pending deliveries wait until you enable the webhook."
_GRACE = FieldSet(
    choice(
        *("graceSeconds", "The old secret ends"),
        ("86400", "after 1 day"),
        ("604800", "after 7 days"),
        ("3600", "after 1 hour"),
        ("0", "at once"),
        parse=number_or_text,
    )
)


def outcome_in_words(delivery: Delivery | Waiting) -> str:
    """Return what came of the last attempt at a delivery; empty before the first one."""
    failed, skipped, _ = (delivery.error or "").partition("skipped: ")
    attempt = _attempt_in_words(delivery.response_status, failed.removesuffix("; "))
    if not skipped:
        return attempt
    return _GIVEN_UP.format(attempt) if attempt else _NOT_SENT


def _attempt_in_words(status: int | None, error: str) -> str:
    for pattern, text in _OUTCOMES.items():
        if matched := re.fullmatch(pattern, error, re.DOTALL):
            return text.format(matched[1])
    if status is None:
        return f"It could not be sent: {error}." if error else ""
    if is_success(status):
        return f"The receiver took it ({status})."
    phrase = HTTPStatus(status).phrase if status in _STATUSES else ""
    return _REFUSED.format(f"{status} {phrase}".rstrip())


def _waiting_in_words(waiting: Waiting) -> str:
    """Return how many deliveries fail or wait, and why the last attempt failed; empty for none."""
    failing, others = waiting.failing, waiting.pending - waiting.failing
    if waiting.is_more:
        counted = f"More than {waiting.pending} deliveries {'fail or wait' if failing else 'wait'}."
    elif failing:
        more = f", {others} wait{'s' if others == 1 else ''}" if others else ""
        counted = f"{_deliveries(failing, 'fail')}{more}."
    else:
        counted = f"{_deliveries(others, 'wait')}." if others else ""
    return f"{counted} {outcome_in_words(waiting)}".rstrip()


def _deliveries(number: int, verb: str) -> str:
    return f"1 delivery {verb}s" if number == 1 else f"{number} deliveries {verb}"


def type_options(visit: PageRequest) -> list[tuple[str, str]]:
    """Return the types of events that a webhook can get for the person, in words."""
    readable = readable_types(visit.caller.scopes)
    if visit.caller.role is not None:
        readable -= _OF_KEYS
    return [(kind, text) for kind, text in EVENT_WORDS.items() if kind in readable]


def _form(visit: PageRequest) -> FieldSet:
    return FieldSet(
        Field(
            *("url", "Address"),
            hint="An https address of yours that takes events.",
            type="url",
            attributes={"maxlength": 2048},
        ),
        Field(
            *("description", "What it is for"),
            parse=optional,
            hint="Only for you. May be empty.",
            attributes={"maxlength": 255},
        ),
        Field(
            *("types", "Events"),
            show=lambda webhook: words(webhook.types),
            parse=str.split,
            control="boxes",
            options=type_options(visit),
            hint="If none is chosen, it gets all events that you may read.",
        ),
    )


async def _list(visit: PageRequest) -> Response:
    found = await visit.list_page("listWebhooks", MAX_WEBHOOKS)
    store, webhooks = visit.services.store, found.value
    waiting = await asyncio.gather(*(read_waiting(store, webhook.id) for webhook in webhooks))
    return visit.page(
        "webhooks.html",
        webhooks=[*zip(webhooks, map(_waiting_in_words, waiting), strict=True)],
        is_set_up=visit.services.webhook_secret.is_set_up,
        is_full=len(webhooks) == MAX_WEBHOOKS,
        most=MAX_WEBHOOKS,
    )


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _form(visit).new(visit.form, error)
    problem = _SENT_BEFORE if isinstance(error, SecretAlreadyShown) else form.problem
    return visit.page("webhook_new.html", error=error, form=form, problem=problem)


async def _create(visit: PageRequest) -> Response:
    fields = _form(visit)
    body = fields.body(fields.typed(visit.form))
    webhook = (await visit.execute("createWebhook", body)).value
    return visit.page("webhook_secret.html", 201, webhook=webhook, secret=webhook.secret)


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Return the page of a webhook as it is now, with its deliveries and what was typed."""
    found = await visit.execute("getWebhook")
    fields = _form(visit)
    form = fields.shown(fields.texts(found.value), found.version, visit.form, error)
    problem = _SENT_BEFORE if isinstance(error, SecretAlreadyShown) else form.problem
    deliveries = Result[list[object]]([])
    wanted = _STATE.body(_STATE.typed(visit.form))
    is_newest = not wanted and not visit.form.text("cursor")
    if not isinstance(error, InvalidParameter):
        deliveries = await visit.list_page(
            "listWebhookDeliveries", _NEWEST if is_newest else _DELIVERIES, **wanted
        )
    return visit.page(
        "webhook.html",
        error=error,
        found=found,
        form=form,
        filters=_STATE.new(visit.form, error),
        grace=_GRACE.new(visit.form, error),
        disabled_words=DISABLED_WORDS,
        waiting=_waiting_in_words(await read_waiting(visit.services.store, visit.path_id)),
        deliveries=deliveries,
        outcome_in_words=outcome_in_words,
        now=rfc3339_milliseconds(visit.services.clock()),
        problem=problem,
    )


@again_if_used
async def _update(visit: PageRequest) -> Response:
    fields = _form(visit)
    before = await visit.execute("getWebhook")
    # The version is another one with each delivery.
    fields.require_unchanged(visit.form, before.value)
    changed = await visit.execute(
        "updateWebhook", fields.patch(visit.form), if_match=before.version
    )
    back = undo_fields(fields.texts(before.value), fields.texts(changed.value))
    undo = Undo(_path(visit), back)
    pressed = visit.form.text("undo")
    notice = change_notice("The webhook", "The webhook is changed.", undo, pressed)
    return await visit.redirect(_path(visit), notice)


async def _disable(visit: PageRequest) -> Response:
    await visit.execute("updateWebhook", {"enabled": False})
    undo = Undo(f"{_path(visit)}/enable", {"resume": "lastSuccess"}, "Enable it again")
    return await visit.redirect(_path(visit), Notice(_PAUSED, undo))


async def _enable(visit: PageRequest) -> Response:
    body = {"enabled": True, "resume": visit.form.text("resume") or "lastSuccess"}
    await visit.execute("updateWebhook", body)
    undo = Undo(f"{_path(visit)}/disable")
    return await visit.redirect(_path(visit), Notice("Events are sent again.", undo))


async def _test(visit: PageRequest) -> Response:
    await visit.execute("testWebhook")
    text = "A test is on its way. The newest delivery shows what comes back."
    return await visit.redirect(_path(visit), Notice(text))


async def _rotate(visit: PageRequest) -> Response:
    rotated = await visit.execute("rotateWebhook", _GRACE.values(_GRACE.typed(visit.form)))
    webhook = rotated.value
    return visit.page("webhook_secret.html", webhook=webhook, secret=webhook.secret)


async def _delete(visit: PageRequest) -> Response:
    await visit.execute("deleteWebhook")
    return await visit.redirect("/webhooks", Notice("The webhook is deleted."))


def _path(visit: PageRequest) -> str:
    return f"/webhooks/{visit.path_id}"


PAGES = (
    ConsolePage("GET", "/webhooks", _list, "listWebhooks"),
    ConsolePage("GET", "/webhooks/new", _new, "createWebhook"),
    ConsolePage("POST", "/webhooks", _create, "createWebhook", _new),
    ConsolePage("GET", "/webhooks/{webhookId}", _show, "getWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}", _update, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/enable", _enable, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/disable", _disable, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/test", _test, "testWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/rotate", _rotate, "rotateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/delete", _delete, "deleteWebhook", _show),
)
