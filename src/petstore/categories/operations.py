"""The operations on categories."""

from functools import partial
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
from petstore.events.changes import Extent
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.interface.pages import Ids, PageQuery, cursor_of, page_result, search_text


class ListCategoriesQuery(PageQuery, frozen=True):
    """The query parameters of ``listCategories``."""

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
        return page_result(await search_categories(store, query.name, start, query.limit), BY_NAME)
    page = await list_categories(store, query.after, query.limit, query.id)
    ids = range(min(query.id), max(query.id) + 1) if query.id else page.ids
    return page_result(page, extent=Extent.of("category", ids))


async def _create(context: Context, call: Call[CategoryCreate, None]) -> Result[Category]:
    return await change(
        context, create_category(call.body, now=context.services.clock(), by=context.author)
    )


async def _get(context: Context, call: Call[None, None]) -> Result[Category]:
    return Result(await get_category(context.services.store, call.path_id))


async def _update(context: Context, call: Call[CategoryPatch, None]) -> Result[Category]:
    check, now = context.conditions.check, context.services.clock()
    unit = update_category(call.path_id, call.body, now, check, by=context.author)
    return await change(context, unit)


async def _delete(context: Context, call: Call[None, None]) -> Result[None]:
    now = context.services.clock()
    unit = delete_category(call.path_id, now, context.conditions.check, by=context.author)
    return await change(context, unit)


_CATEGORY = {"id": 13, "name": "Ferrets", "description": "Great and small."}

_operation = partial(Operation, tag="Categories")

OPERATIONS = (
    _operation(
        id="listCategories",
        method="GET",
        path="/categories",
        summary="List categories",
        description=(
            "Returns a page of categories, by ascending `id`. With `name` they are sorted by name."
        ),
        handler=_list,
        scope="pets:read",
        cached=True,
        query=ListCategoriesQuery,
        success=Success(
            200, "A page of categories.", list[Category], [{"id": 2, "name": "Cats"}, _CATEGORY]
        ),
    ),
    _operation(
        id="createCategory",
        method="POST",
        path="/categories",
        summary="Add a category",
        description="Adds a category. Its name must be unique, ignoring case.",
        handler=_create,
        scope="pets:write",
        body=CategoryCreate,
        body_example={"name": "Ferrets", "description": "Great and small."},
        success=Success(
            201, "The category, with the `id` the service assigned.", Category, _CATEGORY
        ),
        errors=(CategoryNameTaken,),
    ),
    _operation(
        id="getCategory",
        method="GET",
        path="/categories/{categoryId}",
        summary="Get a category",
        description="Returns one category.",
        handler=_get,
        scope="pets:read",
        success=Success(200, "The category.", Category, _CATEGORY),
    ),
    _operation(
        id="updateCategory",
        method="PATCH",
        path="/categories/{categoryId}",
        summary="Change a category",
        description=(
            "Changes the members in the body (RFC 7396). A `description` of null removes it."
        ),
        handler=_update,
        scope="pets:write",
        body=CategoryPatch,
        body_example={"description": "Great and small."},
        success=Success(200, "The category as it is now.", Category, _CATEGORY),
        errors=(CategoryNameTaken,),
    ),
    _operation(
        id="deleteCategory",
        method="DELETE",
        path="/categories/{categoryId}",
        summary="Delete a category",
        description="Deletes a category without animals. Its `id` is not used again.",
        handler=_delete,
        scope="pets:write",
        success=Success(204, "The category is deleted."),
        errors=(CategoryInUse,),
    ),
)
