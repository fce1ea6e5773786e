"""What can go wrong between a client and the service, and the exit status that tells a script."""

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus
from typing import NamedTuple, TypedDict, TypeVar

import click

from petstore.cli.tables import printable
from petstore.clock import SECOND, Milliseconds, rfc3339

T = TypeVar("T")

_WINDOW_SECONDS = 60
_SECONDS = re.compile(r"[0-9]{1,8}", re.ASCII)
# 502 and 504 are what a proxy says of a service that is just starting again.
_OVERLOADED = {502, 503, 504}


class ExitStatus(IntEnum):
    """What kind of failure a command ended with."""

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
}


class Failure(click.ClickException):
    """What a command ends with: one line, and an exit status."""

    def __init__(self, message: str, status: ExitStatus) -> None:
        super().__init__(printable(message))
        self.exit_code = status  # type: ignore[misc] # which click reads of the instance


class PassingFailure(Failure):
    """What may be over after a while, of so many ``seconds`` if the service says so."""

    def __init__(self, message: str, status: ExitStatus, notice: str, seconds: int = 0) -> None:
        super().__init__(message, status)
        self.notice = notice
        self.seconds = seconds


class Response(NamedTuple):
    """What a service answered."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class _ErrorBody(TypedDict):
    code: str
    message: str


def decoded(answer: Response, kind: type[T]) -> T:
    """Return the body of ``answer``, all of it, if it has at least what ``kind`` has.

    Raises:
        Failure: it has not, so that this is no Petstore service.
    """
    import msgspec

    try:
        value: T = json.loads(answer.body)
        msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        raise strange(answer) from None
    return value


def refusal(answer: Response, now: Milliseconds) -> Failure:
    """Return what an answer means that is not a success."""
    is_fault = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    try:
        error = decoded(answer, _ErrorBody)
        of_others = ExitStatus.SERVICE if is_fault else ExitStatus.FAILED
        status = _EXIT_STATUSES.get(answer.status, of_others)
        if error["code"] == "unknown_pet":
            status = ExitStatus.NOT_FOUND
        if answer.status == HTTPStatus.NOT_FOUND and "X-RateLimit-Limit" not in answer.headers:
            return strange(answer)  # the address leads past the interface
    except Failure as failure:  # a proxy's answer, or that of another service
        # A proxy says 502, 503 or 504 of a service that is where it should be, but away.
        is_away = answer.status in _OVERLOADED
        msg = f"{answer.url} is not available now: it answers {answer.status}"
        error = _ErrorBody(code="", message=msg if is_away else failure.message)
        status = ExitStatus.SERVICE
    message = error["message"]
    if is_fault and "X-Request-Id" in answer.headers:
        message += f" (request {answer.headers['X-Request-Id']})"
    seconds = _retry_after(answer)
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        seconds = seconds or _WINDOW_SECONDS
        message += f", until {rfc3339(now + seconds * SECOND)}"
        is_ban = error["code"] == "api_key_banned"
        notice = "The key is banned." if is_ban else "The limit is reached."
        return PassingFailure(message, ExitStatus.LIMIT, notice, seconds)
    if answer.status in _OVERLOADED:
        return PassingFailure(message, status, "The service is not available.", seconds)
    if error["code"] == "idempotency_key_in_use":
        return PassingFailure(message, status, "The first try is still under way.", seconds)
    return Failure(message, status)


def strange(answer: Response) -> Failure:
    """Return what to say of an answer that a Petstore service does not give."""
    is_redirect = answer.status >= HTTPStatus.MULTIPLE_CHOICES and "Location" in answer.headers
    what = (
        f"redirects to {answer.headers['Location']}" if is_redirect else f"answers {answer.status}"
    )
    msg = f"{answer.url} {what}, not as a Petstore service does: check --url"
    return Failure(msg, ExitStatus.SERVICE)


def lost(url: str, method: str, error: Exception) -> PassingFailure:
    """Return what to say of a request that was sent and got no answer."""
    from urllib3.exceptions import TimeoutError as NoAnswerInTime

    if isinstance(error, NoAnswerInTime):
        msg = f"{url} did not answer in time"
    else:
        msg = f"{url} broke the connection off, or does not speak HTTP"
    if method != "GET":
        msg += "; it is not known whether the request was carried out"
    return PassingFailure(msg, ExitStatus.SERVICE, "No answer came.")


def unreachable(url: str, error: Exception) -> PassingFailure:
    """Return what to say of a connection that did not come about."""
    cause = error.__cause__ or error
    msg = f"cannot reach {url}: {getattr(cause, 'strerror', None) or cause}"
    return PassingFailure(msg, ExitStatus.SERVICE, "The service cannot be reached.")


def insecure(url: str, error: Exception) -> Failure:
    """Return what to say of a connection that TLS does not vouch for."""
    return Failure(f"no secure connection to {url}: {error}", ExitStatus.SERVICE)


def _retry_after(answer: Response) -> int:
    """Return how long the service asks to wait, 0 if it does not say."""
    value = answer.headers.get("Retry-After", "")
    return int(value) if _SECONDS.fullmatch(value) else 0
