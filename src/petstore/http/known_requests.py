"""Requests that are known by their bytes, and need not be parsed again."""

from petstore.api.messages import Request

LONGEST = 1024
"""Bytes of the longest request that is known again."""

_MOST = 1024


class KnownRequests:
    """Requests that came twice, byte for byte and from one address.

    Many callers ask for the same again and again, and the same bytes are the same request. What
    came once leaves only a hash: requests that are all different do not fill the memory. Where
    two addresses send the same bytes, the later one's are known.
    """

    def __init__(self) -> None:
        self._requests: dict[bytes, Request] = {}
        self._seen: set[int] = set()

    def find(self, data: bytes, client: str) -> Request | None:
        """Return what ``data`` from ``client`` was, if that is known."""
        request = self._requests.get(data)
        return request if request is not None and request.client == client else None

    def note(self, data: bytes, request: Request) -> None:
        """Take notice that ``data`` is ``request``, a GET without a body: it never changes."""
        seen = hash((request.client, data))
        if seen not in self._seen:
            _make_room(self._seen)
            self._seen.add(seen)
            return
        if data not in self._requests:
            _make_room(self._requests)
        self._requests[data] = request


def _make_room(kept: dict[bytes, Request] | set[int]) -> None:
    if len(kept) >= _MOST:
        kept.clear()
