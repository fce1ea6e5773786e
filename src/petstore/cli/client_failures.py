"""How requests to a service fail: the exit status and the message of each error of the client."""

from enum import IntEnum
from typing import TYPE_CHECKING

import click

from petstore.cli.output import printable
from petstore.clock import SECOND, Milliseconds, rfc3339

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import PetstoreError

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

_FAULT = 500


class ExitStatus(IntEnum):
    """The kind of failure a command ended with."""

    FAILED = 1
    REFUSED = 2
    NOT_FOUND = 3
    CONFLICT = 4
    KEY = 5
    SERVICE = 6
    LIMIT = 7


_EXIT_STATUSES = {
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
    """Return how a command fails with an error of the client."""
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
    if not isinstance(error, ErrorResponse) or error.status is None or error.status >= _FAULT:
        return CommandFailure(message, ExitStatus.SERVICE)
    if isinstance(error, (UnknownCategory, UnknownPet)):
        return CommandFailure(message, ExitStatus.NOT_FOUND)
    return CommandFailure(message, _EXIT_STATUSES.get(error.status, ExitStatus.FAILED))


def notice_of(error: "PetstoreError | None") -> str:
    """Return why a client waits, in a sentence; without an error, for the limit of its key."""
    from petstore_client.errors import IdempotencyKeyInUse, KeyBanned, NoResponse, RateLimited

    match error:
        case KeyBanned():
            return "The key is banned."
        case None | RateLimited():
            return "The limit is reached."
        case IdempotencyKeyInUse():
            return "The first try is still under way."
        case NoResponse():
            return "The service does not respond."
        case _:
            return "The service is not available."
