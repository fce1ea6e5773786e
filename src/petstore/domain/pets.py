"""Animals, as interface.md (section "Resources and their fields") describes them."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

Int64 = Annotated[
    int,
    Meta(
        ge=INT64_MIN,
        le=INT64_MAX,
        extra={"expected": "an integer from -2^63 to 2^63 - 1"},
        extra_json_schema={"format": "int64"},
    ),
]

PetStatus: TypeAlias = Literal["available", "pending", "sold"]

# What \s is to Python. To JSON Schema it is another set, so the document must not say \s.
_WHITE_SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

PetName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        # No U+0000, which PostgreSQL cannot store, and something other than white space.
        pattern=rf"^[^\x00]*[^\x00{_WHITE_SPACE}][^\x00]*$",
        description="The animal's name.",
        extra={
            "expected": "a string of 1 to 255 characters, not only white space and without U+0000"
        },
    ),
]

CategoryId = Annotated[Int64, Meta(description="Identifier of the category the animal belongs to.")]

PetId = Annotated[Int64, Meta(description="Unique identifier, assigned by the service.")]

Status = Annotated[
    PetStatus,
    Meta(
        description="Availability status.",
        extra={"expected": "one of 'available', 'pending', 'sold'"},
    ),
]


class NewPet(Struct, frozen=True):
    """An animal to add."""

    name: PetName
    categoryId: CategoryId  # noqa: N815 - the interface's own name
    status: Status | UnsetType = UNSET


class Pet(Struct, frozen=True):
    """An animal of the store. ``status`` is absent when it was never given."""

    id: PetId
    name: PetName
    categoryId: CategoryId  # noqa: N815 - the interface's own name
    status: Status | UnsetType = UNSET


class PetFilter(Struct, frozen=True):
    """Which animals a list holds. ``None`` filters nothing; ``ids`` of any length up to 100."""

    status: PetStatus | None = None
    category_id: int | None = None
    ids: tuple[int, ...] | None = None
