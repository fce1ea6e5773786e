"""The operations on categories."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.categories.store import (
    create_category,
    delete_category,
    get_category,
    list_categories,
    search_categories,
    update_category,
)
from petstore.domain.cursors import BY_ID, BY_NAME
from petstore.errors import CategoryInUse, CategoryNameTaken, InvalidParameter
from petstore.events.changes import PageRange
from petstore.interface.operation import Call, Context, Result
from petstore.interface.pages import Ids, PageQuery, cursor_of, page_result, search_text
from petstore.interface.resource import Resource


class ListCategoriesQuery(PageQuery, frozen=True):
    cursor: Annotated[str, cursor_of(BY_ID, BY_NAME)] | UnsetType = UNSET
    id: Annotated[Ids, Meta(examples=[[]])] | UnsetType = UNSET  # a search takes none
    name: (
        Annotated[
            str,
            search_text(
                "Only categories whose name begins with this text, ignoring case, sorted by name."
            ),
        ]
        | UnsetType
    ) = UNSET


async def _list(context: Context, call: Call[None, ListCategoriesQuery]) -> Result[list[Category]]:
    query, store = call.query, context.services.store
    if query.name is not UNSET:
        if query.id is not UNSET:
            msg = "id: expected no id together with name"
            raise InvalidParameter(msg)
        start = query.start(BY_NAME)
        found, after = await search_categories(store, query.name, start, query.limit)
        return Result(found, "" if after is None else BY_NAME.encode(after))
    page = await list_categories(store, query.after, query.limit, query.id)
    ids = range(min(query.id), max(query.id) + 1) if query.id else page.ids
    return page_result(page, extent=PageRange.of("category", ids))


_CATEGORY = {"id": 13, "name": "Ferrets", "description": "Great and small."}

_RESOURCE = Resource(
    Category, "/categories", "Categories", "a category", "pets:read", "pets:write", _CATEGORY
)

OPERATIONS = (
    _RESOURCE.list(
        _list,
        ListCategoriesQuery,
        "Returns a page of categories, by ascending `id`. With `name` they are sorted by name.",
    ),
    _RESOURCE.create(
        create_category,
        CategoryCreate,
        "Adds a category. Its name must be unique, ignoring case.",
        body_example={"name": "Ferrets", "description": "Great and small."},
        errors=(CategoryNameTaken,),
    ),
    _RESOURCE.get(get_category, "Returns one category."),
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
