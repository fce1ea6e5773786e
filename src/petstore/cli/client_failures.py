"""The failures of requests to a service, each with its exit status."""

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus
from typing import NamedTuple, TypedDict, TypeVar

import click

from petstore.cli.output import printable
from petstore.clock import SECOND, Milliseconds, rfc3339

T = TypeVar("T")

_WINDOW_SECONDS = 60
_SECONDS = re.compile(r"[0-9]{1,8}", re.ASCII)
# A proxy responds with 502 or 504 for a service that is restarting.
_OVERLOADED = {502, 503, 504}


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
}


class Failure(click.ClickException):
    """The failure of a command: one line, an exit status, and the ``code`` of an Error body."""

    def __init__(self, message: str, status: ExitStatus, code: str = "") -> None:
        super().__init__(printable(message))
        self.exit_code = status  # type: ignore[misc] # which click reads of the instance
        self.code = code


class PassingFailure(Failure):
    """A failure that may pass, after ``seconds`` if the service says so."""

    def __init__(self, message: str, status: ExitStatus, notice: str, seconds: int = 0) -> None:
        super().__init__(message, status)
        self.notice = notice
        self.seconds = seconds


class ServiceResponse(NamedTuple):
    """A response of a service."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class _ErrorBody(TypedDict):
    code: str
    message: str


def decoded(response: ServiceResponse, kind: type[T]) -> T:
    """Return the whole body of ``response``, which has at least the members of ``kind``.

    Raises:
        Failure: it has not, so this is not a Petstore service.
    """
    import msgspec

    try:
        value: T = json.loads(response.body)
        msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        raise strange(response) from None
    return value


def refusal(response: ServiceResponse, now: Milliseconds) -> Failure:
    """Return the failure for a response other than 2xx."""
    is_fault = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    try:
        error = decoded(response, _ErrorBody)
        of_others = ExitStatus.SERVICE if is_fault else ExitStatus.FAILED
        status = _EXIT_STATUSES.get(response.status, of_others)
        if error["code"] == "unknown_pet":
            status = ExitStatus.NOT_FOUND
        if response.status == HTTPStatus.NOT_FOUND and "X-RateLimit-Limit" not in response.headers:
            return strange(response)  # the address leads past the interface
    except Failure as failure:  # the response of a proxy or of another service
        # A proxy responds so for a service that is at the right address, but down.
        is_away = response.status in _OVERLOADED
        msg = f"{response.url} is not available now: it responds with {response.status}"
        error = _ErrorBody(code="", message=msg if is_away else failure.message)
        status = ExitStatus.SERVICE
    message = error["message"]
    if is_fault and "X-Request-Id" in response.headers:
        message += f" (request {response.headers['X-Request-Id']})"
    seconds = _retry_after(response)
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        seconds = seconds or _WINDOW_SECONDS
        message += f", until {rfc3339(now + seconds * SECOND)}"
        is_ban = error["code"] == "api_key_banned"
        notice = "The key is banned." if is_ban else "The limit is reached."
        return PassingFailure(message, ExitStatus.LIMIT, notice, seconds)
    if response.status in _OVERLOADED:
        return PassingFailure(message, status, "The service is not available.", seconds)
    if error["code"] == "idempotency_key_in_use":
        return PassingFailure(message, status, "The first try is still under way.", seconds)
    return Failure(message, status, error["code"])


def strange(response: ServiceResponse) -> Failure:
    """Return the failure for a response that a Petstore service does not give."""
    is_redirect = response.status >= HTTPStatus.MULTIPLE_CHOICES and "Location" in response.headers
    what = (
        f"redirects to {response.headers['Location']}"
        if is_redirect
        else f"responds with {response.status}"
    )
    msg = f"{response.url} {what}, not as a Petstore service does: check --url"
    return Failure(msg, ExitStatus.SERVICE)


def lost(url: str, method: str, error: Exception) -> PassingFailure:
    """Return the failure for a request that was sent and got no response."""
    from urllib3.exceptions import TimeoutError as ReadTimeout

    if isinstance(error, ReadTimeout):
        msg = f"{url} did not respond in time"
    else:
        msg = f"{url} broke the connection off, or does not speak HTTP"
    if method != "GET":
        msg += "; it is not known whether the request was carried out"
    return PassingFailure(msg, ExitStatus.SERVICE, "The service sent no response.")


def unreachable(url: str, error: Exception) -> PassingFailure:
    """Return the failure for a connection that was not established."""
    msg = f"cannot reach {url}: {reason(error)}"
    return PassingFailure(msg, ExitStatus.SERVICE, "The service cannot be reached.")


def reason(error: Exception) -> str:
    """Return why a request failed, in the words of the system if it has any."""
    cause = error.__cause__ or error
    return str(getattr(cause, "strerror", None) or cause)


def insecure(url: str, error: Exception) -> Failure:
    """Return the failure for a connection that TLS does not trust."""
    return Failure(f"no secure connection to {url}: {error}", ExitStatus.SERVICE)


def _retry_after(response: ServiceResponse) -> int:
    """Return how many seconds the service asks to wait, 0 if it does not say."""
    value = response.headers.get("Retry-After", "")
    return int(value) if _SECONDS.fullmatch(value) else 0
