"""Pets, as docs/pets.md describes them."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.domain.decoding import RowMapping
from petstore.domain.fields import Id, Int64, merged, not_blank_text
from petstore.errors import IllegalTransition

PetStatus: TypeAlias = Literal["available", "pending", "sold"]

KeptBecause: TypeAlias = Literal["changed", "ordered", "deleted"]
"""Why the undo of an import leaves a pet."""

STATUSES: tuple[PetStatus, ...] = get_args(PetStatus)

PetName = Annotated[
    str,
    not_blank_text(
        255, "The animal's name. 1 to 255 characters, not only white space, without U+0000."
    ),
]

CategoryId = Annotated[
    Int64,
    Meta(
        description=(
            "Identifier of the category the animal belongs to. JavaScript rounds those above 2^53"
            " - 1."
        )
    ),
]

Status = Annotated[PetStatus, Meta(description="Availability status.")]

_MOVES: dict[PetStatus, tuple[PetStatus | None, ...]] = {
    "available": ("pending", "sold", None),
    "pending": ("available", "sold"),
    "sold": ("available",),
}


class NewPet(Struct, frozen=True, rename="camel"):
    """A pet to add."""

    name: PetName
    category_id: CategoryId
    status: Status | UnsetType = UNSET


class PetPatch(Struct, frozen=True, rename="camel"):
    """Changes to a pet (RFC 7396); a ``status`` of null removes it."""

    name: PetName | UnsetType = UNSET
    category_id: CategoryId | UnsetType = UNSET
    status: Status | UnsetType | None = UNSET


class Pet(Struct, frozen=True, rename="camel"):
    """A pet of the store. ``status`` is absent when it was never given."""

    id: Id
    name: PetName
    category_id: CategoryId
    status: Status | UnsetType = UNSET


PETS = RowMapping(Pet)

EXPORTED = (*("id", "name", "categoryId", "category"), *Pet.__struct_encode_fields__[3:])
"""The columns of a file of pets, with the name of the category beside its number."""


class PetFilter(Struct, frozen=True):
    status: PetStatus | UnsetType = UNSET
    category_id: int | UnsetType = UNSET
    ids: Sequence[int] | UnsetType = UNSET
    has_status: bool | UnsetType = UNSET

    def admits(self, pet: Pet) -> bool:
        return (
            (self.status is UNSET or self.status == pet.status)
            and (self.category_id is UNSET or self.category_id == pet.category_id)
            and (self.has_status is UNSET or self.has_status == (pet.status is not UNSET))
        )


class StatusCounts(Struct, frozen=True, rename="camel"):
    """The number of pets of each status."""

    available: Annotated[int, Meta(description="Pets that can be ordered.")] = 0
    pending: Annotated[int, Meta(description="Pets that are reserved.")] = 0
    sold: Annotated[int, Meta(description="Pets that are sold.")] = 0


class CategoryCounts(StatusCounts, frozen=True, rename="camel", kw_only=True):
    """The number of pets of each status in a category."""

    category_id: CategoryId


class Inventory(StatusCounts, frozen=True):
    """The number of pets of each status."""

    categories: (
        Annotated[
            list[CategoryCounts],
            Meta(
                description=(
                    "The same by category, by ascending id: the first 1,000 categories that have"
                    " pets with a status. Only with `by=category`."
                )
            ),
        ]
        | UnsetType
    ) = UNSET


def status_after(pet: Pet, patch: PetPatch) -> PetStatus | UnsetType:
    return pet.status if patch.status is UNSET else patch.status or UNSET


def statuses_after(status: PetStatus | UnsetType) -> tuple[PetStatus | None, ...]:
    return STATUSES if status is UNSET else _MOVES[status]


def patched(pet: Pet, patch: PetPatch) -> Pet:
    status = status_after(pet, patch)
    if status != pet.status:
        following, wanted = statuses_after(pet.status), None if status is UNSET else status
        if wanted not in following:
            choices = " or ".join(allowed or "none" for allowed in following)
            msg = f"status: {pet.status} can become {choices}, not {wanted or 'none'}"
            raise IllegalTransition(msg)
    return merged(pet, patch)
