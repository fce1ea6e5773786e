"""Text, JSON and rows decoded to typed structs; a message says what was expected."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, inspect
from msgspec.structs import astuple, fields

from petstore.clock import milliseconds, utc
from petstore.domain.fields import Moment
from petstore.errors import InvalidBody, PetstoreError

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

MAX_ITEMS = 100
"""The items of the longest body or page, and more than any other list has."""

_MAX_DIGITS = 19
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_START_OF_NUMBER = b"-0123456789"
_BOOLEANS = {"true": True, "false": False}
_BODY = "the body"
_OBJECT = "a JSON object"
_ARRAY = f"a JSON array of 1 to {MAX_ITEMS} items"
_TRUNCATED = "Input data was truncated"

_skip = msgspec.json.Decoder(msgspec.Raw).decode

# Splits an array into its items. A list would take all of too long an array into memory.
_split_array = msgspec.json.Decoder(
    msgspec.defstruct(
        "Items",
        [(f"item_{place}", msgspec.Raw, msgspec.Raw()) for place in range(MAX_ITEMS)],
        array_like=True,
        forbid_unknown_fields=True,
    )
).decode

_Member: TypeAlias = tuple[str, str, Callable[[Any], Any], bool]
"""The name of a member of an object, its field, its decoder, and whether it is required."""


def decode_json(text: bytes, into: type[T]) -> T:
    """Decode JSON (RFC 8259) into ``into``, a struct or a list of one, ignoring unknown members.

    First the whole text is checked and split into members. So invalid text is refused anywhere,
    the last of duplicate members counts even if an earlier one is invalid, and nothing is decoded
    that no one reads.
    """
    if get_origin(into) is list:
        return cast("T", _decode_items(text, *get_args(into)))
    split, members = _decoders(into)  # type: ignore[arg-type] # a class is hashable
    values = {}
    parts = _split(text, split, _OBJECT)
    for (name, field, decode, is_required), raw in zip(members, parts, strict=True):
        if raw:
            try:
                values[field] = decode(raw)
            except msgspec.ValidationError:
                raise InvalidBody(f"{name}: expected {_expected(into, name)}") from None
        elif is_required:
            raise InvalidBody(f"{name}: required; expected {_expected(into, name)}")
    return into(**values)


def at_places(reasons: Iterable[tuple[int, str]]) -> str:
    """Join reasons as of ``decode_json``, each behind the places in a list that have it."""
    places: dict[tuple[str, str], list[str]] = {}
    for place, reason in reasons:
        name, _, rest = reason.partition(":")
        field = "" if name == _BODY else f".{name}"
        places.setdefault((field, rest), []).append(f"[{place}]{field}")
    return "; ".join(f"{', '.join(named)}:{rest}" for (_, rest), named in places.items())


def convert(values: Mapping[str, Any], into: type[T], error: type[PetstoreError]) -> T:
    """Convert values by their names; a value may be the error that its text led to."""
    try:
        return msgspec.convert(values, into)
    except msgspec.ValidationError:
        first, *others = _faults(values, into)
        raise error(first, None, tuple(others)) from None


def integer_in(text: str) -> int | None:
    """Return up to 19 plain ASCII digits as an integer: ``int()`` would take ``+5`` and ``1_0``."""
    return int(text) if _INTEGER.fullmatch(text) else None


def moment_in(text: str) -> datetime | None:
    """Return a date and time with its offset (RFC 3339): ``fromisoformat`` takes other forms."""
    try:
        return msgspec.convert(text, Moment)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None


def number_or_text(text: str) -> int | str:
    number = integer_in(text)
    return text if number is None else number


def plain_value(text: str, kind: inspect.Type) -> int | str:
    """Return the integer or boolean in ``text``; other text stays, and will be refused."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.BoolType):
        return _BOOLEANS.get(text, text)
    return number_or_text(text) if isinstance(kind, inspect.IntType) else text


def _faults(values: Mapping[str, Any], into: type) -> Iterator[str]:
    for field in fields(into):
        name = field.encode_name
        value = values.get(name, UNSET)
        if isinstance(value, PetstoreError):
            yield value.message
        elif value is UNSET and field.required:
            yield f"{name}: required; expected {_expected(into, name)}"
        elif value is not UNSET:
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError:
                yield f"{name}: expected {_expected(into, name)}"


def _decode_items(text: bytes, item: type[T]) -> list[T]:
    parts = [bytes(raw) for raw in _split(text, _split_array, _ARRAY) if raw]
    if not parts:
        raise InvalidBody(f"{_BODY}: expected {_ARRAY}")
    items: list[T] = []
    reasons: list[tuple[int, str]] = []
    for place, part in enumerate(parts):
        try:
            items.append(decode_json(part, item))
        except InvalidBody as error:
            reasons.append((place, error.message))
    if reasons:
        raise InvalidBody(at_places(reasons))
    return items


def _split(text: bytes, split: Callable[[bytes], Any], expected: str) -> tuple[msgspec.Raw, ...]:
    """Return the text of each known member or item, empty if it is absent."""
    try:
        try:
            members = split(text)
        except msgspec.ValidationError:
            _skip(text)  # malformed JSON is reported as such
            raise
        if not text.isascii():
            text.decode()  # msgspec does not check the UTF-8 of what it skips
    except msgspec.ValidationError:
        msg = f"{_BODY}: expected {expected}"
    except UnicodeDecodeError:
        msg = f"{_BODY}: expected JSON in UTF-8"
    except RecursionError:
        msg = f"{_BODY}: expected {expected}; it is nested too deeply"
    except msgspec.DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ") if text.strip() else "it is empty"
        reason = reason.replace(_TRUNCATED, "it ends too early, or has half of a surrogate pair")
        msg = f"{_BODY}: expected {expected}; {reason}"
    else:
        return astuple(members)
    raise InvalidBody(msg)


