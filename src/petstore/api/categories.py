"""The operations on categories."""

from functools import partial

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import respond_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call, Operation, Success
from petstore.api.pages import PageQuery, cached_page
from petstore.domain.categories import Category, CategoryCreate, CategoryPatch
from petstore.errors import CategoryInUse, CategoryNameTaken
from petstore.http.messages import Response
from petstore.store.categories import (
    create_category,
    delete_category,
    get_category,
    list_categories,
    update_category,
)


async def _list(call: Call[None, PageQuery]) -> Response:
    query = call.query.values
    return await cached_page(call, lambda reader: list_categories(reader, query.after, query.limit))


async def _create(call: Call[CategoryCreate, None]) -> Response:
    unit = create_category(call.body, now=call.services.clock())
    return await respond_once(call, unit, lambda new: created_response(new, f"{call.url}/{new.id}"))


async def _get(call: Call[None, None]) -> Response:
    return json_response(200, await get_category(call.services.store, call.path_id))


async def _update(call: Call[CategoryPatch, None]) -> Response:
    unit = update_category(
        call.path_id, call.body, precondition(call.request), now=call.services.clock()
    )
    return json_response(200, await call.services.store.write(unit))


async def _delete(call: Call[None, None]) -> Response:
    await call.services.store.write(
        delete_category(call.path_id, precondition(call.request), now=call.services.clock())
    )
    return empty_response()


_CATEGORY = {"id": 13, "name": "Ferrets", "description": "Great and small."}

_operation = partial(Operation, tag="Categories")

OPERATIONS = (
    _operation(
        id="listCategories",
        method="GET",
        path="/categories",
        summary="List categories",
        description="Returns a page of categories, by ascending `id`.",
        handler=_list,
        scope="pets:read",
        query=PageQuery,
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
