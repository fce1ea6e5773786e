"""Cursors: where a page starts in its list, so page N costs as much as page 1.

Each order of a list has cursors of its own form: a cursor of another order is not taken.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from petstore.domain.names import MAX_SEARCH_KEY

# 64 bits in base64url (RFC 4648), of which the last character has four.
_ID = "[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]"

CURSOR_PATTERN = f"^{_ID}$"
"""The form of every cursor of a list by ascending id, and of nothing else."""

MAX_CURSOR = 11
"""The length of such a cursor."""

SORTED_CURSOR_PATTERN = f"^-?{_ID}$"
"""The form of the cursors of a list by id or newest first."""

MAX_SORTED_CURSOR = 1 + MAX_CURSOR
"""The length of the longest such cursor."""

PETS_CURSOR_PATTERN = rf"^(-?{_ID}|{_ID}\.[A-Za-z0-9_-]+)$"
"""The form of the cursors of a list of pets: by id, newest first, and by name."""

MAX_PETS_CURSOR = MAX_CURSOR + 1 + (4 * MAX_SEARCH_KEY * 4 + 2) // 3
"""The length of the longest cursor of a list of pets: four bytes for each character of its key."""

_CURSOR = re.compile(CURSOR_PATTERN.removesuffix("$") + r"\Z")


class NamePosition(NamedTuple):
    """A position in a list by name and then id: just after the item with this key and id."""

    key: str
    id: int


def encode_cursor(last_id: int) -> str:
    """Return the opaque cursor of the page after the item ``last_id`` (an int64)."""
    return _encode(last_id.to_bytes(8, signed=True))


def decode_cursor(cursor: str) -> int:
    """Return the id in ``cursor``.

    Raises:
        ValueError: it is not a cursor.
    """
    if not _CURSOR.match(cursor):
        msg = "not a cursor"
        raise ValueError(msg)
    return int.from_bytes(_decode(cursor), signed=True)


def encode_newest_cursor(last_id: int) -> str:
    """Return the opaque cursor of the page after ``last_id``, in a list that shows new ones first.

    It is a minus and the cursor of an ascending list.
    """
    return f"-{encode_cursor(last_id)}"


def decode_newest_cursor(cursor: str) -> int:
    """Return the id in ``cursor``.

    Raises:
        ValueError: it is not a cursor of a list that shows new items first.
    """
    mark, id_cursor = cursor[:1], cursor[1:]
    if mark != "-":
        msg = "not a cursor"
        raise ValueError(msg)
    return decode_cursor(id_cursor)


def encode_name_cursor(last: NamePosition) -> str:
    """Return the opaque cursor of the page after ``last``, in a list by name.

    It is the cursor of its id, a point, and its key in base64url.
    """
    return f"{encode_cursor(last.id)}.{_encode(last.key.encode())}"


def decode_name_cursor(cursor: str) -> NamePosition:
    """Return the position in ``cursor``.

    Raises:
        ValueError: it is not a cursor of a list by name.
    """
    id_cursor, _, key = cursor.partition(".")
    position = NamePosition(_decode(key).decode(), decode_cursor(id_cursor))
    is_key = position.key and "\0" not in position.key and len(position.key) <= MAX_SEARCH_KEY
    if not is_key or encode_name_cursor(position) != cursor:
        msg = "not a cursor"
        raise ValueError(msg)
    return position


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
