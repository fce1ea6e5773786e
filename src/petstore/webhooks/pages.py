"""The pages of webhooks: where a key's events are sent, and what became of each delivery."""

from collections.abc import Iterable
from functools import partial

from petstore.console.forms import (
    Field,
    FieldSet,
    choice,
    number_or_text,
    optional,
    words,
)
from petstore.console.history import names_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, executes
from petstore.domain.time_zones import typed_moment
from petstore.errors import InvalidParameter, PetstoreError
from petstore.events.model import EVENT_TYPES, readable_types
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.webhooks.model import Webhook

_NEWEST = 3  # whoever wants more goes on to a page of older ones
_DELIVERIES = 20
_OF_KEYS = frozenset({"key.limit_near", "key.banned", "key.expiring", "deprecation.used"})

_STATES = ("pending", "succeeded", "failed")
_STATE = FieldSet(
    choice("state", "State", ("", "any"), *((state, state) for state in _STATES), parse=optional)
)
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


def _since(visit: PageRequest) -> FieldSet:
    parse = partial(typed_moment, zone=visit.time_zone)
    return FieldSet(Field("since", "Since", parse=parse, control="moment"))


def _types(visit: PageRequest) -> list[tuple[str, str]]:
    readable = readable_types(visit.caller.scopes) - {"webhook.test"}
    if visit.caller.role is not None:
        readable -= _OF_KEYS
    return [(each, "") for each in EVENT_TYPES if each in readable]


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
            options=_types(visit),
            hint="If none is chosen, it gets all events that you may read.",
        ),
    )


async def _list(visit: PageRequest) -> Response:
    """Return a page of the webhooks that the caller sees, the failing ones first."""
    found, failing = await visit.list_page("listWebhooks"), []
    if not visit.form.text("cursor"):
        query = {"failing": "true", "limit": 100}
        failing = (await visit.execute("listWebhooks", query=query)).value
    webhooks = [*failing, *(each for each in found.value if each not in failing)]
    return visit.page(
        "webhooks.html",
        webhooks=webhooks,
        names=await _owners(visit, webhooks),
        following=found.next,
        is_set_up=visit.services.webhook_secret.is_set_up,
    )


async def _owners(visit: PageRequest, webhooks: Iterable[Webhook]) -> dict[str, str]:
    return await names_of(visit, {f"{each.owner.type}/{each.owner.id}" for each in webhooks})


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _form(visit).new(visit.form, error)
    return visit.page("webhook_new.html", error=error, form=form)


async def _create(visit: PageRequest) -> Response:
    fields = _form(visit)
    body = fields.body(fields.typed(visit.form))
    webhook = (await visit.execute("createWebhook", body)).value
    return visit.page("webhook_secret.html", 201, webhook=webhook, secret=webhook.secret)


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    found = await visit.execute("getWebhook")
    fields = _form(visit)
    form = fields.shown(fields.texts(found.value), found.version, visit.form, error)
    deliveries = Result[list[object]]([])
    is_own = found.value.owner.id == visit.caller.id
    wanted = _STATE.body(_STATE.typed(visit.form))
    is_newest = not wanted and not visit.form.text("cursor")
    if is_own and not isinstance(error, InvalidParameter):
        deliveries = await visit.list_page(
            "listWebhookDeliveries", _NEWEST if is_newest else _DELIVERIES, **wanted
        )
    return visit.page(
        "webhook.html",
        error=error,
        found=found,
        is_own=is_own,
        names=await _owners(visit, [found.value]),
        form=form,
        filters=_STATE.new(visit.form, error),
        grace=_GRACE.new(visit.form, error),
        since=_since(visit).new(visit.form, error),
        deliveries=deliveries,
    )


async def _update(visit: PageRequest) -> Response:
    fields = _form(visit)
    before, now = map(fields.texts, await visit.change("Webhook", fields))
    return await visit.tell_change(_path(visit), "The webhook", before, now)


async def _disable(visit: PageRequest) -> Response:
    disabled = (await visit.execute("updateWebhook", {"enabled": False})).value
    if disabled.owner.id != visit.caller.id:
        return await visit.redirect(_path(visit), Notice("Disabled. The owner is told."))
    undo = Undo(f"{_path(visit)}/enable", {}, "Enable it again")
    return await visit.redirect(_path(visit), Notice("Paused. No events are sent.", undo))


async def _enable(visit: PageRequest) -> Response:
    await visit.execute("updateWebhook", {"enabled": True})
    undo = Undo(f"{_path(visit)}/disable")
    return await visit.redirect(_path(visit), Notice("Events are sent again from now on.", undo))


async def _recover(visit: PageRequest) -> Response:
    since = _since(visit)
    await visit.execute("recoverWebhook", since.values(since.typed(visit.form)))
    return await visit.redirect(_path(visit), Notice("Missed events are being sent."))


async def _rotate(visit: PageRequest) -> Response:
    rotated = await visit.execute("rotateWebhook", _GRACE.values(_GRACE.typed(visit.form)))
    webhook = rotated.value
    return visit.page("webhook_secret.html", webhook=webhook, secret=webhook.secret)


def _path(visit: PageRequest) -> str:
    return f"/webhooks/{visit.path_id}"


_SENT = "A test is on its way. The newest delivery shows what comes back."
_test = executes("testWebhook", _SENT, "/webhooks/{}")
_retry = executes("retryWebhookDelivery", "The event is sent again.", "/webhooks/{}")
_delete = executes("deleteWebhook", "The webhook is deleted.", "/webhooks")
_DELIVERY = "/webhooks/{webhookId}/deliveries/{deliveryId}"

PAGES = (
    ConsolePage("GET", "/webhooks", _list, "listWebhooks"),
    ConsolePage("GET", "/webhooks/new", _new, "createWebhook"),
    ConsolePage("POST", "/webhooks", _create, "createWebhook", _new),
    ConsolePage("GET", "/webhooks/{webhookId}", _show, "getWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}", _update, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/enable", _enable, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/disable", _disable, "updateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/recover", _recover, "recoverWebhook", _show),
    ConsolePage("POST", f"{_DELIVERY}/retry", _retry, "retryWebhookDelivery", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/test", _test, "testWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/rotate", _rotate, "rotateWebhook", _show),
    ConsolePage("POST", "/webhooks/{webhookId}/delete", _delete, "deleteWebhook", _show),
)
