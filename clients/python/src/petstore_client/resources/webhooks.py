"""Webhooks of a key."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType

from petstore_client._calls import Call, Listing, given, into, members, nothing, parameters
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client.models import (
    Delivery,
    DeliveryState,
    Replay,
    Webhook,
    WebhookTest,
    WebhookWithSecret,
)


class Webhooks(Resource[D]):
    """Webhooks of your key: ``client.webhooks``. It needs the scope ``webhooks:write``."""

    @operation
    def create(
        self,
        *,
        url: str,
        types: Sequence[str] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WebhookWithSecret]:
        """Create a webhook and return it with its ``secret``, which is returned only once.

        Without ``types`` it gets all events that your key may read.
        """
        return Call(
            *("createWebhook", "POST", "/webhooks", into(WebhookWithSecret)),
            body=given(url=url, types=types, description=description),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, webhook_id: int) -> Call[Webhook]:
        """Return a webhook, without its secret."""
        return Call("getWebhook", "GET", f"/webhooks/{webhook_id:d}", into(Webhook))

    @operation
    def update(
        self,
        webhook_id: int,
        *,
        url: str | UnsetType = UNSET,
        types: Sequence[str] | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        enabled: bool | UnsetType = UNSET,
        resume: Literal["lastSuccess", "now"] | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Webhook]:
        """Change what is named and return the webhook.

        With ``enabled=True``, ``resume`` says where it goes on: after its last success, which is
        the default, or now.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        body = members(
            url=url, types=types, description=description, enabled=enabled, resume=resume
        )
        return Call(
            *("updateWebhook", "PATCH", f"/webhooks/{webhook_id:d}", into(Webhook)),
            body=body,
            if_match=if_match,
        )

    @operation
    def delete(self, webhook_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete a webhook and its deliveries.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        path = f"/webhooks/{webhook_id:d}"
        return Call("deleteWebhook", "DELETE", path, nothing, if_match=if_match)

    @operation
    def rotate(
        self,
        webhook_id: int,
        *,
        grace_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WebhookWithSecret]:
        """Give a webhook a new ``secret`` and return it; it is returned only once.

        The old secret signs deliveries too for ``grace_seconds``, a day by default.
        """
        return Call(
            *("rotateWebhook", "POST", f"/webhooks/{webhook_id:d}/rotate", into(WebhookWithSecret)),
            body=given(grace_seconds=grace_seconds),
            idempotency_key=idempotency_key,
        )

    @operation
    def test(self, webhook_id: int, *, idempotency_key: str | None = None) -> Call[WebhookTest]:
        """Send an event ``webhook.test`` to a webhook."""
        return Call(
            *("testWebhook", "POST", f"/webhooks/{webhook_id:d}/test", into(WebhookTest)),
            idempotency_key=idempotency_key,
        )

    @operation
    def replay(
        self,
        webhook_id: int,
        *,
        since: datetime,
        until: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Replay]:
        """Send the events from ``since`` on, and before ``until``, again."""
        return Call(
            *("replayWebhook", "POST", f"/webhooks/{webhook_id:d}/replay", into(Replay)),
            body=given(since=since, until=until),
            idempotency_key=idempotency_key,
        )

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Webhook]:
        """Iterate over the webhooks of your key."""
        return Listing("listWebhooks", "/webhooks", Webhook, parameters(limit=limit, cursor=cursor))

    pages = paging(list)  # noqa: A003 - the method above

    @listing
    def deliveries(
        self,
        webhook_id: int,
        *,
        state: DeliveryState | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Delivery]:
        """Iterate over the deliveries of a webhook, the newest first."""
        path, query = (
            f"/webhooks/{webhook_id:d}/deliveries",
            parameters(state=state, limit=limit, cursor=cursor),
        )
        return Listing("listWebhookDeliveries", path, Delivery, query)
