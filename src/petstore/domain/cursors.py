"""Cursors: where a page starts in its list, so page N costs as much as page 1.

Each order of a list has cursors of its own form: a cursor of another order is not taken.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from petstore.domain.names import MAX_SEARCH_KEY

P = TypeVar("P")


class CursorForm(Generic[P]):
    """How the positions in one order of a list are written: each has one cursor of this form.

    ``pattern`` is the regular expression of a whole cursor, and ``max_length`` that of the longest.
    """

    def __init__(
        self, pattern: str, max_length: int, encode: Callable[[P], str], decode: Callable[[str], P]
    ) -> None:
        self.pattern = pattern
        self.max_length = max_length
        self.encode = encode
        self._decode = decode
        self._matches = re.compile(pattern).fullmatch

    def decode(self, cursor: str) -> P:
        """Return the position in a cursor.

        Raises:
            ValueError: it is not a cursor of this form.
        """
        if not self._matches(cursor):
            raise _not_a_cursor()
        return self._decode(cursor)


class NamePosition(NamedTuple):
    """A position in a list by name and then id: just after the item with this key and id."""

    key: str
    id: int


def base64_text(content: bytes) -> str:
    """Return bytes in base64url without padding (RFC 4648): all cursors are made of it."""
    return urlsafe_b64encode(content).decode("ascii").rstrip("=")


def base64_bytes(text: str) -> bytes:
    """Return the bytes in base64url without padding."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encode_id(last_id: int) -> str:
    return base64_text(last_id.to_bytes(8, signed=True))


def _decode_id(cursor: str) -> int:
    return int.from_bytes(base64_bytes(cursor), signed=True)


def _encode_name(last: NamePosition) -> str:
    return f"{_encode_id(last.id)}.{base64_text(last.key.encode())}"


def _decode_name(cursor: str) -> NamePosition:
    id_cursor, _, key = cursor.partition(".")
    position = NamePosition(base64_bytes(key).decode(), _decode_id(id_cursor))
    is_key = "\0" not in position.key and len(position.key) <= MAX_SEARCH_KEY
    if not is_key or _encode_name(position) != cursor:
        raise _not_a_cursor()
    return position


def _not_a_cursor() -> ValueError:
    return ValueError("not a cursor")


# 64 bits, of which the last character has four.
_ID = "[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]"
_ID_LENGTH = 11

BY_ID = CursorForm(_ID, _ID_LENGTH, _encode_id, _decode_id)
"""The id of the last item (an int64), in a list by ascending id."""

NEWEST_FIRST = CursorForm(
    f"-{_ID}",
    1 + _ID_LENGTH,
    lambda last_id: f"-{_encode_id(last_id)}",
    lambda cursor: _decode_id(cursor[1:]),
)
"""The id of the last item, in a list that shows new ones first."""

BY_NAME = CursorForm(
    rf"{_ID}\.[A-Za-z0-9_-]+",
    _ID_LENGTH + 1 + (4 * MAX_SEARCH_KEY * 4 + 2) // 3,  # four bytes for each character of a key
    _encode_name,
    _decode_name,
)
"""The position of the last item, in a list by name."""
