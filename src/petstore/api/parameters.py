"""Query and path parameters, decoded to typed structs."""

import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import inspect
from msgspec.structs import replace

from petstore.domain.decoding import expectation, field_types, number_or_text
from petstore.domain.fields import INT64_MAX
from petstore.domain.paging import CURSOR_PATTERN
from petstore.errors import InvalidParameter, NotFound

_ID = re.compile(r"[0-9]{1,19}\Z", re.ASCII)
_LONGEST = 16384
_LONGEST_REMEMBERED = 512
# As our links write it: the cursor last, and nothing escaped that could be another one.
_NEXT_PAGE = re.compile(rf"(?:([^%]*)&)?cursor=({CURSOR_PATTERN.strip('^$')})".encode("ascii"))


class Query(NamedTuple):
    """The query of a request: its values, and the text of what is known of it less ``cursor``."""

    values: Any
    without_cursor: str


def decode_path_id(text: str) -> int:
    """Return the int64 in a path segment.

    Raises:
        NotFound: it is none, so there can be no such resource.
    """
    if not _ID.match(text) or (value := int(text)) > INT64_MAX:
        msg = "there is no resource at this path: an id is an integer in plain digits"
        raise NotFound(msg)
    return value


def decode_query(query: bytes, into: type) -> Query:
    """Decode a query string into the struct ``into``; unknown parameters are ignored.

    Raises:
        InvalidParameter: a known parameter is invalid, or given twice and not repeatable.
    """
    if len(query) > _LONGEST:
        msg = f"the query: expected at most {_LONGEST} bytes"
        raise InvalidParameter(msg)
    # The same few queries come again and again, but for the cursor; a long one is not worth its
    # memory.
    if len(query) > _LONGEST_REMEMBERED:
        return _decode(query, into)
    page = _NEXT_PAGE.fullmatch(query)
    if page is None or query.count(b"cursor") > 1 or "cursor" not in field_types(into):
        return _decode_remembered(query, into)
    filters, cursor = page.groups(b"")
    first, rest = _decode_remembered(filters, into)
    return Query(replace(first, cursor=cursor.decode("ascii")), rest)


def _decode(query: bytes, into: type) -> Query:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    kinds = field_types(into)
    values: dict[str, Any] = {}
    for name, text in pairs:
        kind = kinds.get(name)
        if isinstance(kind, inspect.ListType):
            values.setdefault(name, []).append(number_or_text(text, kind.item_type))
        elif name in values:
            msg = f"{name}: expected once, was given twice"
            raise InvalidParameter(msg)
        elif kind is not None:
            values[name] = number_or_text(text, kind)
    rest = urlencode([(name, text) for name, text in pairs if name in values and name != "cursor"])
    try:
        return Query(msgspec.convert(values, into), rest)
    except msgspec.ValidationError as error:
        raise InvalidParameter(expectation(into, error)) from None


_decode_remembered = lru_cache(maxsize=1024)(_decode)
