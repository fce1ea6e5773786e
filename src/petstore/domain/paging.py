"""Pages by key: a cursor names the last item seen, so page N costs what page 1 costs."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

CURSOR_PATTERN = "^[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$"
"""Every string of this form is a cursor, and no other is: 64 bits in base64url (RFC 4648)."""

_CURSOR = re.compile(CURSOR_PATTERN.removesuffix("$") + r"\Z")


def encode_cursor(last_id: int) -> str:
    """Return the opaque cursor of the page after the item ``last_id`` (an int64)."""
    return urlsafe_b64encode(last_id.to_bytes(8, signed=True)).decode("ascii").rstrip("=")


def decode_cursor(cursor: str) -> int:
    """Return the id that ``cursor`` names.

    Raises:
        ValueError: it is not a cursor of this service.
    """
    if not _CURSOR.match(cursor):
        msg = "not a cursor"
        raise ValueError(msg)
    return int.from_bytes(urlsafe_b64decode(cursor + "="), signed=True)
