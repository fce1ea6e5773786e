"""The client of the commands: where the service is, the key, waits, and how requests fail."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from enum import IntEnum
from functools import partial, wraps
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from petstore.cli import INTERRUPTED, end_at_once
from petstore.cli.options import KEY, Command, read_secret, settings_options
from petstore.cli.output import (
    counted,
    plain_failures,
    printable,
    progress,
    replacing_text,
    text_output,
)
from petstore.clock import SECOND, Milliseconds, rfc3339, system_clock
from petstore.domain.csv_files import csv_writer
from petstore.keys.model import Environment
from petstore.settings import Settings, is_postgres, sqlite_path

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client, PetstoreError

Wait: TypeAlias = Callable[[float, "PetstoreError | None"], object]
"""Waits for seconds, because of an error or, without one, for the limit of the key."""

_MAX_WAIT_SECONDS = 600
_MAX_RETRIES = 3
# A shorter wait is not worth a message.
_NOTABLE_SECONDS = 0.5
BOM = "\ufeff"
"""What a file begins with, so that spreadsheets see that it is in UTF-8."""

_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.IGNORECASE)
_KEY = re.compile(r"[!-~]+")


def require_address(url: str, form: re.Pattern[str], example: str) -> None:
    """Refuse a ``url`` without quoting it in the message: it may hold a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port, (parts.hostname or "").encode("idna")
        is_address = (parts.path + parts.query).isascii() and form.fullmatch(url)
    except ValueError:  # of either
        is_address = None
    if not is_address:
        msg = f"expected an address such as {example}, without user name and password."
        raise click.BadParameter(msg)


def _base_url(_ctx: click.Context, _param: click.Parameter, url: str) -> str:
    """Return the base URL of the service at ``url``, with or without ``/v1`` at its end."""
    require_address(url, _URL, "https://shop.example")
    return f"{url.rstrip('/').removesuffix('/v1')}/v1"


service_option = click.option(
    "--url",
    "service",
    metavar="URL",
    callback=_base_url,
    envvar="PETSTORE_URL",
    show_envvar=True,
    default="http://127.0.0.1:8000",
    show_default=True,
    help=f"The URL of the service. The key comes from the environment alone: {KEY} or {KEY}_FILE.",
)


file_argument = click.argument(
    "file", type=click.Path(dir_okay=False, writable=True, path_type=Path), default="-"
)


def client_option(command: Command) -> Command:
    @service_option
    @wraps(command)
    def run(*, service: str, **options: Any) -> Any:
        with client_of(service) as client:
            return command(client=client, **options)

    return run  # type: ignore[return-value] # it takes what click gives it


def store_client_option(command: Command, *, creates: bool = False) -> Command:
    """Give a command of an administrator its options, and a ``client``.

    With a key, the client sends requests to the service. Without one, or with ``--database``, it
    carries them out in this process, as the operator; ``creates`` makes a store if there is none.
    """

    @service_option
    @settings_options("database", environment="Without a key: the environment to work in.")
    @click.pass_context
    @wraps(command)
    def run(
        ctx: click.Context,
        /,
        *,
        service: str,
        database: str,
        environment: Environment,
        **options: Any,
    ) -> Any:
        if not _is_over_http(ctx):
            settings = Settings(database=database, environment=environment)
            if ctx.get_parameter_source("service") is ParameterSource.DEFAULT:
                public = os.environ.get("PETSTORE_PUBLIC_URL", "")
                settings = replace(settings, public_url=public)
            with _reported(partial(_operator, settings, service, creates=creates)) as client:
                return command(client=client, **options)
        try:
            with client_of(service) as client:
                return command(client=client, **options)
        except CommandFailure as failure:
            if failure.exit_code != ExitStatus.KEY:
                raise
            message = f"{failure.message}; unset {KEY} to work on the database itself"
            raise CommandFailure(message, failure.exit_code) from failure.__cause__

    return run  # type: ignore[return-value] # it takes what click gives it


@plain_failures()
def _operator(settings: Settings, service: str, *, creates: bool) -> "Client":
    from petstore.backends import has_file, require_store
    from petstore.cli.operator import OperatorTransport
    from petstore_client import Client

    settings.check()
    if not creates:
        require_store(settings.database, f"; to work over HTTP, set {KEY}")
    elif not is_postgres(settings.database):  # perhaps the folder is the wrong one
        path = sqlite_path(settings.database)
        if not has_file(path):
            click.echo(f"No database at {path.absolute()}; creating it.", err=True)
    root = settings.public_url.rstrip("/") or service.removesuffix("/v1")
    transport = OperatorTransport(settings, root)
    return Client("operator", f"{root}/v1", max_retries=0, transport=transport)


def _is_over_http(ctx: click.Context) -> bool:
    database, environment = map(ctx.get_parameter_source, ("database", "environment"))
    if database is ParameterSource.COMMANDLINE or not read_secret(KEY):
        return False
    if database is ParameterSource.ENVIRONMENT:
        msg = (
            f"{KEY} and PETSTORE_DATABASE are both set: unset one of them, or name --database to"
            " work on the database itself"
        )
        raise click.UsageError(msg, ctx)
    if environment is ParameterSource.COMMANDLINE:
        msg = f"--environment: expected only without {KEY}: a key has an environment of its own"
        raise click.UsageError(msg, ctx)
    return True


