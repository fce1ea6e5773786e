"""The rows of categories."""

from petstore.api.categories import (
    answer_create_category,
    answer_delete_category,
    answer_get_category,
    answer_list_categories,
    answer_update_category,
)
from petstore.api.operation import Operation, PathParameter, Success
from petstore.api.pages import PageQuery
from petstore.api.table.parts import BODY_ERRORS, location, next_page
from petstore.domain.categories import Category, CategoryPatch, NewCategory
from petstore.errors import CategoryInUse, CategoryNameTaken, InvalidParameter, NotFound

_CATEGORY = {"id": 1, "name": "Dogs", "description": "Great and small."}
_CATEGORY_ID = {"categoryId": "$response.body#/id"}

CATEGORIES = (
    Operation(
        id="listCategories",
        method="GET",
        path="/categories",
        tag="Categories",
        summary="List categories",
        description="Returns a page of categories, by ascending `id`.",
        handler=answer_list_categories,
        scope="pets:read",
        query=PageQuery,
        tagged=True,
        success=Success(
            200,
            "A page of categories.",
            list[Category],
            [_CATEGORY, {"id": 2, "name": "Cats"}],
            headers=(next_page("/categories"),),
        ),
        errors=(InvalidParameter,),
    ),
    Operation(
        id="createCategory",
        method="POST",
        path="/categories",
        tag="Categories",
        summary="Add a category",
        description="Adds a category. No other may have its name, whatever the case of letters.",
        handler=answer_create_category,
        scope="pets:write",
        body=NewCategory,
        body_example={"name": "Dogs", "description": "Great and small."},
        tagged=True,
        success=Success(
            201,
            "The category, with the `id` the service assigned.",
            Category,
            _CATEGORY,
            headers=(location("/categories/1"),),
            links={
                name: {"operationId": name, "parameters": _CATEGORY_ID}
                for name in ("getCategory", "updateCategory", "deleteCategory")
            },
        ),
        errors=(*BODY_ERRORS, CategoryNameTaken),
    ),
    Operation(
        id="getCategory",
        method="GET",
        path="/categories/{categoryId}",
        tag="Categories",
        summary="Get a category",
        description="Returns one category.",
        handler=answer_get_category,
        scope="pets:read",
        parameter=PathParameter("categoryId", "Identifier of the category."),
        tagged=True,
        success=Success(200, "The category.", Category, _CATEGORY),
        errors=(NotFound,),
    ),
    Operation(
        id="updateCategory",
        method="PATCH",
        path="/categories/{categoryId}",
        tag="Categories",
        summary="Change a category",
        description=(
            "Changes what the body names (RFC 7396); a `description` of null takes it away."
        ),
        handler=answer_update_category,
        scope="pets:write",
        parameter=PathParameter("categoryId", "Identifier of the category to change."),
        body=CategoryPatch,
        body_example={"description": "Great and small."},
        tagged=True,
        success=Success(200, "The category as it is now.", Category, _CATEGORY),
        errors=(*BODY_ERRORS, NotFound, CategoryNameTaken),
    ),
    Operation(
        id="deleteCategory",
        method="DELETE",
        path="/categories/{categoryId}",
        tag="Categories",
        summary="Delete a category",
        description="Deletes a category to which no animal belongs. Its `id` is not used again.",
        handler=answer_delete_category,
        scope="pets:write",
        parameter=PathParameter("categoryId", "Identifier of the category to delete."),
        tagged=True,
        success=Success(204, "The category is gone."),
        errors=(NotFound, CategoryInUse),
    ),
)
