"""Pages of lists: none is stale or has an item too many or too few, and their cache has a limit."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple

import httpx
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
from support.cases import case
from support.changes import create_pet
from support.exploration import explored
from support.memory_folder import folder_in_memory
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

LISTS = (
    "/pets",
    "/pets?status=available",
    "/pets?categoryId=1",
    "/pets?status=pending&categoryId=1",
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
    "/store/orders?petId=7",
    "/store/orders?sort=-id",
    "/store/orders?buyer=j",
    "/store/orders?buyer=j&status=placed",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z&status=placed&sort=-id",
    "/categories",
)
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
# What is added to each list, and how it is changed. Each order is of a pet of its own.
BODIES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "/pets": (
        [BELLA, BELLA, {"name": "B", "categoryId": 2}],
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
            {},
            {"buyer": "Jane", "note": "Call first."},
            {"complete": True, "buyer": "J\u00e4ne", "amount": 500},
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
        [{"name": f"Kind {number}"} for number in range(30)],
        [{"description": "Great and small."}, {"name": "Cats"}],
    ),
    "/keys": ([{"name": "Till"}], [{"name": "Till 2"}, {"plan": "pro"}]),
}


class Action(NamedTuple):
    """A change of the ``which``-th resource by one of two processes."""

    process: int
    path: str
    method: Literal["POST", "PATCH", "DELETE"]
    which: int
    change: int


actions = st.builds(
    Action,
    st.integers(0, 1),
    st.sampled_from(["/pets", "/store/orders", "/categories"]),
    st.sampled_from(["POST", "POST", "PATCH", "DELETE"]),
    st.integers(1, 8),
    st.integers(0, 29),
)


class Client(NamedTuple):
    service: Service
    token: str

    async def ask(self, method: str, target: str, body: Any = None) -> httpx.Response:
        options = {} if body is None else {"json": body}
        response = await self.service.request(method, f"{BASE}{target}", self.token, **options)
        assert response.status_code in {200, 201, 204, 404, 409}, response.text
        return response

    async def act(self, action: Action) -> None:
        _, path, method, which, change = action
        added, changes = BODIES[path]
        if method == "POST":
            body = added[change % len(added)]
            if path == "/store/orders":
                pet = await self.ask("POST", "/pets", BELLA)
                body = {**body, "petId": pet.json()["id"]}
            await self.ask("POST", path, body)
        elif method == "PATCH":
            await self.ask("PATCH", f"{path}/{which}", changes[change % len(changes)])
        else:
            await self.ask("DELETE", f"{path}/{which}")

    async def fill(self, path: str, count: int) -> None:
        for number in range(count):
            await self.act(Action(0, path, "POST", 0, number))

    async def pages(
        self, target: str, limit: int, between: Callable[[int], Awaitable[None]] | None = None
    ) -> list[tuple[str, list[Any]]]:
        """Return each page of a list with its path; call ``between`` with their number so far."""
        found: list[tuple[str, list[Any]]] = []
        following = f"{target}{'&' if '?' in target else '?'}limit={limit}"
        while following:
            page = await self.ask("GET", following)
            found.append((following, page.json()))
            assert len(found) < 100, "a walk in a circle"
            following = page.links.get("next", {}).get("url", "").partition(BASE)[2]
            if following and between is not None:
                await between(len(found))
        return found

    async def ids(self, target: str) -> set[int]:
        ((_, items),) = await self.pages(target, 100)
        return {item["id"] for item in items}


@asynccontextmanager
async def opened(address: str, token: str = "") -> AsyncIterator[Client]:
    """Run a service that writes nothing by itself, which would take most of the time here."""
    async with running_service(address, limits_save_seconds=60, key_refresh_seconds=60) as service:
        yield Client(service, token or (await service.issue(scopes=frozenset(SCOPES))).token)


async def walk_while_others_work(
    address: str, target: str, first: int, limit: int, work: list[list[Action]]
) -> None:
    async with opened(address) as client:
        path = target.partition("?")[0]
        await client.fill(path, first)
        throughout = await client.ids(target)
        ever = set(throughout)

        async def between(number: int) -> None:
            for action in work[number - 1] if number <= len(work) else ():
                await client.act(action._replace(path=path))
                present = await client.ids(target)
                throughout.intersection_update(present)
                ever.update(present)

        pages = [items for _, items in await client.pages(target, limit, between)]
        ids = [item["id"] for page in pages for item in page]
        assert all(len(page) == limit for page in pages[:-1])
        assert ids == sorted(set(ids), reverse="sort=-id" in target)
        assert throughout <= set(ids) <= ever


@pytest.mark.parametrize("target", [*LISTS, "/keys"])
@explored(8)
@given(
    first=st.integers(0, 12),
    limit=st.integers(1, 5),
    work=st.lists(st.lists(actions, max_size=4), max_size=12),
)
def test_what_existed_throughout_a_walk_is_listed_exactly_once_in_order(
    target: str, first: int, limit: int, work: list[list[Action]]
) -> None:
    with folder_in_memory() as folder:
        address = f"sqlite:///{folder / 'petstore.db'}"
        asyncio.run(walk_while_others_work(address, target, first, limit, work))


@pytest.mark.each_database
async def test_an_unchanging_list_is_the_same_in_pages_of_any_size(address: str) -> None:
    async with opened(address) as client:
        for path in BODIES:
            await client.fill(path, 6)
        for target in (*LISTS, "/keys"):
            ((_, whole),) = await client.pages(target, 100)
            assert whole, target
            for limit in range(1, len(whole) + 2):
                with case(target, limit):
                    pages = [items for _, items in await client.pages(target, limit)]
                    assert [item for page in pages for item in page] == whole
                    # The last page is known to be the last: there is no empty one behind it.
                    assert [len(page) for page in pages] == [
                        min(limit, len(whole) - at) for at in range(0, len(whole), limit)
                    ]


# Pages from memory


async def compare_two_processes(address: str, limit: int, work: list[Action]) -> None:
    async with opened(address) as one, opened(address, one.token) as other:
        await one.fill("/pets", 6)
        for action in work:
            await (one, other)[action.process].act(action)
            async with opened(address, one.token) as fresh:
                for target in LISTS:
                    shown = [await client.pages(target, limit) for client in (one, other)]
                    assert shown == [await fresh.pages(target, limit)] * 2


@pytest.mark.each_database
async def test_two_processes_on_each_database_show_the_same_pages(address: str) -> None:
    work = [
        Action(0, "/pets", "PATCH", 2, 1),  # sold
        Action(1, "/store/orders", "POST", 0, 1),
        Action(0, "/pets", "DELETE", 4, 0),
        Action(1, "/store/orders", "PATCH", 1, 3),  # another buyer
        Action(0, "/store/orders", "PATCH", 1, 2),  # cancelled
        Action(1, "/pets", "PATCH", 5, 4),  # another category
        Action(0, "/categories", "POST", 0, 0),
        Action(1, "/categories", "PATCH", 1, 0),
        Action(0, "/store/orders", "POST", 0, 2),
        Action(1, "/pets", "PATCH", 2, 2),  # available
        Action(0, "/pets", "PATCH", 2, 3),  # without a status
        Action(1, "/categories", "DELETE", 1, 0),
    ]
    await compare_two_processes(address, 2, work)


@explored(12)
@given(limit=st.integers(1, 4), work=st.lists(actions, max_size=8))
def test_two_processes_show_every_page_as_one_that_has_just_begun(
    limit: int, work: list[Action]
) -> None:
    with folder_in_memory() as folder:
        address = f"sqlite:///{folder / 'petstore.db'}"
        asyncio.run(compare_two_processes(address, limit, work))


class Reader:
    """Makes responses with an ``extent``, and counts them."""

    def __init__(self, ids: range | None) -> None:
        self.extent = None if ids is None else PageRange.of("pet", ids, UNSET, UNSET)
        self.reads = 0

    async def __call__(self) -> tuple[Response, PageRange | None]:
        self.reads += 1
        return Response(200, b"", []), self.extent


async def test_a_page_is_read_again_once_a_change_shows_on_it_or_came_while_it_was_read(
    service: Service,
) -> None:
    cache, read, read_always = ResponseCache(service.store), Reader(range(3, 100)), Reader(None)

    async def read_slowly() -> tuple[Response, PageRange | None]:
        page = await read()
        await service.store.write(create_pet(NewPet("Bella", 1)))
        return page

    for number, expected in enumerate((1, 1, 2, 3), 1):
        await service.store.write(create_pet(NewPet("Bella", 1)))
        for _ in range(2):
            await cache.get(("", "/v1/pets", b""), read)
            await cache.get(("", "/v1/pets", b"name=B"), read_always)
        assert (read.reads, read_always.reads) == (expected, 2 * number)
    for reader, reads in ((read_slowly, 4), (read, 5)):
        await cache.get(("", "/v1/pets", b"limit=9"), reader)
        assert read.reads == reads


@pytest.mark.parametrize(
    ("requested", "kept"),
    [
        ("abcde", "cde"),
        ("abcade", "ade"),
        ("abcaaadefg", "efg"),  # one more chance, however often it was used
        ("abcabde", "abe"),
        ("abcabcde", "bce"),  # all were used, so the last is the first without another chance
        ("aabZ", "a"),  # Z is larger than the cache
    ],
)
async def test_the_oldest_page_that_was_not_used_makes_room(
    service: Service, requested: str, kept: str
) -> None:
    read = Reader(range(3, 100))

    async def read_much() -> tuple[Response, PageRange | None]:
        return Response(200, bytes(6000), []), read.extent

    cache = ResponseCache(service.store, 3000)  # three pages
    for name in requested:
        await cache.get(("", name, b""), read_much if name == "Z" else read)
    reads = read.reads
    for name in kept:
        await cache.get(("", name, b""), read)
    assert read.reads == reads
    assert sorted(path for _, path, _ in cache._pages) == [*kept]  # noqa: SLF001


async def test_a_page_that_is_read_again_leaves_its_room(service: Service) -> None:
    cache, read = ResponseCache(service.store, 3000), Reader(range(100, 200))
    read_again = Reader(range(1, 100))
    await cache.get(("", "a", b""), read)
    for expected in range(1, 5):
        await service.store.write(create_pet(NewPet("Bella", 1)))
        await cache.get(("", "b", b""), read_again)
        assert read_again.reads == expected
    await cache.get(("", "a", b""), read)
    assert read.reads == 1


async def test_pages_take_no_more_memory_than_is_counted_for_them(service: Service) -> None:
    operation = next(each for each in OPERATIONS if each.id == "listPets")
    cache = ResponseCache(service.store)
    pets = [Pet(number, f"Bella {number}", 1, "available") for number in range(20)]

    async def read() -> tuple[Response, PageRange]:
        extent = PageRange.of("pet", range(1, 21), UNSET, UNSET)
        return encode_result(operation, Target("", "/v1/pets"), Result(pets)), extent

    room = cache._room  # noqa: SLF001 - no public name tells what is counted
    tracemalloc.start()
    try:
        for n in range(1000):
            await cache.get(("", "/v1/pets", b"limit=20&cursor=%011d" % n), read)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The rest is for what allocators lose.
    assert taken <= 0.9 * (room - cache._room)  # noqa: SLF001
