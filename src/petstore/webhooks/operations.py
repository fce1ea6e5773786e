"""The operations on the webhooks of a key."""

from collections.abc import Collection
from functools import partial
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from petstore.clock import SECOND, milliseconds
from petstore.databases.contract import mapped
from petstore.errors import (
    EventNotKept,
    InvalidWebhookUrl,
    NotOwner,
    SecretAlreadyShown,
    TooManyWebhooks,
    WebhookDisabled,
    WebhooksNotConfigured,
)
from petstore.events.model import scope_of
from petstore.interface.authentication import require_scope
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Result, Success
from petstore.interface.pages import PageQuery, page_result
from petstore.interface.resource import Resource
from petstore.keys.model import Caller
from petstore.webhooks.deliveries import list_deliveries, recover, retry
from petstore.webhooks.model import (
    Delivery,
    DeliveryState,
    Recovery,
    SecretRotation,
    Webhook,
    WebhookCreate,
    WebhookPatch,
    WebhookTest,
    check_url,
    in_order,
)
from petstore.webhooks.signing import secret_text, webhook_secrets
from petstore.webhooks.store import (
    IssuedSecret,
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    has_webhooks,
    list_webhooks,
    record_test,
    require_own,
    rotate_webhook,
)


class WebhookWithSecret(Webhook, frozen=True):
    """A webhook and its secret, which is shown only once."""

    secret: Annotated[
        str,
        Meta(
            description=("The secret that signs the deliveries: `whsec_` and 32 bytes in base64.")
        ),
    ]


class ListWebhooksQuery(PageQuery, frozen=True):
    failing: (
        Annotated[
            Literal["true"],
            Meta(description="`true`: only those that fail, or that the service disabled."),
        ]
        | UnsetType
    ) = UNSET


class ListDeliveriesQuery(PageQuery, frozen=True):
    state: Annotated[DeliveryState, Meta(description="Filters by state.")] | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListWebhooksQuery]) -> Result[list[Webhook]]:
    query, store = call.query, context.services.store
    failing = query.failing is not UNSET
    page = await list_webhooks(store, context.caller, query.after, query.limit, failing=failing)
    return page_result(page)


async def _create(context: Context, call: Call[WebhookCreate, None]) -> Result[WebhookWithSecret]:
    new, services = call.body, context.services
    check_url(new.url, services.settings.webhook_networks)
    _check_types(new.types, context.caller)
    # Where there are webhooks but no file, it is lost: a new one would silently end their secrets.
    if not await has_webhooks(services.store):
        services.webhook_secret.create()
    show = partial(_with_secret, services.webhook_secret.read())
    unit = create_webhook(new, context.caller.id, services.clock())
    told = "the first request created webhook {id} and showed its secret; rotate it to get another"
    return await change(context, mapped(unit, show), shown_once=told)


async def _get(context: Context, call: Call[None, None]) -> Result[Webhook]:
    return Result(await get_webhook(context.services.store, call.path_id, context.caller))


async def _update(context: Context, call: Call[WebhookPatch, None]) -> Result[Webhook]:
    patch = call.body
    if patch.url is not UNSET:
        check_url(patch.url, context.services.settings.webhook_networks)
    if patch.types is not UNSET:
        _check_types(patch.types, context.caller)
    return await change(context, change_webhook(context.change, call.path_id, patch))


async def _rotate(context: Context, call: Call[SecretRotation, None]) -> Result[WebhookWithSecret]:
    show = partial(_with_secret, context.services.webhook_secret.read())
    unit = rotate_webhook(context.change, call.path_id, call.body.grace_seconds * SECOND)
    told = "the first request rotated webhook {id} and showed its secret; rotate it to get another"
    return await change(context, mapped(unit, show), shown_once=told)


async def _test(context: Context, call: Call[None, None]) -> Result[WebhookTest]:
    return await change(context, record_test(context.change, call.path_id))


async def _list_deliveries(
    context: Context, call: Call[None, ListDeliveriesQuery]
) -> Result[list[Delivery]]:
    store, query = context.services.store, call.query
    require_own(await get_webhook(store, call.path_id, context.caller), context.caller)
    page = await list_deliveries(store, call.path_id, query.state, query.after, query.limit)
    return page_result(page)


async def _retry(context: Context, call: Call[None, None]) -> Result[Delivery]:
    return await change(context, retry(context.change, call.path_id, call.child_id))


async def _recover(context: Context, call: Call[Recovery, None]) -> Result[Webhook]:
    since = milliseconds(call.body.since)
    return await change(context, recover(context.change, call.path_id, since))


def _check_types(types: Collection[str], caller: Caller) -> None:
    for kind in in_order(types):
        require_scope(caller, scope_of(kind), f" to read {kind}")


def _with_secret(master: bytes, issued: IssuedSecret) -> WebhookWithSecret:
    (secret,) = webhook_secrets(master, issued.webhook.id, issued.version, None, 0)
    return WebhookWithSecret(**asdict(issued.webhook), secret=secret_text(secret))


