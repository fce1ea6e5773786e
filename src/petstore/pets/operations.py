"""The operations on animals."""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.domain.cursors import BY_ID, BY_NAME, MAX_COUNTED, NEWEST_FIRST
from petstore.domain.fields import Int64
from petstore.errors import IllegalTransition, InvalidParameter, PetReserved, UnknownCategory
from petstore.events.changes import Extent
from petstore.interface.idempotency import change
from petstore.interface.operation import (
    BASE,
    Call,
    Context,
    Deprecation,
    Operation,
    Result,
    Success,
)
from petstore.interface.pages import (
    Count,
    Ids,
    PageQuery,
    Sort,
    cursor_of,
    limit_of,
    page_result,
    require_plain_search,
    search_text,
)
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch, Status
from petstore.pets.rows import keys_of_each
from petstore.pets.search import search_pets
from petstore.pets.store import (
    count_pets_after,
    create_pet,
    create_pets,
    delete_pet,
    get_pet,
    list_pets,
    update_pet,
)


class ListPetsQuery(PageQuery, frozen=True, rename="camel"):
    """The query parameters of ``listPets``."""

    limit: Annotated[int, limit_of("animals")] = 20
    cursor: Annotated[str, cursor_of(BY_ID, NEWEST_FIRST, BY_NAME)] | UnsetType = UNSET
    status: Annotated[Status, Meta(description="Filters by availability status.")] | UnsetType = (
        UNSET
    )
    has_status: (
        Annotated[
            bool,
            Meta(
                description=(
                    "`false` for the animals without a status, `true` for those with one. Cannot be"
                    " `false` together with `status`."
                ),
                extra={"expected": "true or false"},
            ),
        ]
        | UnsetType
    ) = UNSET
    category_id: Annotated[Int64, Meta(description="Filters by category.")] | UnsetType = UNSET
    id: Ids | UnsetType = UNSET
    name: (
        Annotated[
            str,
            search_text(
                "Only animals with a word in their name that begins with this text, ignoring case"
                " and marks on letters, sorted by that word, then by name and `id`. A text of"
                " several words finds names with these words one after the other."
            ),
        ]
        | UnsetType
    ) = UNSET
    sort: Sort | UnsetType = UNSET
    count: Count | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListPetsQuery]) -> Result[list[Pet]]:
    query = call.query
    if query.status is not UNSET and query.has_status is False:
        msg = "hasStatus: expected true, or no status beside it"
        raise InvalidParameter(msg)
    wanted = PetFilter(query.status, query.category_id, query.id, query.has_status)
    limit = query.limit
    if query.name is not UNSET:
        return await _search(context, query, query.name, wanted)
    newest_first = query.sort == "-id"
    form = NEWEST_FIRST if newest_first else BY_ID
    start, store = query.start(form), context.services.store
    page = await list_pets(store, wanted, start, limit, newest_first=newest_first)
    ids = range(min(query.id), max(query.id) + 1) if query.id else page.ids
    # With or without a status is no filter of an extent: whatever changes among the ids shows.
    shown = Extent.of("pet", ids, query.status, query.category_id)
    total = None
    if query.count is True:
        total = await count_pets_after(store, wanted, None, MAX_COUNTED + 1)
    return page_result(page, form, shown, total)


async def _search(
    context: Context, query: ListPetsQuery, text: str, wanted: PetFilter
) -> Result[list[Pet]]:
    require_plain_search(query, "name")
    after = query.start(BY_NAME)
    page = await search_pets(context.services.store, text, wanted, after, query.limit)
    return page_result(page, BY_NAME)


async def _create(context: Context, call: Call[NewPet, None]) -> Result[Pet]:
    services = context.services
    unit = create_pet(
        call.body,
        now=services.clock(),
        strict_categories=services.strict_categories,
        by=context.author,
    )
    return await change(context, unit)


async def _create_batch(context: Context, call: Call[list[NewPet], None]) -> Result[list[Pet]]:
    services = context.services
    unit = create_pets(
        call.body,
        now=services.clock(),
        strict_categories=services.strict_categories,
        by=context.author,
        known=await keys_of_each(new.name for new in call.body),
    )
    return await change(context, unit)


async def _get(context: Context, call: Call[None, None]) -> Result[Pet]:
    return Result(await get_pet(context.services.store, call.path_id))


