"""Cursors: where a page starts in its list, so page N costs as much as page 1."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")

MAX_COUNTED = 10_000
"""How far a list is counted: the cost of a page must not grow with the store."""


class CursorForm(NamedTuple, Generic[P]):
    """How the positions in one order of a list are written: each has one cursor of this form.

    ``pattern`` is the regular expression of a whole cursor, and ``max_length`` of the longest.
    """

    regex: re.Pattern[str]
    max_length: int
    encode: Callable[[P], str]
    position_in: Callable[[str], P]

    @property
    def pattern(self) -> str:
        return self.regex.pattern

    def decode(self, cursor: str) -> P:
        if not self.regex.fullmatch(cursor):
            raise ValueError("not a cursor")
        return self.position_in(cursor)


def base64_text(content: bytes) -> str:
    """Return bytes in base64url without padding (RFC 4648): all cursors are made of it."""
    return urlsafe_b64encode(content).decode("ascii").rstrip("=")


def base64_bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encode_id(last_id: int) -> str:
    return base64_text(last_id.to_bytes(8, signed=True))


def _decode_id(cursor: str) -> int:
    return int.from_bytes(base64_bytes(cursor), signed=True)


# 64 bits, of which the last character has four.
_ID = "[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]"
_ID_LENGTH = 11

BY_ID = CursorForm(re.compile(_ID), _ID_LENGTH, _encode_id, _decode_id)
"""The id of the last item (an int64), in a list by ascending id."""

NEWEST_FIRST = CursorForm(
    re.compile(f"-{_ID}"),
    1 + _ID_LENGTH,
    lambda last_id: f"-{_encode_id(last_id)}",
    lambda cursor: _decode_id(cursor[1:]),
)
"""The id of the last item, in a list that shows new ones first."""

BY_DELIVERY = CursorForm(
    re.compile(f"~{_ID}{_ID}"),
    1 + 2 * _ID_LENGTH,
    lambda last: f"~{_encode_id(last[0])}{_encode_id(last[1])}",
    lambda cursor: (_decode_id(cursor[1:12]), _decode_id(cursor[12:])),
)
"""The time of delivery and the id of the last item, in a list of orders by delivery."""