_ONE = "/webhooks/{webhookId}"
_DELIVERIES = f"{_ONE}/deliveries"
_WEBHOOK = {
    "id": 2,
    "url": "https://shop.example/hooks",
    "types": ["order.placed"],
    "description": "The website",
    "enabled": True,
    "disabledReason": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "lastSuccessAt": None,
    "failingSince": None,
    "owner": {"type": "key", "id": 4},
}
_ISSUED = _WEBHOOK | {"secret": "whsec_" + 42 * "A" + "8="}
_DELIVERY = {
    "id": 12,
    "eventId": "evt_5f1c3c6a9a3d2b3f0a7e9d10",
    "type": "order.placed",
    "resource": "order/3",
    "state": "pending",
    "attempts": 1,
    "createdAt": "2026-11-21T10:05:00.120Z",
    "lastAttemptAt": "2026-11-21T10:05:00.180Z",
    "nextAttemptAt": "2026-11-21T10:05:05.410Z",
    "responseStatus": 500,
    "responseBody": "out of order",
    "error": "the receiver responded with 500 Internal Server Error, not 2xx",
}
_TEST = {"eventId": _DELIVERY["eventId"]}
_AGAIN = "2026-11-21T12:00:00.000Z"
_RETRY = _DELIVERY | {"id": 40, "attempts": 0, "createdAt": _AGAIN, "nextAttemptAt": _AGAIN}
_RETRY |= dict.fromkeys(("lastAttemptAt", "responseStatus", "responseBody", "error"))

_RESOURCE = Resource(
    *(Webhook, "/webhooks", "Webhooks", "a webhook", "webhooks:write", "webhooks:write", _WEBHOOK),
    no_store=True,
)

OPERATIONS = (
    _RESOURCE.list(
        *(_list, ListWebhooksQuery),
        "Returns a page of the webhooks of your key, by ascending `id`. With the scope"
        " `keys:admin` it lists all webhooks.",
        cached=False,
    ),
    _RESOURCE.row(
        *("createWebhook", "POST", "/webhooks", "Create a webhook"),
        "Sends later events of these types to a URL. Each delivery is signed with the"
        " `secret`, which is shown only once. A webhook belongs to your key: it gets the"
        " events that the key may read, and ends with the key. A key has up to 16 webhooks.",
        *(_create, Success(201, "The webhook and its secret.", WebhookWithSecret, _ISSUED)),
        body=WebhookCreate,
        body_example={"url": "https://shop.example/hooks", "types": ["order.placed"]},
        errors=(*(InvalidWebhookUrl, TooManyWebhooks, WebhooksNotConfigured, SecretAlreadyShown),),
    ),
    _RESOURCE.get(_get, "Returns one webhook, without its secret."),
    _RESOURCE.row(
        *("updateWebhook", "PATCH", _ONE, "Change a webhook"),
        "Changes the fields in the body (RFC 7396). A webhook that is enabled again resumes"
        " with the events from now on. `recoverWebhook` sends those that it missed. With the"
        " scope `keys:admin` you can disable the webhooks of others.",
        *(_update, Success(200, "The webhook as it is now.", Webhook, _WEBHOOK)),
        body=WebhookPatch,
        body_example={"enabled": True},
        errors=(InvalidWebhookUrl, NotOwner),
    ),
    _RESOURCE.delete(
        delete_webhook,
        "Deletes a webhook. Its pending deliveries are not sent.",
        errors=(NotOwner,),
    ),
    _RESOURCE.row(
        *("rotateWebhook", "POST", f"{_ONE}/rotate", "Rotate the secret of a webhook"),
        "Gives a webhook a new secret, which is shown only once. For `graceSeconds`"
        " deliveries are signed with the old secret too.",
        *(_rotate, Success(200, "The webhook and its new secret.", WebhookWithSecret, _ISSUED)),
        body=SecretRotation,
        body_example={"graceSeconds": 3600},
        body_required=False,
        errors=(WebhooksNotConfigured, SecretAlreadyShown, NotOwner),
    ),
    _RESOURCE.row(
        *("testWebhook", "POST", f"{_ONE}/test", "Test a webhook"),
        "Sends an event `webhook.test` to this webhook only, whatever its types. Its"
        " deliveries show the outcome.",
        *(_test, Success(202, "The event will be sent.", WebhookTest, _TEST)),
        errors=(WebhookDisabled, NotOwner),
    ),
    _RESOURCE.row(
        *("listWebhookDeliveries", "GET", _DELIVERIES, "List the deliveries of a webhook"),
        "Returns a page of the deliveries of a webhook, newest first, each with the outcome"
        " of its last attempt. With `state`, a page may have fewer than `limit` even if there"
        " are more: follow `Link`.",
        *(_list_deliveries, Success(200, "A page of deliveries.", list[Delivery], [_DELIVERY])),
        query=ListDeliveriesQuery,
        errors=(NotOwner,),
    ),
    _RESOURCE.row(
        *("retryWebhookDelivery", "POST", f"{_DELIVERIES}/{{deliveryId}}/retry"),
        "Send one event again",
        "Sends the event of a delivery again, even if it succeeded. Returns the delivery"
        " that sends it: a new one, or the pending one of this event, whose next attempt is"
        " then made now. The id of the event stays the same.",
        *(_retry, Success(202, "The event will be sent.", Delivery, _RETRY)),
        errors=(WebhookDisabled, EventNotKept, NotOwner),
    ),
    _RESOURCE.row(
        *("recoverWebhook", "POST", f"{_ONE}/recover", "Send missed events again"),
        "Sends all events since a time whose delivery has failed, or that were never sent to"
        " this webhook. Their ids stay the same. This happens in the background, in the order"
        " of the feed; while 1,000 deliveries are pending it waits.",
        *(_recover, Success(202, "The events will be sent.", Webhook, _WEBHOOK)),
        body=Recovery,
        body_example={"since": "2026-11-21T10:00:00Z"},
        errors=(WebhookDisabled, NotOwner),
    ),
)
