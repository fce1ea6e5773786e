"""Replies that are errors, and how long they ask to wait."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec
from httpx2 import Headers

from petstore_client._calls import UNDECODABLE, Reply
from petstore_client._errors import PetstoreError, kind_of

# What a proxy says for a service that is away, in a body of its own.
_FROM_PROXIES = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_SECONDS = re.compile(r"[0-9]+", re.ASCII)
# Longer waits are all the same, and no clock sleeps for ever.
_LONGEST_WAIT = 1e9


class _ErrorBody(msgspec.Struct):
    code: str
    message: str


def error_in(reply: Reply) -> PetstoreError | None:
    """Return the error that a reply is, ``None`` for a success."""
    if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    if reply.status < HTTPStatus.BAD_REQUEST:
        target = reply.headers.get("Location")
        return reply.unexpected(f"it redirects to {target}" if target else "it is no response")
    body = _error_body(reply)
    if body is None:
        return reply.unexpected("its body is not that of an error")
    if reply.status == HTTPStatus.NOT_FOUND and "X-RateLimit-Limit" not in reply.headers:
        return reply.unexpected("the API is not here; its address ends in /v1")
    kind = kind_of(reply.status, body.code)
    wait = retry_after(reply.headers)
    return kind(body.message, code=body.code, retry_after=wait, **reply.details)


def _error_body(reply: Reply) -> _ErrorBody | None:
    try:
        return msgspec.json.decode(reply.content, type=_ErrorBody)
    except UNDECODABLE:
        if reply.status not in _FROM_PROXIES:
            return None
        return _ErrorBody("", f"{reply.url} is not available now: it responds with {reply.status}")


def retry_after(headers: Headers) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait, from a number or a date (RFC 9110).

    A date is compared with the ``Date`` of the response, so the clock of this machine does not
    matter unless there is none.
    """
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _LONGEST_WAIT)
    then = _moment(text)
    if then is None:
        return None
    now = _moment(headers.get("Date", "")) or datetime.now(UTC)
    return min(max(0.0, (then - now).total_seconds()), _LONGEST_WAIT)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
