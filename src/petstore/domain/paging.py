"""Cursors: each has the id of the last item of a page, so page N costs as much as page 1."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

CURSOR_PATTERN = "^[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$"
"""The form of every cursor, and of nothing else: 64 bits in base64url (RFC 4648)."""

_CURSOR = re.compile(CURSOR_PATTERN.removesuffix("$") + r"\Z")


def encode_cursor(last_id: int) -> str:
    """Return the opaque cursor of the page after the item ``last_id`` (an int64)."""
    return urlsafe_b64encode(last_id.to_bytes(8, signed=True)).decode("ascii").rstrip("=")


def decode_cursor(cursor: str) -> int:
    """Return the id in ``cursor``.

    Raises:
        ValueError: it is not a cursor.
    """
    if not _CURSOR.match(cursor):
        msg = "not a cursor"
        raise ValueError(msg)
    return int.from_bytes(urlsafe_b64decode(cursor + "="), signed=True)