def client_of(
    service: str, wait: Wait | None = None, resume_hint: str = ""
) -> AbstractContextManager["Client"]:
    """A failed request, or Ctrl-C, ends the command with one line and the ``resume_hint``."""
    return _reported(partial(_client, service, wait or wait_out), resume_hint)


@contextmanager
def _reported(connect: Callable[[], "Client"], resume_hint: str = "") -> Iterator["Client"]:
    from petstore_client.errors import BadRequest, PetstoreError

    try:
        with connect() as client, interruptible(resume_hint):
            yield client
    except PetstoreError as error:
        failure = failure_of(error, system_clock())
        hint = f"; {resume_hint}" if resume_hint and not isinstance(error, BadRequest) else ""
        raise CommandFailure(failure.message + hint, failure.exit_code) from error


@contextmanager
def interruptible(outcome: str = "") -> Iterator[None]:
    """Let a block clean up after Ctrl-C. If it has an ``outcome``, one line says so."""
    ends_at_once = signal.getsignal(signal.SIGINT) is end_at_once
    if ends_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if not outcome:
            raise click.exceptions.Exit(INTERRUPTED) from None
        raise CommandFailure(f"interrupted: {outcome}", INTERRUPTED) from None
    finally:
        if ends_at_once:
            signal.signal(signal.SIGINT, end_at_once)


def wait_out(seconds: float, error: "PetstoreError | None") -> None:
    if seconds >= _NOTABLE_SECONDS:
        click.echo(f"{reason_of(error)}; trying again in {ceil(seconds)} s", err=True)
    time.sleep(seconds)


def reason_of(error: "PetstoreError | None") -> str:
    return printable(str(error)) if error else "the rate limit of your key is reached"


def export_csv(
    file: Path,
    service: str,
    noun: str,
    columns: Sequence[str],
    pages: Callable[["Client"], Iterator[list[dict[str, Any]]]],
    *,
    spreadsheet_safe: bool,
) -> None:
    to_stdout = str(file) == "-"
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(),
        progress("Exporting") as on_progress,
        client_of(service, resume_hint=outcome) as client,
        nullcontext(text_output()) if to_stdout else replacing_text(file) as out,
    ):
        if not to_stdout:
            out.write(BOM)
        write, count = csv_writer(out, columns, spreadsheet_safe=spreadsheet_safe), 0
        for rows in pages(client):
            for row in rows:
                write(row)
            count += len(rows)
            on_progress(count, None)
    click.echo(f"{counted(count, noun)} exported.", err=True)


def _client(service: str, wait: Wait) -> "Client":
    from petstore_client import Client

    key = read_key()
    try:
        return Client(key, service, max_retries=_MAX_RETRIES, max_wait=_MAX_WAIT_SECONDS, wait=wait)
    except ValueError as error:  # of the environment: a proxy that cannot be used
        raise CommandFailure(str(error), ExitStatus.FAILED) from error


def read_key() -> str:
    # From the environment alone: others on the machine can read a command line.
    key = (read_secret(KEY) or "").strip()
    if not key:
        msg = f"no key: put your API key into the environment variable {KEY}"
        raise CommandFailure(msg, ExitStatus.KEY)
    if not _KEY.fullmatch(key):
        msg = f"{KEY}: expected an API key, which has no spaces and no special characters"
        raise CommandFailure(msg, ExitStatus.KEY)
    return key


class ExitStatus(IntEnum):
    FAILED = 1
    REFUSED = 2
    NOT_FOUND = 3
    CONFLICT = 4
    KEY = 5
    SERVICE = 6
    LIMIT = 7


_EXIT_STATUSES: dict[int, ExitStatus] = {
    400: ExitStatus.REFUSED,
    401: ExitStatus.KEY,
    403: ExitStatus.KEY,
    404: ExitStatus.NOT_FOUND,
    409: ExitStatus.CONFLICT,
    410: ExitStatus.NOT_FOUND,
    412: ExitStatus.CONFLICT,
    413: ExitStatus.REFUSED,
    422: ExitStatus.REFUSED,
    429: ExitStatus.LIMIT,
}


class CommandFailure(click.ClickException):
    """The failure of a command: one line and an exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(printable(message))
        self.exit_code = status  # type: ignore[misc] # which click reads of the instance


def failure_of(error: "PetstoreError", now: Milliseconds) -> CommandFailure:
    from petstore_client.errors import (
        ErrorResponse,
        RateLimited,
        Unauthorized,
        UnexpectedResponse,
        UnknownCategory,
        UnknownPet,
    )

    message = str(error)
    if isinstance(error, UnexpectedResponse):
        message += ": check --url"
    if isinstance(error, Unauthorized):
        message += ": check PETSTORE_KEY"
    if isinstance(error, RateLimited) and error.retry_after is not None:
        message += f", until {rfc3339(now + int(error.retry_after * SECOND))}"
    status = error.status if isinstance(error, ErrorResponse) else None
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return CommandFailure(message, ExitStatus.SERVICE)
    if isinstance(error, (UnknownCategory, UnknownPet)):
        return CommandFailure(message, ExitStatus.NOT_FOUND)
    return CommandFailure(message, _EXIT_STATUSES.get(status, ExitStatus.FAILED))
