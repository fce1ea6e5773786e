"""The operations on animals."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import answer_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call
from petstore.api.pages import PageQuery, answer_from_memory, limit_of
from petstore.domain.fields import Int64
from petstore.domain.pets import PetFilter, Status
from petstore.http.messages import Response
from petstore.store.pets import create_pet, delete_pet, get_pet, list_pets, update_pet


class ListPetsQuery(PageQuery, frozen=True):
    """The query parameters of ``listPets``."""

    limit: Annotated[int, limit_of("animals")] = 20
    status: Annotated[Status, Meta(description="Filters by availability status.")] | UnsetType = (
        UNSET
    )
    categoryId: (  # noqa: N815 - the name in the interface
        Annotated[Int64, Meta(description="Filters by category.")] | UnsetType
    ) = UNSET
    id: (
        Annotated[
            list[Int64],
            Meta(
                max_length=100,
                description=(
                    "Filters by identifier; may be repeated, up to 100 times. `id[]=7` and"
                    " `id[0]=7` mean the same."
                ),
                extra={"expected": "up to 100 integers from -2^63 to 2^63 - 1, in plain digits"},
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def wanted(self) -> PetFilter:
        """Which animals are asked for."""
        return PetFilter(
            status=None if self.status is UNSET else self.status,
            category_id=None if self.categoryId is UNSET else self.categoryId,
            ids=None if self.id is UNSET else tuple(self.id),
        )


async def answer_list_pets(call: Call) -> Response:
    """Respond with a page of animals."""
    query: ListPetsQuery = call.query.values
    return await answer_from_memory(
        call, lambda reader: list_pets(reader, query.wanted, query.after, query.limit)
    )


async def answer_create_pet(call: Call) -> Response:
    """Respond with the animal added and where it is."""
    unit = create_pet(call.body, strict_categories=call.services.strict_categories)
    path = call.request.path
    return await answer_once(call, unit, lambda pet: created_response(pet, f"{path}/{pet.id}"))


async def answer_get_pet(call: Call) -> Response:
    """Respond with one animal."""
    return json_response(200, await get_pet(call.services.store, call.path_id))


async def answer_update_pet(call: Call) -> Response:
    """Respond with the animal as it is now."""
    unit = update_pet(
        call.path_id,
        call.body,
        call.services.clock(),
        precondition(call.request),
        strict_categories=call.services.strict_categories,
    )
    return json_response(200, await call.services.store.write(unit))


async def answer_delete_pet(call: Call) -> Response:
    """Delete an animal."""
    unit = delete_pet(call.path_id, call.services.clock(), precondition(call.request))
    await call.services.store.write(unit)
    return empty_response()
