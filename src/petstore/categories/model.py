"""Categories: the kinds of pets in a store."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from petstore.domain.decoding import RowMapping
from petstore.domain.fields import Id, any_text, not_blank_text

CategoryName = Annotated[str, not_blank_text(100, "The name, unique ignoring case.")]

Description = Annotated[str, any_text(0, 1000, "A description of the category.")]


class CategoryCreate(Struct, frozen=True):
    """A category to add."""

    name: CategoryName
    description: Description | UnsetType = UNSET


class CategoryPatch(Struct, frozen=True):
    """Changes to a category (RFC 7396); a ``description`` of null removes it."""

    name: CategoryName | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET


class Category(Struct, frozen=True):
    """A category. ``description`` may be absent."""

    id: Id
    name: CategoryName
    description: Description | UnsetType = UNSET


CATEGORIES = RowMapping(Category)
