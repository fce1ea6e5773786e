"""``petstore events``: what happens in a running service, and each event to a local address."""

import json
import re
import time
from collections.abc import Mapping
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

import click

from petstore import __version__
from petstore.cli.client import (
    CommandFailure,
    ExitStatus,
    client_of,
    reason_of,
    require_address,
    service_option,
)
from petstore.cli.options import TEXT, SecretOption
from petstore.cli.output import SectionedGroup, printable
from petstore.clock import SECOND, system_clock
from petstore.webhooks.signing import secret_of_text, secret_text, signed_headers

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    import httpx2

    from petstore_client import PetstoreError
    from petstore_client.models import EventType

_URL = re.compile(r"https?://[^\s/?#@]+([/?][^\s#]*)?", re.IGNORECASE)
_SECRET_BYTES = 32
_SECONDS = 10  # in which a receiver responds
_MAX_TEXT = 100
_EXPIRED = (
    "the next events are no longer kept, or an older backup was restored: start again to listen"
    " from now on, or with --from-start to begin with the oldest event that is kept"
)


def forward(client: "httpx2.Client", url: str, secret: bytes, event: Mapping[str, Any]) -> str:
    """Send an event as a webhook does; return the status of the response, or why there is none."""
    import httpx2

    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"petstore/{__version__}",
        **signed_headers(event["id"], system_clock() // SECOND, body, [secret]),
    }
    try:
        with client.stream("POST", url, content=body, headers=headers) as response:
            return f"{response.status_code} {response.reason_phrase}".rstrip()
    except httpx2.TimeoutException:
        return f"no response within {client.timeout.read:g} s"
    except httpx2.TransportError as error:
        return str(error)


class OutageNotice:
    """Waits while the service is away, and prints so: once, until it is back."""

    _is_known = False

    def wait(self, seconds: float, error: "PetstoreError | None") -> None:
        if not self._is_known:
            click.echo(f"{reason_of(error)}; waiting for the service", err=True)
        self._is_known = True
        time.sleep(seconds)

    def end(self) -> None:
        if self._is_known:
            click.echo("The service responds again.", err=True)
        self._is_known = False


def _receiver_url(_ctx: click.Context, _param: click.Parameter, url: str | None) -> str | None:
    if url is not None:
        require_address(url, _URL, "http://localhost:3000/webhooks")
    return url


def _secret(_ctx: click.Context, _param: click.Parameter, text: str | None) -> bytes | None:
    try:
        return None if text is None else secret_of_text(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


@click.group(cls=SectionedGroup)
def events() -> None:
    """See what happens in a running service."""


@events.command()
@click.option(
    "--type", "types", type=TEXT, multiple=True, help="Only events of this type; may be repeated."
)
@click.option("--resource", type=TEXT, help="Only events of this resource, such as pet/17.")
@click.option("--from-start", is_flag=True, help="Begin with the oldest event that is kept.")
@click.option(
    "--forward-to",
    "receiver_url",
    metavar="URL",
    callback=_receiver_url,
    help="Also send each event there by POST, signed like the delivery of a webhook.",
)
@click.option(
    "--secret",
    cls=SecretOption,
    envvar="PETSTORE_LISTEN_SECRET",
    metavar="WHSEC",
    callback=_secret,
    help="Signing secret. [default: a new one, printed at the start]",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as JSON in one line.")
@service_option
def listen(
    *,
    types: "tuple[EventType, ...]",
    resource: str | None,
    from_start: bool,
    receiver_url: str | None,
    secret: bytes | None,
    as_json: bool,
    service: str,
) -> None:
    """Print events as they happen, until Ctrl-C.

    It waits for a service that restarts, and for limits, and neither misses nor repeats an event.
    """
    import httpx2

    from petstore_client.errors import CursorExpired

    cursor = None if from_start else "latest"
    absence = OutageNotice()
    with (
        client_of(service, absence.wait) as client,
        httpx2.Client(timeout=_SECONDS, trust_env=False) as sender,
    ):
        if receiver_url is not None and secret is None:
            secret = token_bytes(_SECRET_BYTES)
            click.echo(f"Webhook signing secret: {secret_text(secret)}", err=True)
        stream = client.events.follow(cursor=cursor, types=types or None, resource=resource)
        try:
            for number, page in enumerate(stream.pages()):
                if number == 0:
                    click.echo("Listening for events; Ctrl-C ends it.", err=True)
                absence.end()
                for event in page.response.json():
                    click.echo(json.dumps(event) if as_json else printable(_line(event)))
                    if receiver_url is not None and secret is not None:
                        outcome = forward(sender, receiver_url, secret, event)
                        click.echo(printable(f"  receiver: {outcome}"), err=True)
        except CursorExpired:
            raise CommandFailure(_EXPIRED, ExitStatus.NOT_FOUND) from None


def _line(event: Mapping[str, Any]) -> str:
    text = ", ".join(_changes(event["data"], event.get("previous")))
    text = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."
    line = f"{event['timestamp']}  {event['type']:<16}  {event['resource']:<11}  {text}"
    actor = event.get("actor") or {}
    by = " ".join(str(actor[name]) for name in ("type", "id") if name in actor)
    return f"{line}  by {by}" if by else line


def _changes(data: Mapping[str, Any], previous: Mapping[str, Any] | None) -> list[str]:
    if previous is None:
        return [f"{name}: {_text(value)}" for name, value in data.items() if name != "id"]
    return [
        f"{name}: {_text(before)} -> {_text(data.get(name))}" for name, before in previous.items()
    ]


def _text(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
