"""Lists walked page by page while others work: nothing is left out, and nothing comes twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import Any, Literal, NamedTuple

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.interface.operation import BASE
from petstore.keys.model import SCOPES
from support.exploration import explored
from support.memory_folder import folder_in_memory
from support.service import Service, running_service

LISTS = (
    "/pets",
    "/pets?status=available",
    "/pets?categoryId=1",
    "/pets?categoryId=1&status=available",
    "/pets?sort=-id",
    "/pets?sort=-id&status=available",
    "/pets?hasStatus=false",
    "/pets?hasStatus=true",
    "/pets?hasStatus=true&categoryId=1&sort=-id",
    "/pets?name=bELL",
    "/pets?name=bELL&status=available",
    "/store/orders",
    "/store/orders?status=placed",
    "/store/orders?sort=-id",
    "/store/orders?buyer=bELL",
    "/store/orders?buyer=bELL&status=placed",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z",
    "/store/orders?placedBefore=2040-01-01T00:00:00Z&status=placed&sort=-id",
    "/categories",
    "/keys",
)
MAX_PAGES = 100
CHANGES: dict[str, list[dict[str, Any]]] = {
    "/pets": [
        {"name": "Rex"},
        {"status": "sold"},
        {"status": "available"},
        {"status": None},
        {"categoryId": 2},
    ],
    "/store/orders": [
        {"shipDate": "2026-12-24T10:00:00Z"},
        {"status": "approved"},
        {"buyer": "Rex"},
    ],
    "/categories": [{"description": "Great and small."}, {"description": None}],
    "/keys": [{"name": "Till 2"}, {"plan": "pro"}],
}


class Action(NamedTuple):
    """A change by another client between two pages, to the ``which``-th pet ever created."""

    kind: Literal["add", "change", "delete"]
    which: int
    change: int


actions = st.builds(
    Action, st.sampled_from(["add", "change", "delete"]), st.integers(0, 30), st.integers(0, 4)
)
walks = st.lists(st.lists(actions, max_size=4), max_size=12)


def lasting(item: dict[str, Any]) -> dict[str, Any]:
    """Return ``item`` without the last use of a key, which the service saves in its own time."""
    return {name: value for name, value in item.items() if name != "lastUsedAt"}


class Shelf:
    """One list of a service, and what can be done to what it lists."""

    def __init__(self, service: Service, token: str, target: str) -> None:
        self._sign = -1 if "sort=-id" in target else 1
        self.path, _, self.query = target.partition("?")
        self.ids: list[int] = []
        self._service = service
        self._token = token
        self._numbers = count(1)

    def in_order(self, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(items, key=lambda one: self._sign * one["id"])

    async def ask(self, method: str, target: str, **options: Any) -> httpx.Response:
        response = await self._service.request(method, target, self._token, **options)
        assert response.status_code in {200, 201, 204, 404, 409}, response.text
        return response

    async def page(self, limit: int) -> httpx.Response:
        return await self.ask("GET", f"{BASE}{self.path}?{self.query}&limit={limit}")

    async def whole(self) -> dict[int, Any]:
        page = await self.page(100)
        assert "next" not in page.links
        return {item["id"]: lasting(item) for item in page.json()}

    async def add(self) -> None:
        body = await self._new_body(next(self._numbers))
        added = await self.ask("POST", f"{BASE}{self.path}", json=body)
        self.ids.append(added.json()["id"])

    async def _new_body(self, number: int) -> dict[str, Any]:
        if self.path == "/categories":
            return {"name": f"Kind {number}"}
        if self.path == "/keys":
            return {"name": f"Till {number}"}
        pet = {"name": f"Bella {number}", "categoryId": 1, "status": "available"}
        if "hasStatus=false" in self.query:
            del pet["status"]
        if self.path == "/pets":
            return pet
        added = await self.ask("POST", f"{BASE}/pets", json=pet)
        return {"petId": added.json()["id"], "buyer": pet["name"]}

    async def do(self, action: Action) -> None:
        """Apply the change, and check that the list shows it."""
        if action.kind == "add" or not self.ids:
            await self.add()
            touched = self.ids[-1]
        else:
            touched = self.ids[action.which % len(self.ids)]
            target = f"{BASE}{self.path}/{touched}"
            if action.kind == "delete":
                await self.ask("DELETE", target)
            else:
                changes = CHANGES[self.path]
                await self.ask("PATCH", target, json=changes[action.change % len(changes)])
        await self._check(touched)

    async def _check(self, touched: int) -> None:
        listed = await self.whole()
        got = await self.ask("GET", f"{BASE}{self.path}/{touched}")
        if touched in listed:
            assert lasting(got.json()) == listed[touched]
        elif not self.query:
            assert got.status_code == 404

    async def walk(
        self, limit: int, between: Callable[[int], Awaitable[None]]
    ) -> list[list[dict[str, Any]]]:
        """Return all pages; call ``between`` with their number before each further one."""
        pages = []
        page = await self.page(limit)
        while True:
            pages.append([lasting(item) for item in page.json()])
            if "next" not in page.links:
                return pages
            assert len(pages) < MAX_PAGES, "a walk in a circle"
            await between(len(pages))
            page = await self.ask("GET", page.links["next"]["url"])


async def walk_while_others_work(
    address: str, target: str, first: int, limit: int, walk: list[list[Action]]
) -> None:
    async with running_service(address) as service:
        token = (await service.issue(scopes=frozenset(SCOPES))).token
        shelf = Shelf(service, token, target)
        for _ in range(first):
            await shelf.add()
        present = set(await shelf.whole())
        throughout, ever = set(present), set(present)

        async def between(number: int) -> None:
            for action in walk[number - 1] if number <= len(walk) else ():
                await shelf.do(action)
                present = set(await shelf.whole())
                throughout.intersection_update(present)
                ever.update(present)

        pages = await shelf.walk(limit, between)
        items = [item for page in pages for item in page]
        seen = {item["id"] for item in items}
        assert all(len(page) == limit for page in pages[:-1])
        assert items == shelf.in_order(items)
        assert len(items) == len(seen)
        assert throughout <= seen <= ever


@pytest.mark.parametrize("target", LISTS)
@explored(8)
@given(first=st.integers(0, 12), limit=st.integers(1, 5), walk=walks)
def test_pets_that_existed_throughout_are_listed_exactly_once_in_order(
    target: str, first: int, limit: int, walk: list[list[Action]]
) -> None:
    with folder_in_memory() as folder:
        database = folder / "petstore.db"
        asyncio.run(walk_while_others_work(f"sqlite:///{database}", target, first, limit, walk))


@pytest.mark.anyio
@pytest.mark.each_database
@pytest.mark.parametrize("target", LISTS)
async def test_an_unchanging_list_is_the_same_in_pages_of_any_size(
    service: Service, target: str
) -> None:
    token = (await service.issue(scopes=frozenset(SCOPES))).token
    shelf = Shelf(service, token, target)
    for _ in range(6):
        await shelf.add()

    async def nothing(_: int) -> None:
        pass

    whole = list((await shelf.whole()).values())
    assert len(whole) >= 6
    for limit in range(1, len(whole) + 2):
        pages = await shelf.walk(limit, nothing)
        assert [item for page in pages for item in page] == whole
        # The last page is known to be the last: there is no empty one behind it.
        assert [len(page) for page in pages] == [
            min(limit, len(whole) - at) for at in range(0, len(whole), limit)
        ]
