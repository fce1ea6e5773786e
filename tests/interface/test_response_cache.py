"""Cached pages are never stale, are read again only if a change shows on them, and have a limit."""

import asyncio
import tracemalloc
from collections.abc import Iterator
from itertools import cycle
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from petstore.events.changes import PageRange
from petstore.http.messages import Response
from petstore.interface.operation import BASE, Result, Target, encode_result
from petstore.interface.operations import OPERATIONS
from petstore.interface.pages import ResponseCache
from petstore.keys.model import SCOPES
from petstore.pets.model import NewPet, Pet
from support.changes import create_pet
from support.exploration import explored
from support.memory_folder import folder_in_memory
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

GENERATION = 15_000
ORDERS = PageRange.of("order", range(1, 9), UNSET, UNSET)


class Reader:
    """Makes responses of ``size`` bytes with an ``extent``, and counts them."""

    def __init__(self, size: int = 0, extent: PageRange | None = ORDERS) -> None:
        self.size = size
        self.extent = extent
        self.reads = 0

    async def __call__(self) -> tuple[Response, PageRange | None]:
        self.reads += 1
        return Response(200, b"x" * self.size, []), self.extent


async def test_a_page_is_read_again_once_a_change_shows_on_it(service: Service) -> None:
    cache, read = (
        ResponseCache(service.store),
        Reader(extent=PageRange.of("pet", range(3, 100), UNSET, UNSET)),
    )
    for expected in (1, 1, 2, 3):
        await service.store.write(create_pet(NewPet("Bella", 1)))
        for _ in range(2):
            await cache.get(("", "/v1/pets", b""), read)
            assert read.reads == expected


async def test_a_page_without_an_extent_is_always_read(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader(extent=None)
    for _ in range(2):
        await cache.get(("", "/v1/pets", b"name=B"), read)
    assert read.reads == 2


async def test_a_page_read_during_a_change_is_read_again(service: Service) -> None:
    cache, read = (
        ResponseCache(service.store),
        Reader(extent=PageRange.of("pet", range(1, 100), UNSET, UNSET)),
    )

    async def read_slowly() -> tuple[Response, PageRange | None]:
        page = await read()
        await service.store.write(create_pet(NewPet("Bella", 1)))
        return page

    await cache.get(("", "/v1/pets", b""), read_slowly)
    await cache.get(("", "/v1/pets", b""), read)
    assert read.reads == 2


async def test_used_responses_stay_cached_longer_than_unused_ones(service: Service) -> None:
    cache, read = ResponseCache(service.store, GENERATION), Reader(1000)
    for n in range(20):
        await cache.get(("", "/v1/pets", b"in use"), read)
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    assert read.reads == 21
    await cache.get(("", "/v1/pets", b"0"), read)
    assert read.reads == 22


@pytest.mark.parametrize(("size", "queries"), [(GENERATION, 1), (3000, 20), (100, 50)])
async def test_the_cache_has_at_most_two_generations(
    service: Service, size: int, queries: int
) -> None:
    cache, read = ResponseCache(service.store, GENERATION), Reader(size)
    for n in range(queries):
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    for n in reversed(range(queries)):
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    cached = 2 * queries - read.reads
    assert cached * size <= 2 * GENERATION


LISTS = (
    "/pets",
    "/pets?status=available",
    "/pets?status=pending&categoryId=1",
    "/pets?categoryId=2",
    "/pets?sort=-id",
    "/pets?sort=-id&status=available",
    "/pets?hasStatus=false",
    "/pets?hasStatus=false&categoryId=2&sort=-id",
    "/pets?hasStatus=true",
    "/pets?hasStatus=true&categoryId=1&sort=-id",
    "/pets?id=1&id=4&id=7",
    "/pets?id=2&status=available",
    "/pets?name=b",
    "/pets?name=b&status=available",
    "/store/orders",
    "/store/orders?status=placed",
    "/store/orders?petId=2",
    "/store/orders?sort=-id",
    "/store/orders?buyer=j",
    "/store/orders?buyer=j&status=placed",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z&status=placed&sort=-id",
    "/categories",
)
BODIES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "/pets": (
        [{"name": "Bella", "categoryId": 1, "status": "available"}, {"name": "B", "categoryId": 2}],
        [
            {"name": "Oskar B."},
            {"status": "sold"},
            {"status": "available"},
            {"status": None},
            {"categoryId": 2},
        ],
    ),
    "/store/orders": (
        [
            {"petId": 1},
            {"petId": 2, "buyer": "Jane", "note": "Call first."},
            {"petId": 3, "complete": True, "buyer": "J\u00e4ne", "amount": 500},
            {"petId": 4},
        ],
        [
            {"shipDate": "2026-12-24T10:00:00Z"},
            {"status": "approved"},
            {"status": "cancelled"},
            {"buyer": "John"},
            {"note": "Has called."},
            {"buyer": None, "note": None},
        ],
    ),
    "/categories": (
        [{"name": f"Kind {number}"} for number in range(5)],
        [{"description": "Great and small."}, {"name": "Cats"}],
    ),
}