@cache
def _decoders(struct: type) -> tuple[Callable[[bytes], Any], list[_Member]]:
    found = fields(struct)
    raw = [(field.name, msgspec.Raw, msgspec.Raw()) for field in found]
    renamed = {field.name: field.encode_name for field in found}
    split = msgspec.json.Decoder(msgspec.defstruct(struct.__name__, raw, rename=renamed)).decode
    types = field_types(struct)
    members: list[_Member] = []
    for field in found:
        decode: Callable[[Any], Any] = msgspec.json.Decoder(field.type).decode
        if isinstance(types[field.encode_name], inspect.IntType):
            decode = _exactly(decode)
        members.append((field.encode_name, field.name, decode, field.required))
    return split, members


def _exactly(decode: Callable[[bytes], Any]) -> Callable[[msgspec.Raw], Any]:
    def decode_exactly(raw: msgspec.Raw) -> Any:
        text = bytes(raw)
        is_decimal = text[0] in _START_OF_NUMBER and not text.isdigit()
        return decode(_plain(text) if is_decimal else text)

    return decode_exactly


def _plain(number: bytes) -> bytes:
    """Return the plain digits of an integer such as ``5.0`` or ``5e0``, exactly (JSON Schema).

    It moves the point within the text: 1e999999999 is short, but has gigabytes of digits.
    """
    mantissa, _, exponent = number.lower().partition(b"e")
    whole, _, fraction = mantissa.lstrip(b"-").partition(b".")
    digits = whole + fraction
    significant = digits.rstrip(b"0")
    zeros = len(digits) - len(significant)
    significant = significant.lstrip(b"0")
    if not significant:
        return b"0"
    magnitude = exponent.lstrip(b"+-0") or b"0"
    if len(magnitude) > _MAX_DIGITS:
        raise msgspec.ValidationError
    shift = -int(magnitude) if exponent.startswith(b"-") else int(magnitude)
    zeros += shift - len(fraction)
    if not 0 <= zeros < _MAX_DIGITS:
        raise msgspec.ValidationError
    return number[: number.startswith(b"-")] + significant + zeros * b"0"


@cache
def field_types(struct: type) -> dict[str, inspect.Type]:
    """Return the type of each field of ``struct``, by its JSON name, without its metadata."""
    return {name: annotated.type for name, annotated in _annotated(struct).items()}


def _expected(struct: type, field: str) -> str:
    """Return what the field says; without words of its own, what its type takes."""
    annotated = _annotated(struct)[field]
    kind = annotated.type
    if annotated.extra is not None:
        return str(annotated.extra["expected"])
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.IntType):
        return f"an integer from {kind.ge} to {kind.le}"
    (annotation,) = (each.type for each in fields(struct) if each.encode_name == field)
    first, *others = map(repr, _choices(annotation))
    return f"one of {', '.join([first, *others])}" if others else first


def _choices(annotation: Any) -> list[Any]:
    """Return the values of a literal in their order: ``inspect`` sorts them."""
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [*parts]
    return [choice for part in parts for choice in _choices(part)]


@cache
def _annotated(struct: type) -> dict[str, inspect.Metadata]:
    (info,) = inspect.multi_type_info([struct])
    assert isinstance(info, inspect.StructType)  # noqa: S101 - parameters and bodies are structs
    return {field.encode_name: _metadata(field.type) for field in info.fields}


def _metadata(kind: inspect.Type) -> inspect.Metadata:
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return next(option for option in options if isinstance(option, inspect.Metadata))


# Rows of a database as structs: a column for each field, in the order of the fields.


class RowMapping(Generic[S]):
    """How the structs of a kind are stored: a field that is not set is NULL.

    A moment is stored in milliseconds, or with its offset if it is one of the ``texts``. Fields
    that follow from others are ``computed``, each by its SQL. ``columns`` are for a SELECT.
    """

    def __init__(
        self,
        kind: type[S],
        *,
        texts: Collection[str] = (),
        computed: Mapping[str, str] | None = None,
    ) -> None:
        self._kind = kind
        sql = computed or {}
        columns = (
            f"{sql[name]} AS {name}" if name in sql else name for name in kind.__struct_fields__
        )
        self.columns = ", ".join(columns)
        self._decoders: list[tuple[int, Callable[[Any], Any] | None]] = []
        self._encoders: dict[str, Callable[[Any], int | str]] = {}
        for place, (field, of) in enumerate(
            zip(fields(kind), field_types(kind).values(), strict=True)
        ):
            decode: Callable[[Any], Any] | None = None
            if isinstance(of, inspect.DateTimeType):
                is_text = field.name in texts
                decode = datetime.fromisoformat if is_text else utc
                self._encoders[field.name] = datetime.isoformat if is_text else milliseconds
            elif isinstance(of, inspect.BoolType):
                decode = bool
            if decode is not None or not field.required:
                self._decoders.append((place, decode))
        self._converts = any(decode for _, decode in self._decoders)

    def read(self, row: Sequence[Any]) -> S:
        if not self._converts and None not in row:
            return self._kind(*row)
        values = [*row]
        for place, decode in self._decoders:
            if (value := values[place]) is None:
                values[place] = UNSET
            elif decode is not None:
                values[place] = decode(value)
        return self._kind(*values)

    def values(self, item: Struct, names: Sequence[str]) -> list[Any]:
        values = [getattr(item, name) for name in names]
        for place, name in enumerate(names if self._converts or UNSET in values else ()):
            if values[place] is UNSET:
                values[place] = None
            elif name in self._encoders:
                values[place] = self._encoders[name](values[place])
        return values
