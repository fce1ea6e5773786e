"""``petstore webhooks``: where a running service sends the events of your key."""

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.options import ID, MOMENT, TEXT, Duration
from petstore.cli.output import SectionedGroup, print_secret, printable
from petstore.cli.resources import (
    View,
    resource_options,
    show_deleted,
    show_response,
    store_list_options,
    store_options,
    utc,
)
from petstore.clock import SECOND, Milliseconds

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client, Response
    from petstore_client.models import Delivery, DeliveryState, Webhook, WebhookWithSecret

_STATE = click.Choice(["pending", "succeeded", "failed"])


def _line(webhook: "Webhook") -> str:
    types = " ".join(webhook.types) or "all that the key may read"
    line = f"Webhook {webhook.id}: {webhook.url}, {_state(webhook)}, {types}"
    if webhook.last_success_at is not None:
        line += f", last success {utc(webhook.last_success_at)} UTC"
    return line if webhook.description is None else f"{line}, {webhook.description}"


def _state(webhook: "Webhook") -> str:
    if webhook.enabled:
        return "enabled"
    return (
        "disabled" if webhook.disabled_reason is None else f"disabled ({webhook.disabled_reason})"
    )


_WEBHOOKS: "View[Webhook]" = View(
    {
        "id": lambda webhook: webhook.id,
        "url": lambda webhook: webhook.url,
        "types": lambda webhook: " ".join(webhook.types) or "all",
        "enabled": lambda webhook: webhook.enabled,
        "last success (UTC)": lambda webhook: webhook.last_success_at,
        "owner": lambda webhook: f"{webhook.owner.type} {webhook.owner.id}",
        "description": lambda webhook: webhook.description,
    },
    _line,
    ("description", "types", "owner"),
)
_DELIVERIES: "View[Delivery]" = View(
    {
        "id": lambda delivery: delivery.id,
        "event": lambda delivery: delivery.event_id,
        "type": lambda delivery: delivery.type,
        "resource": lambda delivery: delivery.resource,
        "state": lambda delivery: delivery.state,
        "attempts": lambda delivery: delivery.attempts,
        "status": lambda delivery: delivery.response_status,
        "created (UTC)": lambda delivery: delivery.created_at,
        "next attempt (UTC)": lambda delivery: delivery.next_attempt_at,
        "error": lambda delivery: delivery.error,
    },
    str,
    ("created (UTC)", "event", "resource", "next attempt (UTC)", "error"),
)

_id_argument = click.argument("webhook_id", metavar="ID", type=ID)


@click.group(cls=SectionedGroup)
def webhooks() -> None:
    """Send the events of your key to a server of yours, signed.

    The key needs the scope webhooks:write. Without a key in PETSTORE_KEY, the commands work on the
    database itself; create and rotate need a key.
    """


@webhooks.command()
@click.argument("url", type=TEXT)
@click.option(
    "--type",
    "types",
    type=TEXT,
    multiple=True,
    metavar="TYPE",
    help="A type of events, such as order.placed; may be repeated. [default: all it may read]",
)
@click.option("--description", type=TEXT, help="What it is for.")
@resource_options
def create(*, client: "Client", as_json: bool, **options: Any) -> None:
    """Send events to URL. The secret is printed once, alone on standard output."""
    _print_issued(client.webhooks.create.raw(**options), "created", as_json=as_json)


@webhooks.command("list")
@store_list_options
def list_webhooks(*, client: "Client", **options: Any) -> None:
    """List the webhooks of your key, or of everybody with the scope keys:admin."""
    _WEBHOOKS.show_list(client.webhooks.list, **options)


@webhooks.command()
@_id_argument
@store_options
def show(*, webhook_id: int, client: "Client", as_json: bool) -> None:
    """Show one webhook."""
    _WEBHOOKS.show(client.webhooks.get.raw(webhook_id), as_json=as_json)


@webhooks.command()
@_id_argument
@click.option(
    "--grace",
    type=Duration(),
    default="1d",
    show_default=True,
    help="How long the old secret signs too, such as 1h; 7d at most.",
)
@store_options
def rotate(*, webhook_id: int, grace: Milliseconds, client: "Client", as_json: bool) -> None:
    """Give a webhook a new secret, and print it alone on standard output."""
    issued = client.webhooks.rotate.raw(webhook_id, grace_seconds=grace // SECOND)
    _print_issued(issued, "rotated", as_json=as_json)


@webhooks.command()
@_id_argument
@store_options
def test(*, webhook_id: int, client: "Client", as_json: bool) -> None:
    """Send a test event to a webhook, whatever its types."""
    response = client.webhooks.test.raw(webhook_id)
    event = printable(response.value.event_id)
    line = f"Event {event} will be sent; see petstore webhooks deliveries."
    show_response(response, line, as_json=as_json)


@webhooks.command()
@_id_argument
@click.option("--state", type=_STATE, help="Only those in this state.")
@store_list_options
def deliveries(
    *, webhook_id: int, state: "DeliveryState | None", client: "Client", **options: Any
) -> None:
    """List the deliveries of a webhook, newest first."""
    listed = partial(client.webhooks.deliveries, webhook_id, state=state)
    _DELIVERIES.show_list(listed, **options)


@webhooks.command()
@_id_argument
@click.argument("delivery_id", metavar="DELIVERY", type=ID)
@store_options
def retry(*, webhook_id: int, delivery_id: int, client: "Client", as_json: bool) -> None:
    """Send the event of one delivery again, or now if it is pending."""
    made = client.webhooks.retry.raw(webhook_id, delivery_id)
    line = f"Delivery {made.value.id} will send event {printable(made.value.event_id)}."
    show_response(made, line, as_json=as_json)


@webhooks.command()
@_id_argument
@click.option("--since", type=MOMENT, required=True, help="Such as 2026-12-24T10:00:00Z.")
@store_options
def recover(*, webhook_id: int, since: datetime, client: "Client", as_json: bool) -> None:
    """Send all events again that failed or were never sent since a time."""
    response = client.webhooks.recover.raw(webhook_id, since=since)
    show_response(response, f"Events missed since {utc(since)} UTC will be sent.", as_json=as_json)


@webhooks.command()
@_id_argument
@store_options
def disable(*, webhook_id: int, client: "Client", as_json: bool) -> None:
    """Pause a webhook until it is enabled again."""
    _WEBHOOKS.show(client.webhooks.update.raw(webhook_id, enabled=False), as_json=as_json)


@webhooks.command()
@_id_argument
@store_options
def enable(*, webhook_id: int, client: "Client", as_json: bool) -> None:
    """Send events to a webhook again, from now on."""
    _WEBHOOKS.show(client.webhooks.update.raw(webhook_id, enabled=True), as_json=as_json)


@webhooks.command()
@_id_argument
@store_options
def delete(*, webhook_id: int, client: "Client", as_json: bool) -> None:
    """Delete a webhook and its deliveries."""
    client.webhooks.delete(webhook_id)
    show_deleted("Webhook", webhook_id, as_json=as_json)


def _print_issued(response: "Response[WebhookWithSecret]", done: str, *, as_json: bool) -> None:
    issued = response.value
    print_secret(
        "secret",
        printable(issued.secret),
        f"Webhook {issued.id} {done}. The secret is shown this once.",
        f"webhook {issued.id} was {done}, but nobody saw its secret: petstore webhooks rotate"
        f" {issued.id} issues another",
        response.json() if as_json else None,
    )
