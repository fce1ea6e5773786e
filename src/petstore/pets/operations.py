"""The operations on pets, and the inventory."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.domain.cursors import BY_ID, MAX_COUNTED, NEWEST_FIRST
from petstore.domain.fields import Int64
from petstore.errors import IllegalTransition, InvalidParameter, PetReserved, UnknownCategory
from petstore.events.changes import PageRange
from petstore.interface.idempotency import change
from petstore.interface.operation import BASE, Call, Context, Deprecation, Result, Success
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
from petstore.interface.resource import Resource, reading
from petstore.pets.model import Inventory, NewPet, Pet, PetFilter, PetPatch, Status
from petstore.pets.store import (
    count_pets,
    create_pet,
    create_pets,
    delete_pet,
    get_inventory,
    get_inventory_by_category,
    get_pet,
    list_pets,
    search_pets,
    update_pet,
)

_Status = Annotated[Status, Meta(description="Filters by availability status.")]
_HasStatus = Annotated[
    bool,
    Meta(
        description=(
            "`false` for the pets without a status, `true` for those with one. Cannot be"
            " `false` together with `status`."
        )
    ),
]
_Name = Annotated[
    str,
    search_text(
        "Only pets whose name has, for each word of this text, a word that begins with it,"
        " in any order, ignoring case, marks on letters and punctuation inside words."
    ),
]
_By = Annotated[
    Literal["category"], Meta(description="`category` adds the counts of each category.")
]


class ListPetsQuery(PageQuery, frozen=True, rename="camel"):
    limit: Annotated[int, limit_of("animals")] = 20
    cursor: Annotated[str, cursor_of(NEWEST_FIRST, BY_ID)] | UnsetType = UNSET
    status: _Status | UnsetType = UNSET
    has_status: _HasStatus | UnsetType = UNSET
    category_id: Annotated[Int64, Meta(description="Filters by category.")] | UnsetType = UNSET
    id: Ids | UnsetType = UNSET
    name: _Name | UnsetType = UNSET
    sort: Sort | UnsetType = UNSET
    count: Count | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListPetsQuery]) -> Result[list[Pet]]:
    query = call.query
    if query.status is not UNSET and query.has_status is False:
        raise InvalidParameter("hasStatus: expected true, or no status beside it")
    wanted = PetFilter(query.status, query.category_id, query.id, query.has_status)
    limit, store = query.limit, context.services.store
    if query.name is not UNSET:
        require_plain_search(query, "name")
        return page_result(await search_pets(store, query.name, wanted, query.after, limit))
    newest_first = query.sort == "-id"
    form = NEWEST_FIRST if newest_first else BY_ID
    page = await list_pets(store, wanted, query.start(form), limit, newest_first=newest_first)
    ids = range(min(query.id), max(query.id) + 1) if query.id else page.ids
    # With or without a status is no filter of an extent: whatever changes among the ids shows.
    shown = PageRange.of("pet", ids, query.status, query.category_id)
    total = await count_pets(store, wanted, MAX_COUNTED + 1) if query.count is True else None
    return page_result(page, form, shown, total)


async def _create_batch(context: Context, call: Call[list[NewPet], None]) -> Result[list[Pet]]:
    return await change(context, create_pets(context.change, call.body))


class GetInventoryQuery(Struct, frozen=True):
    by: _By | UnsetType = UNSET


async def _get_inventory(
    context: Context, call: Call[None, GetInventoryQuery]
) -> Result[Inventory]:
    get = get_inventory if call.query.by is UNSET else get_inventory_by_category
    return Result(await get(context.services.store))


_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "available"}
_OSKAR = {"name": "Oskar", "categoryId": 2}
_NEW = {"name": "Bella", "categoryId": 1, "status": "available"}

_RESOURCE = Resource(
    *(Pet, "/pets", "Pets", "an animal", "pets:read", "pets:write", _PET), shows_orders=True
)

OPERATIONS = (
    _RESOURCE.list(
        _list,
        ListPetsQuery,
        "Returns a paginated list of animals, by ascending `id`. With `sort=-id` the newest come"
        " first. If there are more,"
        ' the `Link` header has the address of the next page with `rel="next"`; the last page has'
        " none. With `name`, a page may be shorter than `limit`, or even empty, and still have a"
        " next page.",
        [{"id": 9, **_OSKAR}],
        summary="List animals",
    ),
    _RESOURCE.create(
        create_pet,
        NewPet,
        "Adds a new animal. It is on disk before the response is sent.",
        body_example=_NEW,
        errors=(UnknownCategory,),
    ),
    _RESOURCE.row(
        "createPets",
        "POST",
        "/pets/batch",
        "Add many pets",
        "Adds up to 100 pets, all of them or none, and returns them in the same order. They are"
        " on disk before the response is sent. It costs as many requests as it has pets: one of"
        " the minute, and all of the day. If some are invalid, the message of the error names the"
        " place of each, counted from 0, as in `[3].name: expected …`.",
        _create_batch,
        Success(
            201,
            "The pets, with the ids the service assigned.",
            list[Pet],
            [_PET, {"id": 8, **_OSKAR}],
        ),
        body=list[NewPet],
        body_example=[_NEW, _OSKAR],
        in_turn=True,
        errors=(UnknownCategory,),
    ),
    _RESOURCE.get(
        reading(get_pet),
        "Returns one animal by identifier. Deprecated, to be removed on 5 December 2030: use"
        " `GET /pets` with the `status` filter instead, or with the `id` filter for one pet.",
        deprecation=Deprecation(
            since=datetime(2026, 11, 21, tzinfo=UTC),
            sunset=datetime(2030, 12, 5, tzinfo=UTC),
            documentation="/docs/operations/getPet",
            successor=f"{BASE}/pets",
            use=f"GET {BASE}/pets, with id for one pet or with status",
        ),
    ),
    _RESOURCE.update(
        update_pet,
        PetPatch,
        "A `status` of null removes the status. `available` can become `pending`, `sold` or none;"
        " `pending` can become `available` or `sold`; `sold` can become `available`; none can"
        " become any status. While an open order reserves the pet, its status cannot change.",
        example=_PET | {"status": "sold"},
        body_example={"status": "sold"},
        summary="Change a pet",
        errors=(UnknownCategory, IllegalTransition, PetReserved),
    ),
    _RESOURCE.delete(
        delete_pet,
        "Deletes a pet, unless an open order reserves it. Its `id` is not used again.",
        summary="Delete a pet",
        errors=(PetReserved,),
    ),
    _RESOURCE.row(
        "getInventory",
        "GET",
        "/store/inventory",
        "Count the pets",
        "Returns the number of pets of each status. With `by=category` it also returns the"
        " counts of each category, up to 1,000 of them.",
        _get_inventory,
        Success(200, "The counts.", Inventory, {"available": 112, "pending": 3, "sold": 40}),
        tag="Store",
        scope="orders:read",
        query=GetInventoryQuery,
        tagged=False,
    ),
)
