"""What is asked of a service: requests as they are sent, byte by byte."""

import json
from collections.abc import Iterator
from itertools import cycle, islice
from random import Random
from typing import NamedTuple

import httpx

from stock import ANIMALS, MIXED, STATES

# Puts a store back to what it was before anything was written.
RESTORE = (
    f"DELETE FROM orders; DELETE FROM pets WHERE id > {ANIMALS};"  # noqa: S608 - numbers of ours
    f" UPDATE pets SET status = 'available' WHERE status = 'pending' AND id > {MIXED}"
)
WORKS = ("list", "deep page", "get", "create", "mix", "place order")
_DIFFERENT = 10_000
_ORDERS_PER_SECOND = 15_000


class Work(NamedTuple):
    """One kind of work: requests that follow each other for ever, and whether they write."""

    name: str
    requests: list[bytes]
    writes: bool = False


def page_path(status: str, limit: int = 20, cursor: str = "") -> str:
    """Return the path of a page of animals."""
    rest = f"&cursor={cursor}" if cursor else ""
    return f"/v1/pets?status={status}&limit={limit}{rest}"


def works(token: str, cursors: list[str], seconds: int) -> list[Work]:
    """Return every work, for so many seconds at most; deep pages begin at ``cursors``."""
    return [
        first_page(token),
        Work("deep page", _deep_pages(token, cursors)),
        Work("get", _gets(token)),
        Work("create", _creates(token), writes=True),
        Work("mix", mix(token), writes=True),
        Work(
            "place order",
            list(islice(orders(token), seconds * _ORDERS_PER_SECOND)),
            writes=True,
        ),
    ]


def first_page(token: str) -> Work:
    """Return the work that is one request: the first animals that are available."""
    return Work("list", [get(page_path("available"), token)])


def mix(token: str) -> list[bytes]:
    """Return 90 % lists of each status, 8 % gets and 2 % creates, at random."""
    random = _random()
    lists = [get(page_path(status), token) for status in STATES]
    kinds = random.choices((lists, _gets(token), _creates(token)), (90, 8, 2), k=_DIFFERENT)
    return [random.choice(kind) for kind in kinds]


def _deep_pages(token: str, cursors: list[str]) -> list[bytes]:
    """Return pages of many lengths, or a cache of answers would soon have them all."""
    random = _random()
    return [
        get(page_path("available", random.randint(11, 29), random.choice(cursors)), token)
        for _ in range(_DIFFERENT)
    ]


def _gets(token: str) -> list[bytes]:
    random = _random()
    return [get(f"/v1/pets/{random.randint(1, ANIMALS)}", token) for _ in range(_DIFFERENT)]


def _creates(token: str) -> list[bytes]:
    return [create(token, f"Bella {number}") for number in range(_DIFFERENT)]


def _random() -> Random:
    """Return what makes the same choices for each service."""
    return Random(5)  # noqa: S311 - requests, not secrets


def deep_cursors(url: str, token: str) -> Iterator[str]:
    """Yield the cursors of pages behind the 50,000th available animal of the service at ``url``."""
    path, seen = page_path("available", 100), 0
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}) as client:
        while link := client.get(path).raise_for_status().links.get("next"):
            path, seen = link["url"], seen + 100
            if seen > 50_000:
                yield httpx.URL(path).params["cursor"]


def updates(token: str) -> Iterator[bytes]:
    """Yield changes of status, each of another animal."""
    for status in cycle(("available", "sold")):
        body = json.dumps({"status": status})
        for pet_id in range(3, MIXED, 3):
            yield request("PATCH", f"/v1/pets/{pet_id}", token, body)


def orders(token: str) -> Iterator[bytes]:
    """Yield orders, each of another animal."""
    for pet_id in range(MIXED + 1, ANIMALS + 1):
        yield request("POST", "/v1/store/orders", token, json.dumps({"petId": pet_id}))


def create(token: str, name: str) -> bytes:
    """Return a request that adds an animal."""
    body = {"name": name, "categoryId": 1, "status": "available"}
    return request("POST", "/v1/pets", token, json.dumps(body))


def get(path: str, token: str) -> bytes:
    """Return a GET request."""
    return request("GET", path, token)


def request(method: str, path: str, token: str, body: str = "") -> bytes:
    """Return a request as it is sent."""
    head = f"{method} {path} HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n{body}".encode()
