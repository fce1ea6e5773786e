"""The operations on categories."""

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import answer_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call
from petstore.api.pages import PageQuery, answer_from_memory
from petstore.http.messages import Response
from petstore.store.categories import (
    create_category,
    delete_category,
    get_category,
    list_categories,
    update_category,
)


async def answer_list_categories(call: Call) -> Response:
    """Respond with a page of categories."""
    query: PageQuery = call.query.values
    return await answer_from_memory(
        call, lambda reader: list_categories(reader, query.after, query.limit)
    )


async def answer_create_category(call: Call) -> Response:
    """Respond with the category added and where it is."""
    path = call.request.path
    return await answer_once(
        call,
        create_category(call.body),
        lambda category: created_response(category, f"{path}/{category.id}"),
    )


async def answer_get_category(call: Call) -> Response:
    """Respond with one category."""
    return json_response(200, await get_category(call.services.store, call.path_id))


async def answer_update_category(call: Call) -> Response:
    """Respond with the category as it is now."""
    unit = update_category(call.path_id, call.body, precondition(call.request))
    return json_response(200, await call.services.store.write(unit))


async def answer_delete_category(call: Call) -> Response:
    """Delete a category."""
    await call.services.store.write(delete_category(call.path_id, precondition(call.request)))
    return empty_response()
