"""The operations on categories."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.categories.store import (
    create_category,
    delete_category,
    find_named,
    get_category,
    list_categories,
    update_category,
)
from petstore.errors import CategoryInUse, CategoryNameTaken
from petstore.events.changes import PageRange
from petstore.interface.operation import Call, Context, Result
from petstore.interface.pages import Ids, PageQuery, page_result, search_text
from petstore.interface.resource import Resource, reading


class ListCategoriesQuery(PageQuery, frozen=True):
    id: Ids | UnsetType = UNSET
    name: (
        Annotated[str, search_text("Only the category with this name, ignoring case.")] | UnsetType
    ) = UNSET


async def _list(context: Context, call: Call[None, ListCategoriesQuery]) -> Result[list[Category]]:
    query, store = call.query, context.services.store
    if query.name is not UNSET:
        wanted, after = query.id, query.after or 0
        found = [each for each in await find_named(store, query.name) if each.id > after]
        return Result([each for each in found if wanted is UNSET or each.id in wanted])
    page = await list_categories(store, query.after, query.limit, query.id)
    ids = range(min(query.id), max(query.id) + 1) if query.id else page.ids
    return page_result(page, extent=PageRange.of("category", ids))


_CATEGORY = {"id": 13, "name": "Ferrets", "description": "Great and small."}

_RESOURCE = Resource(
    Category, "/categories", "Categories", "a category", "pets:read", "pets:write", _CATEGORY
)

OPERATIONS = (
    _RESOURCE.list(_list, ListCategoriesQuery, "Returns a page of categories, by ascending `id`."),
    _RESOURCE.create(
        create_category,
        CategoryCreate,
        "Adds a category. Its name must be unique, ignoring case.",
        body_example={"name": "Ferrets", "description": "Great and small."},
        errors=(CategoryNameTaken,),
    ),
    _RESOURCE.get(reading(get_category), "Returns one category."),
    _RESOURCE.update(
        update_category,
        CategoryPatch,
        "A `description` of null removes it.",
        example=_CATEGORY,
        body_example={"description": "Great and small."},
        errors=(CategoryNameTaken,),
    ),
    _RESOURCE.delete(
        delete_category,
        "Deletes a category without pets. Its `id` is not used again.",
        errors=(CategoryInUse,),
    ),
)
