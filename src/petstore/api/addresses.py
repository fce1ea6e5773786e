"""Absolute URLs of this service, and the ``Host`` that a client reaches it by."""

import re
from functools import lru_cache

from petstore.errors import InvalidRequest
from petstore.http.messages import Headers, Request

# RFC 3986 sections 3.2.2 and 3.2.3, without the comma: it would join two hosts.
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})++|\[[0-9A-Fa-f:.]{2,45}\])"
    rb"(?::[0-9]{0,5})?\Z"
)
_LONGEST_HOST = 261
_LOCATION, _LINK = b"location: /", b"link: </"
_RELATIVE = (_LOCATION, _LINK)


class Addresses:
    """The URLs of this service: below ``public_url`` if there is one, else below the ``Host``.

    Handlers write paths into ``Location`` and ``Link``, and so do pages in memory and idempotency
    records. They become absolute as the last thing, so each client gets URLs that work for it.
    """

    def __init__(self, public_url: str = "") -> None:
        self._public_url = public_url.rstrip("/").encode("ascii")

    def root(self, request: Request) -> bytes:
        """Return the URL of this service, without ``/v1`` and without a slash at its end.

        It is empty, so that references stay relative, if the client has sent no valid ``Host``.
        """
        if self._public_url:
            return self._public_url
        host = request.fields.get(b"host")
        if host is None or b"host" in request.repeated or not _is_host(host):
            return b""
        return b"http://" + host

    def absolute(self, headers: Headers, request: Request) -> Headers:
        """Return ``headers`` with absolute URLs in ``Location`` and ``Link`` (RFC 3986 5.2)."""
        return [
            self._absolute(line, request) if line.startswith(_RELATIVE) else line
            for line in headers
        ]

    def _absolute(self, line: bytes, request: Request) -> bytes:
        root = self.root(request)
        if line.startswith(_LINK):
            return line.replace(b"</", b"<%b/" % root)
        return line.replace(_LOCATION, b"location: %b/" % root, 1)


def check_host(request: Request) -> None:
    """Refuse a request without exactly one valid ``Host`` (RFC 9112 section 3.2).

    Raises:
        InvalidRequest: it has none, two, or something else in it.
    """
    host = request.fields.get(b"host")
    if host is None and request.version == "1.0":
        return
    if host is None or b"host" in request.repeated:
        msg = "Host: expected exactly once"
        raise InvalidRequest(msg)
    if not _is_host(host):
        msg = "Host: expected a name or an address, and perhaps a port"
        raise InvalidRequest(msg)


def _is_host(text: bytes) -> bool:
    return len(text) <= _LONGEST_HOST and _matches(text)


@lru_cache(maxsize=64)
def _matches(host: bytes) -> bool:
    return _HOST.match(host) is not None
