"""The pages of webhooks: where a key's events are sent, and what became of each delivery."""

from collections.abc import Iterable
from functools import partial

from petstore.console.forms import GRACES, Field, FieldSet, choice, optional, words
from petstore.console.history import names_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, executes
from petstore.domain.decoding import number_or_text
from petstore.domain.time_zones import typed_moment
from petstore.errors import InvalidParameter
from petstore.events.model import EVENT_TYPES, readable_types
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.webhooks.model import Webhook

_NEWEST = 3  # a page of older ones has more
_DELIVERIES = 20
_OF_KEYS = frozenset({"key.limit_near", "key.banned", "key.expiring", "deprecation.used"})

_STATES = [("", "any"), *((state, state) for state in ("pending", "succeeded", "failed"))]
_STATE = FieldSet(choice("state", "State", *_STATES, parse=optional))
_GRACE = FieldSet(choice("graceSeconds", "The old secret ends", *GRACES, parse=number_or_text))


def _since(request: PageRequest) -> FieldSet:
    parse = partial(typed_moment, zone=request.time_zone)
    return FieldSet(Field("since", "Since", parse=parse, control="moment"))


def _form(request: PageRequest) -> FieldSet:
    readable = readable_types(request.caller.scopes) - {"webhook.test"}
    if request.caller.role is not None:
        readable -= _OF_KEYS
    return FieldSet(
        Field(
            *("url", "Address"),
            hint="An HTTPS address that receives events.",
            type="url",
            attributes={"maxlength": 2048},
        ),
        Field(
            *("description", "What it is for"),
            parse=optional,
            hint="Optional. Only you see it.",
            attributes={"maxlength": 255},
        ),
        Field(
            *("types", "Events"),
            show=lambda webhook: words(webhook.types),
            parse=str.split,
            control="boxes",
            options=[(each, "") for each in EVENT_TYPES if each in readable],
            hint="If you choose none, the webhook gets all events you can read.",
        ),
    )


async def _list(request: PageRequest) -> Response:
    found, failing = await request.list_page("listWebhooks"), []
    if not request.form.text("cursor"):
        query = {"failing": "true", "limit": 100}
        failing = (await request.execute("listWebhooks", query=query)).value
    webhooks = [*failing, *(each for each in found.value if each not in failing)]
    return request.page(
        "webhooks.html",
        webhooks=webhooks,
        names=await _owners(request, webhooks),
        following=found.next,
        is_set_up=request.services.webhook_secret.is_set_up,
    )


async def _owners(request: PageRequest, webhooks: Iterable[Webhook]) -> dict[str, str]:
    return await names_of(request, {f"{each.owner.type}/{each.owner.id}" for each in webhooks})


async def _new(request: PageRequest) -> Response:
    form = _form(request).new(request.form, request.error)
    return request.page("webhook_new.html", form=form)


async def _create(request: PageRequest) -> Response:
    fields = _form(request)
    body = fields.body(fields.typed(request.form))
    created = await request.execute("createWebhook", body)
    return request.page("webhook_secret.html", 201, webhook=created.value)


async def _show(request: PageRequest) -> Response:
    found = await request.execute("getWebhook")
    fields = _form(request)
    form = fields.shown(fields.texts(found.value), found.version, request.form, request.error)
    deliveries = Result[list[object]]([])
    is_own = found.value.owner.id == request.caller.id
    wanted = _STATE.body(_STATE.typed(request.form))
    is_newest = not wanted and not request.form.text("cursor")
    if is_own and not isinstance(request.error, InvalidParameter):
        deliveries = await request.list_page(
            "listWebhookDeliveries", _NEWEST if is_newest else _DELIVERIES, **wanted
        )
    return request.page(
        "webhook.html",
        found=found,
        is_own=is_own,
        names=await _owners(request, [found.value]),
        form=form,
        filters=_STATE.new(request.form, request.error),
        grace=_GRACE.new(request.form, request.error),
        since=_since(request).new(request.form, request.error),
        deliveries=deliveries,
    )


async def _update(request: PageRequest) -> Response:
    fields = _form(request)
    before, now = map(fields.texts, await request.change("Webhook", fields))
    return await request.tell_change("The webhook", before, now)


async def _disable(request: PageRequest) -> Response:
    disabled = (await request.execute("updateWebhook", {"enabled": False})).value
    if disabled.owner.id != request.caller.id:
        return await request.back(Notice("Disabled. The owner is told."))
    undo = Undo(f"{request.own_path}/enable", {}, "Enable it again")
    return await request.back(Notice("Paused. No events are sent.", undo))


async def _enable(request: PageRequest) -> Response:
    await request.execute("updateWebhook", {"enabled": True})
    undo = Undo(f"{request.own_path}/disable")
    return await request.back(Notice("Events are sent again from now on.", undo))


async def _recover(request: PageRequest) -> Response:
    since = _since(request)
    await request.execute("recoverWebhook", since.values(since.typed(request.form)))
    return await request.back(Notice("Missed events are being sent."))


async def _rotate(request: PageRequest) -> Response:
    rotated = await request.execute("rotateWebhook", _GRACE.values(_GRACE.typed(request.form)))
    return request.page("webhook_secret.html", webhook=rotated.value)


_test = executes("testWebhook", "A test is on its way. The newest delivery shows what comes back.")
_retry = executes("retryWebhookDelivery", "The event is sent again.")
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
