"""Text and JSON decoded to typed structs, with words for whoever sent something else.

``int()`` takes ``+5``, `` 5``, ``1_0`` and full-width digits, and refuses 4,301 digits with an
error of its own; an integer in text is plain ASCII digits. msgspec alone would skip invalid UTF-8
in members it ignores, and take 9007199254740993.0 for the integer before it.
"""

import re
from decimal import Decimal
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import inspect

from petstore.errors import InvalidBody

T = TypeVar("T")

_LARGEST_EXPONENT = 18
_INTEGER = re.compile(r"-?[0-9]{1,19}\Z", re.ASCII)
_PATH = " - at `$."
_FIELD = re.compile(r"\w+")
# Anchored, because the message may quote the refused value, which can look like it.
_GOT = re.compile(r"got `(\w+)`")
_MISSING = re.compile(r"\AObject missing required field `(\w+)`")


class _NoInteger:
    """Stands for a JSON number that is none of the integers of 64 bits."""


def _integer(text: str) -> int | _NoInteger:
    """Return the integer that ``5.0`` or ``5e0`` is to JSON Schema, exactly.

    The magnitude is looked at first: 1e999999999 is a short text for gigabytes of digits.
    """
    try:
        number = Decimal(text)
    except ArithmeticError:  # the exponent itself is beyond 64 bits
        return _NoInteger()
    too_large = number != 0 and number.adjusted() > _LARGEST_EXPONENT
    if too_large or number != number.to_integral_value():
        return _NoInteger()
    return int(number)


_decode = msgspec.json.Decoder(float_hook=_integer).decode


def decode_json(text: bytes, into: type[T]) -> T:
    """Decode JSON (RFC 8259) into the struct ``into``; unknown members are ignored.

    It is decoded whole first, so that invalid text is refused wherever it stands, and the last of
    duplicate members counts even where an earlier one is invalid.

    Raises:
        InvalidBody: it is not JSON, lacks a required field or holds an invalid value.
    """
    try:
        return msgspec.convert(_decode(text), into)
    except msgspec.ValidationError as error:
        raise InvalidBody(expectation(into, error)) from None
    except UnicodeDecodeError:
        msg = "the body: expected JSON in UTF-8"
        raise InvalidBody(msg) from None
    except RecursionError:
        msg = "the body: expected a JSON object, was nested too deeply"
        raise InvalidBody(msg) from None
    except msgspec.DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ") if text.strip() else "it was empty"
        msg = f"the body: expected a JSON object; {reason}"
        raise InvalidBody(msg) from None


def number_or_text(text: str, kind: inspect.Type) -> int | str:
    """Return the integer in ``text`` where ``kind`` is one; other text stays, to be refused."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.IntType) and _INTEGER.match(text):
        return int(text)
    return text


def expectation(struct: type, error: msgspec.ValidationError) -> str:
    """Return which field of ``struct`` was refused, and what it takes."""
    text = str(error)
    if missing := _MISSING.search(text):
        return f"{missing[1]}: required; expected {_expected(struct, missing[1])}"
    # The last one: the value refused may look like it, and be long enough to search for ever.
    place = text.rfind(_PATH)
    if place >= 0 and (named := _FIELD.match(text, place + len(_PATH))):
        return f"{named[0]}: expected {_expected(struct, named[0])}"
    got = _GOT.search(text)
    return f"the body: expected a JSON object{f', got {got[1]}' if got else ''}"


@cache
def field_types(struct: type) -> dict[str, inspect.Type]:
    """Return the type of each field of ``struct``, under its JSON name, less its metadata."""
    return {name: annotated.type for name, annotated in _annotated(struct).items()}


def _expected(struct: type, field: str) -> str:
    extra = _annotated(struct)[field].extra or {}
    return str(extra["expected"])


@cache
def _annotated(struct: type) -> dict[str, inspect.Metadata]:
    (info,) = inspect.multi_type_info([struct])
    assert isinstance(info, inspect.StructType)  # noqa: S101 - parameters and bodies are structs
    return {field.encode_name: _metadata(field.type) for field in info.fields}


def _metadata(kind: inspect.Type) -> inspect.Metadata:
    """Return the annotated part of a field's type, which may be optional."""
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return next(option for option in options if isinstance(option, inspect.Metadata))
