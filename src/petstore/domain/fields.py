"""Types of fields that several resources share, each with what is expected of a value."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import asdict, fields, replace

S = TypeVar("S", bound=Struct)

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

Int64 = Annotated[
    int,
    Meta(ge=INT64_MIN, le=INT64_MAX, extra={"expected": "a whole number from -2^63 to 2^63 - 1"}),
]

Id = Annotated[
    Int64,
    Meta(
        description=(
            "Unique identifier, assigned by the service on creation. The service counts from 1, so"
            " an id stays exact in JavaScript, which rounds integers above 2^53 - 1."
        ),
        extra_json_schema={"readOnly": True},
    ),
]

# Python's \s. In JSON Schema \s is another set, so the document must not say \s.
_WHITE_SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

# PostgreSQL cannot store U+0000.
NO_U0000 = r"^[^\x00]*$"

# Control characters of terminals and of text direction can make one name look like another.
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"

PRINTABLE = rf"^[^{_CONTROLS}]*[^{_CONTROLS}{_WHITE_SPACE}][^{_CONTROLS}]*(?!\n)$"

# Characters that show nothing can make one login look like another, too.
_INVISIBLE = (
    rf"{_CONTROLS}{_WHITE_SPACE}"
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
)

VISIBLE = rf"^[^{_INVISIBLE}]*(?!\n)$"

# Something to see, and no U+0000.
NOT_BLANK = rf"^[^\x00]*[^{_INVISIBLE}][^\x00]*$"


def not_blank_text(longest: int, description: str) -> Meta:
    """Describe a text of up to ``longest`` characters that is stored as it is."""
    expected = f"1 to {longest} characters, not only spaces"
    return _text(1, longest, NOT_BLANK, description, expected)


def printable_text(longest: int, description: str) -> Meta:
    """Describe a text of up to ``longest`` characters, none of which deceives a reader."""
    expected = f"1 to {longest} printable characters, not only white space"
    return _text(1, longest, PRINTABLE, description, expected)


def any_text(shortest: int, longest: int, description: str, example: str = "") -> Meta:
    """Describe a text that may be blank, or even empty."""
    expected = f"{shortest} to {longest} characters" if shortest else f"up to {longest} characters"
    return _text(shortest, longest, NO_U0000, description, expected, example)


def _text(
    shortest: int, longest: int, pattern: str, description: str, expected: str, example: str = ""
) -> Meta:
    return Meta(
        min_length=shortest or None,
        max_length=longest,
        pattern=pattern,
        description=description,
        examples=[example] if example else None,
        extra={"expected": expected},
    )


Time = Annotated[datetime, Meta(tz=True)]
TimeText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

Moment = Annotated[
    datetime, Meta(tz=True, extra={"expected": "a date and time as in 2026-12-24T10:00:00Z"})
]


def patch_of(create: type[Struct], name: str, doc: str) -> type[Struct]:
    """Return the struct of a merge patch (RFC 7396): a field that it does not name is ``UNSET``."""
    found = fields(create)
    return defstruct(
        name,
        [(field.name, field.type | UnsetType, UNSET) for field in found],
        frozen=True,
        rename={field.name: field.encode_name for field in found},
        namespace={"__doc__": doc},
    )


def given_fields(struct: Struct) -> dict[str, Any]:
    return {name: value for name, value in asdict(struct).items() if value is not UNSET}


def merged(resource: S, patch: Struct, *names: str) -> S:
    """Apply a merge patch (RFC 7396), where ``None`` removes a field, or only these ``names``."""
    changes = {
        name: UNSET if value is None else value
        for name, value in given_fields(patch).items()
        if name in names or not names
    }
    return replace(resource, **changes)


def open_list(names: Iterable[str], what: str) -> str:
    """Describe a text that is one of these ``names``, to which later versions add others."""
    known = ", ".join(f"`{name}`" for name in names)
    return f"One of {known}. More will follow: ignore {what} that you do not know."
