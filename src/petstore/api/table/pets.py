"""The rows of animals."""

from datetime import UTC, datetime

from petstore.api.operation import Deprecation, Operation, PathParameter, Success
from petstore.api.pets import (
    ListPetsQuery,
    answer_create_pet,
    answer_delete_pet,
    answer_get_pet,
    answer_list_pets,
    answer_update_pet,
)
from petstore.api.table.parts import BASE, BODY_ERRORS, location, next_page
from petstore.domain.pets import NewPet, Pet, PetPatch
from petstore.errors import (
    Gone,
    IllegalTransition,
    InvalidParameter,
    NotFound,
    PetReserved,
    UnknownCategory,
)

_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "available"}
_PET_ID = {"petId": "$response.body#/id"}

PETS = (
    Operation(
        id="listPets",
        method="GET",
        path="/pets",
        tag="Pets",
        summary="List animals",
        description=(
            "Returns a paginated list of animals, by ascending `id`. If there are more, the `Link`"
            ' header carries the address of the next page with `rel="next"`; the last page has'
            " none."
        ),
        handler=answer_list_pets,
        scope="pets:read",
        query=ListPetsQuery,
        tagged=True,
        success=Success(
            200,
            "A page of animals.",
            list[Pet],
            [_PET, {"id": 9, "name": "Oskar", "categoryId": 2}],
            headers=(next_page("/pets"),),
        ),
        errors=(InvalidParameter,),
    ),
    Operation(
        id="createPet",
        method="POST",
        path="/pets",
        tag="Pets",
        summary="Add an animal",
        description="Adds a new animal. It is on disk before the answer is sent.",
        handler=answer_create_pet,
        scope="pets:write",
        body=NewPet,
        body_example={"name": "Bella", "categoryId": 1, "status": "available"},
        tagged=True,
        success=Success(
            201,
            "The animal, with the `id` the service assigned.",
            Pet,
            _PET,
            headers=(location("/pets/7"),),
            links={
                "getPet": {"operationId": "getPet", "parameters": _PET_ID},
                "updatePet": {"operationId": "updatePet", "parameters": _PET_ID},
                "deletePet": {"operationId": "deletePet", "parameters": _PET_ID},
            },
        ),
        errors=(*BODY_ERRORS, UnknownCategory),
    ),
    Operation(
        id="getPet",
        method="GET",
        path="/pets/{petId}",
        tag="Pets",
        summary="Get an animal",
        description=(
            "Returns one animal by identifier. Deprecated, to be removed on 5 December 2030: use"
            " `GET /pets` with the `status` filter instead, or with the `id` filter for one animal."
        ),
        handler=answer_get_pet,
        scope="pets:read",
        parameter=PathParameter("petId", "Identifier of the animal to retrieve."),
        tagged=True,
        success=Success(200, "The animal.", Pet, _PET),
        errors=(NotFound, Gone),
        deprecation=Deprecation(
            since=datetime(2026, 11, 21, tzinfo=UTC),
            sunset=datetime(2030, 12, 5, tzinfo=UTC),
            documentation="/docs#/Pets/getPet",
            successor=f"{BASE}/pets",
        ),
    ),
    Operation(
        id="updatePet",
        method="PATCH",
        path="/pets/{petId}",
        tag="Pets",
        summary="Change an animal",
        description=(
            "Changes what the body names (RFC 7396); a `status` of null takes it away. From"
            " `available` the status can become `pending`, `sold` or none, from `pending`"
            " `available` or `sold`, from `sold` `available`, and from none any. While an open"
            " order holds the animal, its status stays."
        ),
        handler=answer_update_pet,
        scope="pets:write",
        parameter=PathParameter("petId", "Identifier of the animal to change."),
        body=PetPatch,
        body_example={"status": "sold"},
        tagged=True,
        success=Success(200, "The animal as it is now.", Pet, _PET | {"status": "sold"}),
        errors=(*BODY_ERRORS, UnknownCategory, NotFound, IllegalTransition, PetReserved),
    ),
    Operation(
        id="deletePet",
        method="DELETE",
        path="/pets/{petId}",
        tag="Pets",
        summary="Delete an animal",
        description="Deletes an animal that no open order holds. Its `id` is not used again.",
        handler=answer_delete_pet,
        scope="pets:write",
        parameter=PathParameter("petId", "Identifier of the animal to delete."),
        tagged=True,
        success=Success(204, "The animal is gone."),
        errors=(NotFound, PetReserved),
    ),
)
