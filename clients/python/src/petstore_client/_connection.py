"""Where a client sends its requests, and with which key."""

import platform
import re
from collections.abc import Mapping
from copy import copy
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx2
import msgspec

from petstore_client._calls import Call, Reply
from petstore_client._errors import NoResponse, PetstoreError, TimedOut, UnexpectedResponse
from petstore_client._version import __version__

# RFC 3986, without a user, a query or a fragment.
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.IGNORECASE)
_VISIBLE = re.compile(r"[!-~]+")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_OWN_HEADERS = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length"),
    *("content-type", "host", "idempotency-key", "if-match", "transfer-encoding"),
}
_PYTHON = ".".join(platform.python_version_tuple()[:2])
_CONNECT_SECONDS = 5.0
_MAX_BODY = 16 * 1024 * 1024
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class Connection:
    """The address of a service, which ends in ``/v1``, and the API key, which it shows nobody.

    Raises:
        ValueError: one of them cannot be.
    """

    def __init__(self, url: str, key: str) -> None:
        if not _is_address(url):
            # It is not shown: it may have a password.
            msg = "base_url: expected an address such as https://shop.example/v1"
            raise ValueError(msg)
        self.url = url.rstrip("/")
        self._authorization = _authorization(key)
        self._headers = httpx2.Headers(
            {"User-Agent": f"petstore-client/{__version__} python/{_PYTHON}"}
        )

    def with_options(self, headers: Mapping[str, str], key: str | None) -> "Connection":
        """Return a connection that sends these headers, too, and perhaps another key.

        Raises:
            ValueError: one of them is invalid, or the client sends it itself.
        """
        for name, value in headers.items():
            if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
                msg = f"headers: expected names and values of visible ASCII characters: {name!r}"
                raise ValueError(msg)
            if name.lower() in _OWN_HEADERS:
                msg = f"headers: expected none that the client sends itself, as {name}"
                raise ValueError(msg)
        other = copy(self)
        if key is not None:
            other._authorization = _authorization(key)  # noqa: SLF001
        other._headers = httpx2.Headers({**self._headers, **httpx2.Headers(headers)})  # noqa: SLF001
        return other

    def request(self, call: Call[Any], timeout: float) -> httpx2.Request:
        """Return the request of a call, which waits ``timeout`` seconds at each read.

        Raises:
            PetstoreError: its parameters are too long for a URL.
            ValueError: a header cannot be one.
        """
        headers = {
            **self._headers,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Authorization": self._authorization,
        }
        content = call.content or b""
        if call.body is not None:
            content = msgspec.json.encode(call.body)
        if call.body is not None or call.content is not None:
            headers["Content-Type"] = call.media_type
        if call.if_match is not None:
            headers["If-Match"] = _visible("if_match", call.if_match)
        if call.method == "POST":
            key = str(uuid4()) if call.idempotency_key is None else call.idempotency_key
            headers["Idempotency-Key"] = _visible("idempotency_key", key)
        query = f"?{urlencode(call.query)}" if call.query else ""
        of_connection = min(_CONNECT_SECONDS, timeout)
        timeouts = httpx2.Timeout(timeout + call.wait, connect=of_connection).as_dict()
        try:
            url = httpx2.URL(f"{self.url}{call.path}{query}")
        except httpx2.InvalidURL as error:
            msg = f"{call.method} {call.path} cannot be sent: {error}"
            raise PetstoreError(msg) from error
        return httpx2.Request(
            call.method, url, headers=headers, content=content, extensions={"timeout": timeouts}
        )

    def reply(self, response: httpx2.Response, content: bytearray) -> Reply:
        """Return a response with its whole content."""
        return Reply(self.url, response.status_code, response.headers, bytes(content))

    def add(self, content: bytearray, piece: bytes) -> None:
        """Add a piece to the content of a response.

        Raises:
            UnexpectedResponse: it is larger than any of the service.
        """
        content += piece
        if len(content) > _MAX_BODY:
            msg = f"{self.url} responds with more than {_MAX_BODY} bytes: no Petstore service does"
            raise UnexpectedResponse(msg)

    def failure(self, error: httpx2.HTTPError) -> tuple[NoResponse, bool]:
        """Return the error of a request that got no whole response, and whether it was sent."""
        is_timeout = isinstance(error, httpx2.TimeoutException)
        was_sent = not isinstance(error, _UNSENT)
        what = "no response from" if was_sent else "cannot reach"
        kind = TimedOut if is_timeout else NoResponse
        failure = kind(f"{what} {self.url}: {'it timed out' if is_timeout else _reason(error)}")
        failure.__cause__ = error
        return failure, was_sent


def _authorization(key: str) -> str:
    if _VISIBLE.fullmatch(key):
        return f"Bearer {key}"
    msg = "api_key: expected visible ASCII characters, such as ps_live_…"
    raise ValueError(msg)


def _visible(name: str, value: str) -> str:
    """Return the value of a header.

    Raises:
        ValueError: it cannot be one.
    """
    if not _VISIBLE.fullmatch(value):
        msg = f"{name}: expected visible ASCII characters without spaces, not {value!r}"
        raise ValueError(msg)
    return value


def _is_address(url: str) -> bool:
    try:
        httpx2.URL(url).host.encode("idna")
    except (httpx2.InvalidURL, UnicodeError):
        return False
    return _URL.fullmatch(url) is not None


def _reason(error: BaseException) -> str:
    """Return why there is no response, in the words of the system if it has any."""
    cause = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    return getattr(cause, "strerror", None) or str(error) or type(error).__name__