async def _update(context: Context, call: Call[PetPatch, None]) -> Result[Pet]:
    services = context.services
    unit = update_pet(
        call.path_id,
        call.body,
        services.clock(),
        context.conditions.check,
        strict_categories=services.strict_categories,
        by=context.author,
    )
    return await change(context, unit)


async def _delete(context: Context, call: Call[None, None]) -> Result[None]:
    now, check = context.services.clock(), context.conditions.check
    unit = delete_pet(call.path_id, now, check, by=context.author)
    return await change(context, unit)


_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "available"}
_OSKAR = {"name": "Oskar", "categoryId": 2}
_NEW = {"name": "Bella", "categoryId": 1, "status": "available"}

_operation = partial(Operation, tag="Pets", shows_orders=True)

OPERATIONS = (
    _operation(
        id="listPets",
        method="GET",
        path="/pets",
        summary="List animals",
        description=(
            "Returns a paginated list of animals, by ascending `id`. With `sort=-id` the newest"
            " come first; with `name` the animals are sorted by the word that matches. If there are"
            ' more, the `Link` header has the address of the next page with `rel="next"`; the last'
            " page has none. With `name`, a page may be shorter than `limit`, or even empty, and"
            " still have a next page."
        ),
        handler=_list,
        scope="pets:read",
        cached=True,
        query=ListPetsQuery,
        success=Success(200, "A page of animals.", list[Pet], [_PET, {"id": 9, **_OSKAR}]),
    ),
    _operation(
        id="createPet",
        method="POST",
        path="/pets",
        summary="Add an animal",
        description="Adds a new animal. It is on disk before the response is sent.",
        handler=_create,
        scope="pets:write",
        body=NewPet,
        body_example=_NEW,
        success=Success(201, "The animal, with the `id` the service assigned.", Pet, _PET),
        errors=(UnknownCategory,),
    ),
    _operation(
        id="createPets",
        method="POST",
        path="/pets/batch",
        summary="Add many animals",
        description=(
            "Adds up to 100 animals, all of them or none, and returns them in the same order. They"
            " are on disk before the response is sent. It costs as many requests as it has animals:"
            " one of the minute, and all of the day. If some are invalid, the message of the error"
            " names the place of each, counted from 0, as in `[3].name: expected …`."
        ),
        handler=_create_batch,
        scope="pets:write",
        body=list[NewPet],
        body_example=[_NEW, _OSKAR],
        tagged=False,
        success=Success(
            201,
            "The animals, with the ids the service assigned.",
            list[Pet],
            [_PET, {"id": 8, **_OSKAR}],
        ),
        errors=(UnknownCategory,),
    ),
    _operation(
        id="getPet",
        method="GET",
        path="/pets/{petId}",
        summary="Get an animal",
        description=(
            "Returns one animal by identifier. Deprecated, to be removed on 5 December 2030: use"
            " `GET /pets` with the `status` filter instead, or with the `id` filter for one animal."
        ),
        handler=_get,
        scope="pets:read",
        success=Success(200, "The animal.", Pet, _PET),
        deprecation=Deprecation(
            since=datetime(2026, 11, 21, tzinfo=UTC),
            sunset=datetime(2030, 12, 5, tzinfo=UTC),
            documentation="/docs/operations/getPet",
            successor=f"{BASE}/pets",
            use=f"GET {BASE}/pets, with id for one animal or with status",
        ),
    ),
    _operation(
        id="updatePet",
        method="PATCH",
        path="/pets/{petId}",
        summary="Change an animal",
        description=(
            "Changes the members in the body (RFC 7396). A `status` of null removes the status."
            " `available` can become `pending`, `sold` or none; `pending` can become `available`"
            " or `sold`; `sold` can become `available`; none can become any status. While an open"
            " order reserves the animal, its status cannot change."
        ),
        handler=_update,
        scope="pets:write",
        body=PetPatch,
        body_example={"status": "sold"},
        success=Success(200, "The animal as it is now.", Pet, _PET | {"status": "sold"}),
        errors=(UnknownCategory, IllegalTransition, PetReserved),
    ),
    _operation(
        id="deletePet",
        method="DELETE",
        path="/pets/{petId}",
        summary="Delete an animal",
        description=(
            "Deletes an animal, unless an open order reserves it. Its `id` is not used again."
        ),
        handler=_delete,
        scope="pets:write",
        success=Success(204, "The animal is deleted."),
        errors=(PetReserved,),
    ),
)