class Action(NamedTuple):
    """A change of the ``which``-th resource by one of two processes."""

    process: int
    path: str
    method: Literal["POST", "PATCH", "DELETE"]
    which: int
    change: int


actions = st.lists(
    st.builds(
        Action,
        st.integers(0, 1),
        st.sampled_from([*BODIES]),
        st.sampled_from(["POST", "POST", "PATCH", "DELETE"]),
        st.integers(1, 8),
        st.integers(0, 11),
    ),
    max_size=12,
)


async def do_action(service: Service, token: str, action: Action) -> None:
    added, changes = BODIES[action.path]
    if action.method == "POST":
        target, body = action.path, added[action.change % len(added)]
    else:
        target, body = f"{action.path}/{action.which}", changes[action.change % len(changes)]
    options = {} if action.method == "DELETE" else {"json": body}
    changed = await service.request(action.method, f"{BASE}{target}", token, **options)
    assert changed.status_code in {200, 201, 204, 400, 404, 409}, changed.text


async def pages(service: Service, token: str, limit: int) -> list[tuple[str, Any, str | None]]:
    """Return every page of every list, with its link to the next one."""
    found = []
    for path in LISTS:
        url: str | None = f"{BASE}{path}{'&' if '?' in path else '?'}limit={limit}"
        while url:
            page = await service.request("GET", url, token)
            assert page.status_code == 200, page.text
            following = page.links.get("next", {}).get("url")
            found.append((url, page.json(), following))
            url = following
    return found


async def walk(address: str, limit: int, work: list[Action]) -> None:
    async with running_service(address) as one, running_service(address) as other:
        token = (await one.issue(scopes=frozenset(SCOPES))).token
        for number in range(6):
            await do_action(one, token, Action(0, "/pets", "POST", 0, number))
        for action in work:
            await do_action((one, other)[action.process], token, action)
            shown = [await pages(service, token, limit) for service in (one, other)]
            async with running_service(address) as fresh:
                assert shown == [await pages(fresh, token, limit)] * 2


@pytest.mark.each_database
async def test_two_processes_on_each_database_show_the_same_pages(address: str) -> None:
    paths: tuple[str, ...] = ("/pets", "/store/orders", "/pets", "/categories")
    methods: Iterator[Any] = cycle(("POST", "PATCH", "DELETE", "PATCH"))
    work = [
        Action(number % 2, path, next(methods), 1 + number % 5, number)
        for number, path in enumerate(paths * 6)
    ]
    await walk(address, 2, work)


@explored(12)
@given(limit=st.integers(1, 4), work=actions)
def test_two_processes_show_every_page_as_one_that_has_just_begun(
    limit: int, work: list[Action]
) -> None:
    with folder_in_memory() as folder:
        asyncio.run(walk(f"sqlite:///{folder / 'petstore.db'}", limit, work))


async def test_pages_take_no_more_memory_than_is_counted_for_them(service: Service) -> None:
    operation = next(each for each in OPERATIONS if each.id == "listPets")
    cache = ResponseCache(service.store)
    pages: Any = cache._pages  # noqa: SLF001 - nobody else knows what is counted
    pets = [Pet(number, f"Bella {number}", 1, "available") for number in range(20)]

    async def read() -> tuple[Response, PageRange]:
        extent = PageRange.of("pet", range(1, 21), UNSET, UNSET)
        return encode_result(operation, Target("", "/v1/pets"), Result(pets)), extent

    room = pages._room  # noqa: SLF001
    tracemalloc.start()
    try:
        for n in range(1000):
            await cache.get(("", "/v1/pets", b"limit=20&cursor=%011d" % n), read)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The rest is for what allocators lose.
    assert taken <= 0.75 * (room - pages._room)  # noqa: SLF001
