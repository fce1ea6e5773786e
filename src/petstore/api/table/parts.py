"""What several rows of the table share."""

from petstore.api.operation import ResponseHeader
from petstore.errors import (
    ContentTooLarge,
    IncompleteBody,
    InvalidBody,
    RequestTimeout,
    UnsupportedMediaType,
)

BASE = "/v1"

BODY_ERRORS = (InvalidBody, IncompleteBody, RequestTimeout, ContentTooLarge, UnsupportedMediaType)


def next_page(path: str) -> ResponseHeader:
    """Return the ``Link`` header of a list."""
    example = f'<{BASE}{path}?limit=20&cursor=AAAAAAAAABQ>; rel="next"'
    return ResponseHeader("Link", "The next page, if there is one (RFC 8288).", example)


def location(path: str) -> ResponseHeader:
    """Return the ``Location`` header of what was created."""
    return ResponseHeader("Location", "Where it is.", f"{BASE}{path}")
