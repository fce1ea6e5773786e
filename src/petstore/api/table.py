"""The interface as a table: what is not here does not exist, and what is here is documented."""

from datetime import UTC, datetime

from petstore.api.operation import (
    Deprecation,
    Operation,
    PathParameter,
    ResponseHeader,
    Success,
)
from petstore.api.pets import (
    ListPetsQuery,
    answer_create_pet,
    answer_get_pet,
    answer_list_pets,
)
from petstore.api.usage import answer_get_usage
from petstore.domain.pets import NewPet, Pet
from petstore.errors import (
    ContentTooLarge,
    Gone,
    IncompleteBody,
    InvalidBody,
    InvalidParameter,
    NotFound,
    RequestTimeout,
    UnsupportedMediaType,
)
from petstore.operations.usage import Usage

BASE = "/v1"

_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "available"}
_BODY_ERRORS = (InvalidBody, IncompleteBody, RequestTimeout, ContentTooLarge, UnsupportedMediaType)

OPERATIONS: tuple[Operation, ...] = (
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
        success=Success(
            200,
            "A page of animals.",
            list[Pet],
            [_PET, {"id": 9, "name": "Oskar", "categoryId": 2}],
            headers=(
                ResponseHeader(
                    "Link",
                    "The next page, if there is one (RFC 8288).",
                    '</v1/pets?limit=20&cursor=AAAAAAAAABQ>; rel="next"',
                ),
            ),
        ),
        errors=(InvalidParameter,),
    ),
    Operation(
        id="createPet",
        method="POST",
        path="/pets",
        tag="Pets",
        summary="Add an animal",
        description="Adds an animal. It is on disk before the answer is sent.",
        handler=answer_create_pet,
        scope="pets:write",
        body=NewPet,
        body_example={"name": "Bella", "categoryId": 1, "status": "available"},
        success=Success(
            201,
            "The animal, with the `id` the service assigned.",
            Pet,
            _PET,
            headers=(ResponseHeader("Location", "Where the animal is.", "/v1/pets/7"),),
            links={
                "getPet": {"operationId": "getPet", "parameters": {"petId": "$response.body#/id"}}
            },
        ),
        errors=_BODY_ERRORS,
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
        id="getUsage",
        method="GET",
        path="/usage",
        tag="Usage",
        summary="See what your key has used",
        description=(
            "Returns the plan of the key that asks, both of its windows, its ban if there is one,"
            " and its requests a day for the last 30 days (UTC). It costs nothing, and answers"
            " when a limit is reached too."
        ),
        handler=answer_get_usage,
        scope=None,
        charged=False,
        success=Success(
            200,
            "The use of the key.",
            Usage,
            {
                "plan": "free",
                "minute": {"limit": 60, "remaining": 59, "reset": 1795262460},
                "day": {"limit": 1000, "remaining": 999, "reset": 1795305600},
                "bannedUntil": None,
                "days": [{"date": "2026-11-21", "requests": 1}],
            },
        ),
    ),
)
