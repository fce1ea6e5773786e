"""``petstore webhooks``: where a running service sends the events of your key."""

from functools import partial
from typing import TYPE_CHECKING

from petstore.cli.client import store_client_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import SectionedGroup, print_secret, printable
from petstore.cli.resources import View, show_response

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import Delivery, Webhook, WebhookTest, WebhookWithSecret


def _state(webhook: "Webhook") -> str:
    if webhook.enabled:
        return "enabled"
    reason = webhook.disabled_reason
    return "disabled" if reason is None else f"disabled ({reason})"


_WEBHOOKS: "View[Webhook]" = View(
    {
        "id": "id",
        "url": "url",
        "state": _state,
        "types": lambda webhook: " ".join(webhook.types) or "all",
        "last success (UTC)": "last_success_at",
        "owner": lambda webhook: f"{webhook.owner.type} {webhook.owner.id}",
        "description": "description",
    },
    ("description", "types", "owner"),
    ("id", "owner"),
)
_DELIVERIES: "View[Delivery]" = View(
    {
        "id": "id",
        "event": "event_id",
        "type": "type",
        "resource": "resource",
        "state": "state",
        "attempts": "attempts",
        "status": "response_status",
        "created (UTC)": "created_at",
        "next attempt (UTC)": "next_attempt_at",
        "error": "error",
    },
    ("created (UTC)", "event", "resource", "next attempt (UTC)", "error"),
)


def _print_issued(
    response: "Response[WebhookWithSecret]", done: str = "rotated", *, as_json: bool
) -> None:
    issued = response.value
    print_secret(
        "secret",
        printable(issued.secret),
        f"Webhook {issued.id} {done}. The secret is shown this once.",
        f"webhook {issued.id} was {done}, but its secret was not shown: petstore webhooks rotate"
        f" {issued.id} issues another",
        response.json() if as_json else None,
    )


def _print_test(response: "Response[WebhookTest]", *, as_json: bool) -> None:
    event = printable(response.value.event_id)
    line = f"Event {event} will be sent; see petstore webhooks deliveries."
    show_response(response, line, as_json=as_json)


def _print_retry(response: "Response[Delivery]", *, as_json: bool) -> None:
    made = response.value
    line = f"Delivery {made.id} will send event {printable(made.event_id)}."
    show_response(response, line, as_json=as_json)


def _print_recovery(response: "Response[Webhook]", *, as_json: bool) -> None:
    line = f"Events that webhook {response.value.id} missed will be sent."
    show_response(response, line, as_json=as_json)


webhooks = SectionedGroup(
    "webhooks",
    help="""Send the events of your key to a server of yours, signed.

    The key needs the scope webhooks:write. Without a key in PETSTORE_KEY, the commands work on the
    database itself; create and rotate need a key.
    """,
)
_command = partial(OperationCommand, view=_WEBHOOKS, client=store_client_option)
_move = partial(_command, operation_id="updateWebhook", method="webhooks.update", only=[])
webhooks.add_commands(
    OperationCommand(
        "create",
        "createWebhook",
        "webhooks.create",
        arguments=["url"],
        show=partial(_print_issued, done="created"),
        help="Send events to URL. The secret is printed once, alone on standard output.",
    ),
    _command("list", "listWebhooks", "webhooks.list"),
    _command("show", "getWebhook", "webhooks.get"),
    _command(
        "change",
        "updateWebhook",
        "webhooks.update",
        left_out=["enabled"],
        words={"url": "endpoint"},
    ),
    _command(
        "rotate",
        "rotateWebhook",
        "webhooks.rotate",
        show=_print_issued,
        help="Give a webhook a new secret, and print it alone on standard output.",
    ),
    _command("test", "testWebhook", "webhooks.test", show=_print_test),
    _command("deliveries", "listWebhookDeliveries", "webhooks.deliveries", view=_DELIVERIES),
    _command("retry", "retryWebhookDelivery", "webhooks.retry", show=_print_retry),
    _command("recover", "recoverWebhook", "webhooks.recover", show=_print_recovery),
    _move("disable", fixed={"enabled": False}, help="Pause a webhook until it is enabled again."),
    _move("enable", fixed={"enabled": True}, help="Send events to a webhook again, from now on."),
    _command("delete", "deleteWebhook", "webhooks.delete"),
)
