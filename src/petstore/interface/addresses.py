"""The URL of this service as the client reaches it, for links that work as they stand."""

import re
from functools import lru_cache

from petstore.errors import InvalidRequest
from petstore.http.messages import Request

# RFC 3986 sections 3.2.2 and 3.2.3, without the comma: it would join two hosts.
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})++|\[[0-9A-Fa-f:.]{2,45}\])"
    rb"(?::[0-9]{0,5})?\Z"
)
_LONGEST_HOST = 261


class Addresses:
    """Tells the URL of this service: the operator's ``public_url``, else ``http`` at the ``Host``.

    ``public_url`` has no slash at its end; it is empty if the operator has named none.
    """

    def __init__(self, public_url: str = "") -> None:
        self.public_url = public_url.rstrip("/")

    def root(self, request: Request) -> str:
        """Return the URL of this service without ``/v1`` and without a slash at its end.

        It is empty, so that references are relative, if neither the operator nor the client has
        named one: HTTP/1.0 needs no ``Host``.

        Raises:
            InvalidRequest: there is not exactly one valid ``Host`` (RFC 9112 section 3.2).
        """
        host = request.fields.get(b"host")
        if host is None and request.version == "1.0":
            return self.public_url
        if host is None or b"host" in request.repeated:
            msg = "Host: expected exactly once"
            raise InvalidRequest(msg)
        root = _root_at(host)
        return self.public_url or root


@lru_cache(maxsize=64)
def _root_at(host: bytes) -> str:
    if len(host) > _LONGEST_HOST or not _HOST.match(host):
        msg = "Host: expected a name or an address, and perhaps a port"
        raise InvalidRequest(msg)
    return f"http://{host.decode('ascii')}"
