"""``petstore webhooks``: where a running service sends the events of your key."""

from typing import Any, TypedDict

import click

from petstore.cli.client import Client
from petstore.cli.options import ID, Duration
from petstore.cli.output import printable
from petstore.cli.resources import Resources, client_option, list_options, resource_options, utc
from petstore.clock import SECOND, Milliseconds

_STATE = click.Choice(["pending", "succeeded", "failed"])


class Webhook(TypedDict):
    """A webhook as the service returns it."""

    id: int
    url: str
    types: list[str]
    description: str | None
    enabled: bool
    disabledReason: str | None
    createdAt: str
    lastSuccessAt: str | None


class IssuedWebhook(Webhook):
    """A webhook with its new secret."""

    secret: str


class Delivery(TypedDict):
    """A delivery as the service returns it."""

    id: int
    eventId: str
    type: str
    resource: str
    state: str
    attempts: int
    createdAt: str
    nextAttemptAt: str | None
    responseStatus: int | None
    error: str | None


class _Replay(TypedDict):
    deliveries: int


class _WebhookTest(TypedDict):
    eventId: str


def _line(webhook: Webhook) -> str:
    types = " ".join(webhook["types"]) or "all that the key may read"
    line = f"Webhook {webhook['id']}: {webhook['url']}, {_state(webhook)}, {types}"
    if webhook["lastSuccessAt"] is not None:
        line += f", last success {utc(webhook['lastSuccessAt'])} UTC"
    return line if webhook["description"] is None else f"{line}, {webhook['description']}"


def _state(webhook: Webhook) -> str:
    if webhook["enabled"]:
        return "enabled"
    reason = webhook["disabledReason"]
    return "disabled" if reason is None else f"disabled ({reason})"


_COLUMNS = {
    "id": "id",
    "url": "url",
    "types": "types",
    "enabled": "enabled",
    "last success (UTC)": "lastSuccessAt",
    "description": "description",
}
_WEBHOOKS = Resources("/webhooks", Webhook, _COLUMNS, _line, ("description", "types"))
_DELIVERY_COLUMNS = {
    "id": "id",
    "event": "eventId",
    "type": "type",
    "resource": "resource",
    "state": "state",
    "attempts": "attempts",
    "status": "responseStatus",
    "created (UTC)": "createdAt",
    "next attempt (UTC)": "nextAttemptAt",
    "error": "error",
}
_DELIVERY_DISPENSABLE = ("created (UTC)", "event", "resource", "next attempt (UTC)", "error")

_id_argument = click.argument("webhook_id", metavar="ID", type=ID)


@click.group()
def webhooks() -> None:
    """Let a running service send the events of your key to your own service, signed.

    The key needs the scope webhooks:write.
    """


@webhooks.command()
@click.argument("url")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="A type of events, such as order.placed; may be repeated. [default: all it may read]",
)
@click.option("--description", help="What it is for.")
@client_option
def create(*, url: str, types: tuple[str, ...], description: str | None, client: Client) -> None:
    """Send events to URL. The secret is printed once, alone on standard output."""
    new = {"url": url, "types": types, "description": description}
    _print_issued(client.post(_WEBHOOKS.path, new, IssuedWebhook), "created")


@webhooks.command("list")
@list_options
def list_webhooks(**options: Any) -> None:
    """List the webhooks of your key."""
    _WEBHOOKS.show_list([], **options)


@webhooks.command()
@_id_argument
@resource_options
def show(*, webhook_id: int, **options: Any) -> None:
    """Show one webhook."""
    _WEBHOOKS.get(webhook_id, **options)


@webhooks.command()
@_id_argument
@click.option(
    "--grace",
    type=Duration(),
    default="1d",
    show_default=True,
    help="How long the old secret signs too, such as 1h; 7d at most.",
)
@client_option
def rotate(*, webhook_id: int, grace: Milliseconds, client: Client) -> None:
    """Give a webhook a new secret, and print it alone on standard output."""
    body = {"graceSeconds": grace // SECOND}
    _print_issued(client.post(_path(webhook_id, "rotate"), body, IssuedWebhook), "rotated")


@webhooks.command()
@_id_argument
@client_option
def test(*, webhook_id: int, client: Client) -> None:
    """Send a test event to a webhook, whatever its types."""
    event = client.post(_path(webhook_id, "test"), {}, _WebhookTest)["eventId"]
    click.echo(f"Event {printable(event)} will be sent; see petstore webhooks deliveries.")


@webhooks.command()
@_id_argument
@click.option("--state", type=_STATE, help="Only those in this state.")
@list_options
def deliveries(*, webhook_id: int, state: str | None, **options: Any) -> None:
    """List the deliveries of a webhook, newest first."""
    path = _path(webhook_id, "deliveries")
    found = Resources(path, Delivery, _DELIVERY_COLUMNS, str, _DELIVERY_DISPENSABLE)
    found.show_list([("state", state)], **options)


@webhooks.command()
@_id_argument
@click.option("--since", required=True, metavar="TIME", help="Such as 2026-12-24T10:00:00Z.")
@click.option("--until", metavar="TIME", help="Only events before this time.")
@client_option
def replay(*, webhook_id: int, since: str, until: str | None, client: Client) -> None:
    """Send the events since a time again."""
    window = {"since": since} if until is None else {"since": since, "until": until}
    count = client.post(_path(webhook_id, "replay"), window, _Replay)["deliveries"]
    click.echo(f"{count} events will be sent again.")


@webhooks.command()
@_id_argument
@resource_options
def disable(*, webhook_id: int, **options: Any) -> None:
    """Pause a webhook until it is enabled again."""
    _WEBHOOKS.change(webhook_id, {"enabled": False}, **options)


@webhooks.command()
@_id_argument
@click.option(
    "--resume",
    type=click.Choice(["last-success", "now"]),
    default="last-success",
    show_default=True,
    help="Continue after its last success, or skip the events since then.",
)
@resource_options
def enable(*, webhook_id: int, resume: str, **options: Any) -> None:
    """Send events to a webhook again."""
    wanted = "now" if resume == "now" else "lastSuccess"
    _WEBHOOKS.change(webhook_id, {"enabled": True, "resume": wanted}, **options)


def _path(webhook_id: int, rest: str) -> str:
    return f"{_WEBHOOKS.path}/{webhook_id}/{rest}"


def _print_issued(issued: IssuedWebhook, done: str) -> None:
    # The secret comes last: if it cannot be written, the user knows which webhook to rotate.
    click.echo(f"Webhook {issued['id']} {done}. The secret is shown this once.", err=True)
    click.echo(printable(issued["secret"]))
