"""Animals."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from petstore_client._calls import Call, Listing, given, into, members, nothing, only, parameters
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client.models import Pet, PetStatus


class Pets(Resource[D]):
    """Animals: ``client.pets``."""

    @operation
    def create(
        self,
        *,
        name: str,
        category_id: int,
        status: PetStatus | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Pet]:
        """Add an animal and return it."""
        body = given(name=name, category_id=category_id, status=status)
        return Call(
            *("createPet", "POST", "/pets", into(Pet)), body=body, idempotency_key=idempotency_key
        )

    @operation
    def get(self, pet_id: int) -> Call[Pet]:
        """Return an animal.

        Raises:
            NotFound: there is none with this id.
        """
        query = parameters(id=f"{pet_id:d}")
        return Call("listPets", "GET", "/pets", only(Pet, f"pet {pet_id}"), query)

    @operation
    def update(
        self,
        pet_id: int,
        *,
        name: str | UnsetType = UNSET,
        category_id: int | UnsetType = UNSET,
        status: PetStatus | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Call[Pet]:
        """Change what is named and return the animal; a ``status`` of ``None`` removes it.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        body = members(name=name, category_id=category_id, status=status)
        return Call(
            *("updatePet", "PATCH", f"/pets/{pet_id:d}", into(Pet)), body=body, if_match=if_match
        )

    @operation
    def delete(self, pet_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete an animal.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return Call("deletePet", "DELETE", f"/pets/{pet_id:d}", nothing, if_match=if_match)

    @listing
    def list(
        self,
        *,
        status: PetStatus | None = None,
        category_id: int | None = None,
        id: int | Sequence[int] | None = None,  # noqa: A002 - the name of the parameter
        name: str | None = None,
        sort: Literal["id", "-id"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Pet]:
        """Iterate over all animals that the filters admit.

        ``name`` is the beginning of a name. ``limit`` is the size of a page, from 1 to 100.
        """
        query = parameters(
            status=status,
            category_id=category_id,
            id=id,
            name=name,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
        return Listing("listPets", "/pets", Pet, query)

    pages = paging(list)  # noqa: A003 - the method above
