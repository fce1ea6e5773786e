"""The operations on animals."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.api.messages import Answer, json_answer
from petstore.api.operation import Call
from petstore.domain.paging import CURSOR_PATTERN, decode_cursor, encode_cursor
from petstore.domain.pets import Int64, PetFilter, Status
from petstore.operations.pets import create_pet, get_pet, list_pets


class ListPetsQuery(Struct, frozen=True):
    """The query parameters of ``listPets``."""

    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="Maximum number of animals returned.",
            extra={"expected": "an integer from 1 to 100, in plain digits"},
        ),
    ] = 20
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
                description="Filters by identifier; may be repeated, up to 100 times.",
                extra={"expected": "up to 100 integers from -2^63 to 2^63 - 1, in plain digits"},
            ),
        ]
        | UnsetType
    ) = UNSET
    cursor: (
        Annotated[
            str,
            Meta(
                pattern=CURSOR_PATTERN,
                max_length=11,  # or a line break would pass behind the pattern's end
                description="Where the page starts: from the `Link` header of the page before.",
                extra={"expected": "the cursor of a Link header, unchanged"},
            ),
        ]
        | UnsetType
    ) = UNSET


async def answer_list_pets(call: Call) -> Answer:
    """Answer with a page, from memory if the same was asked since the last change."""
    target = b"%s?%s" % (call.request.path.encode("latin-1"), call.request.query)
    return await call.services.answers.of(target, lambda: _read_page(call))


async def _read_page(call: Call) -> Answer:
    """Answer with a page, and a ``Link`` to the next if there is one (RFC 8288)."""
    query: ListPetsQuery = call.query.values
    wanted = PetFilter(
        status=None if query.status is UNSET else query.status,
        category_id=None if query.categoryId is UNSET else query.categoryId,
        ids=None if query.id is UNSET else tuple(query.id),
    )
    after = None if query.cursor is UNSET else decode_cursor(query.cursor)
    page = await list_pets(call.services.store, wanted, after, query.limit)
    if page.next_after is None:
        return json_answer(200, page.pets)
    rest = f"{call.query.without_cursor}&" if call.query.without_cursor else ""
    link = f'<{call.request.path}?{rest}cursor={encode_cursor(page.next_after)}>; rel="next"'
    return json_answer(200, page.pets, [(b"link", link.encode("ascii"))])


async def answer_create_pet(call: Call) -> Answer:
    """Answer with the animal added and where it is."""
    pet = await create_pet(call.services.store, call.body)
    location = f"{call.request.path}/{pet.id}"
    return json_answer(201, pet, [(b"location", location.encode("ascii"))])


async def answer_get_pet(call: Call) -> Answer:
    """Answer with one animal."""
    return json_answer(200, await get_pet(call.services.store, call.path_id))
