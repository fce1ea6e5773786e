"""Categories of animals."""

from msgspec import UNSET, UnsetType

from petstore_client._calls import Call, Listing, given, into, members, nothing, parameters
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client.models import Category


class Categories(Resource[D]):
    """Categories of animals: ``client.categories``."""

    @operation
    def create(
        self, *, name: str, description: str | None = None, idempotency_key: str | None = None
    ) -> Call[Category]:
        """Add a category and return it."""
        return Call(
            *("createCategory", "POST", "/categories", into(Category)),
            body=given(name=name, description=description),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, category_id: int) -> Call[Category]:
        """Return a category."""
        return Call("getCategory", "GET", f"/categories/{category_id:d}", into(Category))

    @operation
    def update(
        self,
        category_id: int,
        *,
        name: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Call[Category]:
        """Change what is named and return the category; ``None`` removes a ``description``.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return Call(
            *("updateCategory", "PATCH", f"/categories/{category_id:d}", into(Category)),
            body=members(name=name, description=description),
            if_match=if_match,
        )

    @operation
    def delete(self, category_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete a category to which no animal belongs.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        path = f"/categories/{category_id:d}"
        return Call("deleteCategory", "DELETE", path, nothing, if_match=if_match)

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Category]:
        """Iterate over all categories. ``limit`` is the size of a page, from 1 to 100."""
        query = parameters(limit=limit, cursor=cursor)
        return Listing("listCategories", "/categories", Category, query)

    pages = paging(list)  # noqa: A003 - the method above
