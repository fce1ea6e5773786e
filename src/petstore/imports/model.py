"""Imports, as docs/importing.md describes them."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.domain.fields import Id, Int64, Time
from petstore.imports.columns import ImportColumn, ImportMapping, ImportMappingPatch, Meaning
from petstore.pets.model import CategoryId, KeptBecause, PetStatus, Status

ImportState: TypeAlias = Literal["open", "running", "finished", "undone"]
_Means = Annotated[
    Meaning, Meta(description="The status that it means; absent if that is not decided.")
]

MAX_UNFINISHED = 20
"""How many imports of a caller may have rows left to add."""

MAX_LISTED = 200
"""How many words, and pets that an undo kept, an import lists at most."""

MAX_WORD = 255
"""How many characters of a word an import shows, and takes."""


def _count(description: str) -> Meta:
    return Meta(ge=0, description=description, extra_json_schema={"readOnly": True})


class ImportWord(Struct, frozen=True, rename="camel"):
    """A category of a file that is not in the store, or a word of its status column.

    A category may have the id of the one that it means.
    """

    text: Annotated[str, Meta(description="The word, as the file has it first.")]
    rows: Annotated[int, _count("How many rows have it.")]
    means: _Means | UnsetType = UNSET
    category_id: CategoryId | UnsetType = UNSET


class ImportPreview(Struct, frozen=True, rename="camel"):
    """What a run would do, when the file was sent or its settings were changed last."""

    added: Annotated[int, _count("Pets that would be added.")] = 0
    refused: Annotated[int, _count("Rows that would be refused.")] = 0
    already_here: Annotated[
        int, _count("Pets that would be added although a pet in the store has the same name.")
    ] = 0
    without_category: Annotated[int, _count("Rows without a category of their own.")] = 0
    categories: Annotated[
        list[ImportWord], Meta(description="Categories that are not in the store: the first 200.")
    ] = []
    statuses: Annotated[
        list[ImportWord], Meta(description="Other words than a status, undecided ones first.")
    ] = []


class KeptPet(Struct, frozen=True):
    """A pet that an undo did not delete."""

    id: Id
    name: Annotated[str, Meta(description="Its name when it was added.")]
    reason: Annotated[
        KeptBecause, Meta(description="What happened to it: `changed`, `ordered` or `deleted`.")
    ]


UnknownCategories = Annotated[
    Literal["refuse", "create"],
    Meta(
        description=(
            "What happens to rows whose category the store does not have: `refuse` them, or"
            " `create` the categories."
        )
    ),
]
_HasHeader = Annotated[bool, Meta(description="Whether a row has the names of the columns.")]
_HeaderLine = Annotated[int, _count("The line with the names of the columns, if there is one.")]
_Preview = Annotated[
    ImportPreview, Meta(description="What a run would do. Only of an open import.")
]
_DefaultStatus = Annotated[PetStatus, Meta(description="The status of pets whose rows have none.")]
_DefaultCategory = Annotated[
    Int64,
    Meta(
        description="The category of pets whose rows have none.",
        extra={"expected": "the id of a category"},
    ),
]
_CATEGORIES = "What categories mean that are not in the store: the ids of categories."
_VALUES = "What words of the status column mean: `available`, `pending`, `sold` or `none`."


def _decisions(description: str, meaning: str) -> Meta:
    return Meta(
        max_length=MAX_LISTED,
        description=f"{description} Null takes back what was decided.",
        extra={"expected": f"an object of up to {MAX_LISTED} words, each with {meaning} or null"},
    )


_Mapping = Annotated[
    ImportMappingPatch,
    Meta(
        description="Which column has which field.",
        extra={"expected": "an object with the places of columns, counted from 0"},
    ),
]
_Values = Annotated[
    dict[str, Meaning | None], _decisions(_VALUES, "one of 'available', 'pending', 'sold', 'none'")
]
_Categories = Annotated[dict[str, Int64 | None], _decisions(_CATEGORIES, "the id of a category")]


class ImportPatch(Struct, frozen=True, rename="camel"):
    """Changes to how a file is read (RFC 7396)."""

    has_header: _HasHeader | UnsetType = UNSET
    mapping: _Mapping | UnsetType = UNSET
    default_status: _DefaultStatus | UnsetType | None = UNSET
    default_category_id: _DefaultCategory | UnsetType | None = UNSET
    unknown_categories: UnknownCategories | UnsetType = UNSET
    values: _Values | UnsetType = UNSET
    categories: _Categories | UnsetType = UNSET


class Import(Struct, frozen=True, rename="camel"):
    """A file of pets on its way into the store."""

    id: Id
    file_name: Annotated[str, Meta(description="The name of the file, perhaps empty.")]
    encoding: Annotated[str, Meta(description="What the file was read as, such as `UTF-8`.")]
    state: Annotated[
        ImportState,
        Meta(
            description=(
                "`open` until the first run, `running` while rows are waiting, then `finished`;"
                " `undone` from the first call of `undoImport` on."
            )
        ),
    ]
    rows: Annotated[int, _count("How many rows the file has.")]
    waiting: Annotated[
        int,
        _count(
            "Rows that are still to be added; of an undone import, pets still to be looked at. Call"
            " `runImport` or `undoImport` until it is 0."
        ),
    ]
    added: Annotated[int, _count("Pets that were added.")]
    refused: Annotated[int, _count("Rows that were refused.")]
    deleted: Annotated[int, _count("Pets that an undo has deleted.")]
    kept: Annotated[int, _count("Pets that an undo has left: changed or ordered since.")]
    kept_pets: Annotated[list[KeptPet], Meta(description="The first 200 of them.")]
    columns: Annotated[list[ImportColumn], Meta(description="The columns of the file.")]
    has_header: _HasHeader
    mapping: Annotated[ImportMapping, Meta(description="Which column has which field.")]
    unknown_categories: UnknownCategories
    values: Annotated[dict[str, Meaning], Meta(description=_VALUES)]
    categories: Annotated[dict[str, CategoryId], Meta(description=_CATEGORIES)]
    notes: Annotated[
        list[str], Meta(description="What was noticed about the file, in words for a person.")
    ]
    created_at: Annotated[
        Time, Meta(description="When the file was sent.", extra_json_schema={"readOnly": True})
    ]
    header_line: _HeaderLine | UnsetType = UNSET
    default_status: Status | UnsetType = UNSET
    default_category_id: CategoryId | UnsetType = UNSET
    preview: _Preview | UnsetType = UNSET
