"""The requests that a service is sent, byte by byte.

They differ as real ones do: each has ids and one of many keys, and each list is one of many pages.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from itertools import cycle, islice, product
from random import Random
from string import ascii_letters
from typing import NamedTuple
from urllib.parse import urlsplit

from stock import CATEGORIES, MIXED, PETS, STATES

# Puts a store back to what it was before anything was written.
RESTORE = (
    f"DELETE FROM orders; DELETE FROM pets WHERE id > {PETS};"  # noqa: S608 - numbers of ours
    f" DELETE FROM pet_words_queue WHERE item_id > {PETS};"
    f" UPDATE pets SET status = 'available' WHERE status = 'pending' AND id > {MIXED}"
)
WRITING = ("create", "mix", "place order")
KEYS = 1_000
PAGES = 50  # of each status and category
IDS = b"\1"  # what wrk.lua replaces by an X-Request-Id and a traceparent
_DIFFERENT = 20_000
_LIMITS = range(11, 30)  # of cold and of deep pages
_DEEP = slice(500, 1_000)  # the cursors from the 50,000th pet on
_ORDERS_PER_SECOND = 15_000


class Sources(NamedTuple):
    """The data that requests to a service are made of.

    ``lists`` are paths of pages; ``cursors`` are those after each 100 available pets.
    """

    tokens: list[str]
    lists: list[str]
    cursors: list[str]


class Work(NamedTuple):
    """One kind of work: requests that are sent in turn, again and again."""

    name: str
    requests: list[bytes]

    @property
    def writes(self) -> bool:
        """Whether the store has to be put back after it."""
        return self.name in WRITING


def work(name: str, given: Sources, seconds: int) -> Work:
    """Return the work of that name, for so many seconds at most; chance is the same each time."""
    if name == "same list":
        return first_page(given.tokens[0])
    number = seconds * _ORDERS_PER_SECOND if name == "place order" else _DIFFERENT
    return Work(name, [with_ids(one) for one in islice(requests_of(name, given), number)])


def requests_of(name: str, given: Sources) -> Iterator[bytes]:
    """Yield the requests of a work, without ids of their own."""
    return _MAKERS[name](given, Random(5))  # noqa: S311 - no secrets


def with_ids(one: bytes) -> bytes:
    """Return a request with room for ids of its own after its header fields."""
    return one.replace(b"\r\n\r\n", b"\r\n" + IDS + b"\r\n", 1)


def first_page(token: str) -> Work:
    """Return the work that is one request: the first available pets, the same bytes."""
    return Work("same list", [get(page_path("available"), token)])


def _lists(given: Sources, random: Random) -> Iterator[bytes]:
    while True:
        yield get(random.choice(given.lists), random.choice(given.tokens))


def _cold_lists(given: Sources, random: Random) -> Iterator[bytes]:
    """Yield more pages than a cache keeps, each as often as any other."""
    pages = [*product(_LIMITS, given.cursors)]
    random.shuffle(pages)
    for limit, cursor in cycle(pages):
        yield get(page_path("available", limit, cursor), random.choice(given.tokens))


def _deep_pages(given: Sources, random: Random) -> Iterator[bytes]:
    deep = given.cursors[_DEEP]
    while True:
        limit, cursor = random.choice(_LIMITS), random.choice(deep)
        yield get(page_path("available", limit, cursor), random.choice(given.tokens))


def _gets(given: Sources, random: Random) -> Iterator[bytes]:
    while True:
        yield get(f"/v1/pets/{random.randint(1, PETS)}", random.choice(given.tokens))


def _creates(given: Sources, random: Random) -> Iterator[bytes]:
    while True:
        name = "".join(random.choices(ascii_letters, k=random.randint(3, 20)))
        category, status = random.randint(1, CATEGORIES), random.choice(STATES)
        yield create(random.choice(given.tokens), name, category, status)


def _mix(given: Sources, random: Random) -> Iterator[bytes]:
    """Yield 90 % lists, 8 % gets and 2 % creates, at random."""
    kinds = [make(given, random) for make in (_lists, _gets, _creates)]
    while True:
        (kind,) = random.choices(kinds, (90, 8, 2))
        yield next(kind)


def _place_orders(given: Sources, random: Random) -> Iterator[bytes]:
    """Yield orders, each of another pet."""
    for pet_id in range(MIXED + 1, PETS + 1):
        body = json.dumps({"petId": pet_id})
        yield request("POST", "/v1/store/orders", random.choice(given.tokens), body)


_MAKERS: dict[str, Callable[[Sources, Random], Iterator[bytes]]] = {
    "list": _lists,
    "cold list": _cold_lists,
    "deep page": _deep_pages,
    "get": _gets,
    "create": _creates,
    "mix": _mix,
    "place order": _place_orders,
}
WORKS = (*_MAKERS, "same list")


def sources(url: str, tokens: list[str]) -> Sources:
    """Walk the pages of the service at ``url``, which may have a next one without end."""
    address = urlsplit(url)
    with closing(HTTPConnection(f"{address.hostname}", address.port)) as connection:
        lists = []
        for status, category in product(STATES, range(1, CATEGORIES + 1)):
            first = page_path(status, category=category)
            others = islice(_cursors(connection, first, tokens[0]), PAGES - 1)
            lists += [first, *(f"{first}&cursor={cursor}" for cursor in others)]
        pages = _cursors(connection, page_path("available", 100), tokens[0])
        return Sources(tokens, lists, list(islice(pages, PETS // 100)))


def _cursors(connection: HTTPConnection, path: str, token: str) -> Iterator[str]:
    """Yield the cursor of each page after the first."""
    cursor = ""
    while True:
        target = f"{path}&cursor={cursor}" if cursor else path
        connection.request("GET", target, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        response.read()
        found = re.search(r"[?&]cursor=([^&>]+)[^>]*>", response.getheader("Link", ""))
        if not found:
            return
        cursor = found[1]
        yield cursor


def page_path(status: str, limit: int = 20, cursor: str = "", category: int | None = None) -> str:
    """Return the path of a page of pets."""
    one_category = f"&categoryId={category}" if category else ""
    after = f"&cursor={cursor}" if cursor else ""
    return f"/v1/pets?status={status}{one_category}&limit={limit}{after}"


def create(token: str, name: str, category: int = 1, status: str = "available") -> bytes:
    """Return a request that adds a pet."""
    body = {"name": name, "categoryId": category, "status": status}
    return request("POST", "/v1/pets", token, json.dumps(body))


def get(path: str, token: str) -> bytes:
    """Return a GET request."""
    return request("GET", path, token)


def request(method: str, path: str, token: str, body: str = "") -> bytes:
    """Return a request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()
