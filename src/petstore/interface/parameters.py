"""Query parameters, decoded to typed structs."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes, urlencode

from msgspec import inspect
from msgspec.structs import replace

from petstore.domain.cursors import BY_ID
from petstore.domain.decoding import convert, field_types, number_or_text
from petstore.errors import InvalidParameter

Values = TypeVar("Values")

_LONGEST = 16384
# 100 ids and some; 100 ids as ``id%5B%5D``, 100 characters of four bytes, and some.
_MAX_PARAMETERS = 128
_MAX_ESCAPES = 640
_LONGEST_NAME = 64
# ``id[]`` and ``id[0]`` are how some clients write a list.
_BRACKETS = re.compile(r"\[[0-9]*\]\Z", re.ASCII)
_MAX_CACHED = 256
# As our links have it: the cursor last, and nothing escaped that could be another one.
_NEXT_PAGE = re.compile(rf"(?:([^%]*)&)?cursor=({BY_ID.pattern})".encode("ascii"))


class Query(NamedTuple, Generic[Values]):
    """The values of a query, and its known parameters but ``cursor`` as text."""

    values: Values
    filters: str = ""


def decode_query(query: bytes, into: type) -> Query[Any]:
    """Decode a query string into the struct ``into``; unknown parameters are ignored."""
    _check_size(query)
    # A long query is not worth its memory.
    decode = _decode if len(query) > _MAX_CACHED else _decode_cached
    return decode(query, into)


@lru_cache(maxsize=8192)
def _decode_cached(query: bytes, into: type) -> Query[Any]:
    # The pages of a list differ in the cursor alone.
    page = _NEXT_PAGE.fullmatch(query)
    if page is None or query.count(b"cursor") > 1 or "cursor" not in field_types(into):
        return _decode(query, into)
    filters, cursor = page.groups(b"")
    first, rest = _decode_cached(filters, into)
    return Query(replace(first, cursor=cursor.decode("ascii")), rest)


def _check_size(query: bytes) -> None:
    """Refuse a query that costs more to decode than a page costs to read."""
    if len(query) > _LONGEST:
        msg = f"the query: expected at most {_LONGEST} bytes"
    elif query.count(b"&") >= _MAX_PARAMETERS:
        msg = f"the query: expected at most {_MAX_PARAMETERS} parameters"
    elif query.count(b"%") > _MAX_ESCAPES:
        msg = f"the query: expected at most {_MAX_ESCAPES} percent-encoded bytes"
    else:
        return
    raise InvalidParameter(msg)


def _decode(query: bytes, into: type) -> Query[Any]:
    kinds = field_types(into)
    values: dict[str, Any] = {}
    filters = []
    for name, text in _known(query, kinds):
        kind = kinds[name]
        if isinstance(kind, inspect.ListType):
            values.setdefault(name, []).append(number_or_text(text, kind.item_type))
        elif name in values:
            msg = f"{name}: expected once, got it twice"
            raise InvalidParameter(msg)
        else:
            values[name] = number_or_text(text, kind)
        if name != "cursor":
            filters.append((name, text))
    return Query(convert(values, into, InvalidParameter), urlencode(filters))


def _known(query: bytes, kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the parameters whose names are among ``kinds``, decoded."""
    for pair in query.split(b"&"):
        encoded, _, value = pair.partition(b"=")
        if len(encoded) <= _LONGEST_NAME and (name := _name(encoded)) in kinds:
            yield name, _text(value)


@lru_cache(maxsize=1024)
def _name(encoded: bytes) -> str:
    """Return a decoded name, without the brackets of a list. A list repeats it up to 100 times."""
    return _BRACKETS.sub("", _text(encoded))


def _text(encoded: bytes) -> str:
    """Decode a part of a query (application/x-www-form-urlencoded, URL standard)."""
    if b"%" in encoded or b"+" in encoded:
        encoded = unquote_to_bytes(encoded.replace(b"+", b" "))
    return encoded.decode(errors="replace")
