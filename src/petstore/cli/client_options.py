"""What every command has that asks a running service."""

import re
from typing import Any

import click

from petstore.cli.client import Client
from petstore.cli.client_failures import ExitStatus, Failure
from petstore.cli.environment import read_secret
from petstore.cli.option_types import Integer

KEY = "PETSTORE_KEY"
"""The environment variable with the API key; there is no option for it."""

_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.IGNORECASE)
_KEY = re.compile(r"[!-~]+")

ID = Integer(1, 2**63 - 1)


class ServiceUrl(click.ParamType[str]):
    """The address of a service, with the path segment ``/v1`` or without."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the base address, which ends in ``/v1``."""
        from urllib3.exceptions import LocationParseError
        from urllib3.util import parse_url

        try:
            parse_url(value)
            is_url = _URL.fullmatch(value)
        except LocationParseError:
            is_url = None
        if not is_url:
            self.fail(f"{value!r}: expected an address such as https://shop.example.", param, ctx)
        return f"{value.rstrip('/').removesuffix('/v1')}/v1"


def _client(_ctx: click.Context, _param: click.Parameter, url: str) -> Client:
    """Return a client for the key of the environment: others can read a command line."""
    key = (read_secret(KEY) or "").strip()
    if not key:
        msg = f"no key: put your API key into the environment variable {KEY}"
        raise Failure(msg, ExitStatus.KEY)
    if not _KEY.fullmatch(key):
        msg = f"{KEY}: expected an API key, which has no spaces and no special characters"
        raise Failure(msg, ExitStatus.KEY)
    return Client(url, key)


client_option = click.option(
    "--url",
    "client",
    type=ServiceUrl(),
    callback=_client,
    envvar="PETSTORE_URL",
    show_envvar=True,
    default="http://127.0.0.1:8000",
    show_default=True,
    help=f"Where the service is. The key comes from the environment alone: {KEY} or {KEY}_FILE.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
