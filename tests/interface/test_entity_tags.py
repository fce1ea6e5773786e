"""ETag, If-None-Match and If-Match: versions of a resource (RFC 9110, sections 8.8.3 and 13)."""

import asyncio
import re
from itertools import product
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.keys.model import SCOPES
from support.cases import case
from support.client import RATE_LIMIT_HEADERS
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import Service
from support.waiting import eventually
from support.webhooks import URL

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
CONTENT_FIELDS = {"content-length", "content-type"}
OTHER = '"0123456789abcdef01234567"'
THIS_VERSION = (
    *("{tag}", "*", " {tag} ", " * ", "{other}, {tag}", '{tag},{other},""', "{tag} ,W/{other}"),
    # As proxies that compress change it.
    *("W/{tag}", '"{bare}-gzip"', 'W/"{bare};gzip"', '"{bare}--br"'),
    '"a, b",W/{other} ,\tW/{tag}',
)
OTHER_VERSION = ("{other}", "W/{other}", "{bare}", '"{bare}', '"{bare} "', "", '""', '"*"')
MALFORMED = ("w/{tag}", "W/ {tag}", "x{tag}", "{tag}x", "{tag} {other}", "*, {tag}", '"a" "{tag}')
# How a change or a deletion can say that it is not for the current version.
NOT_THIS_ONE = [
    *(("If-Match", value) for value in (*OTHER_VERSION, *MALFORMED)),
    *(("If-None-Match", value) for value in ("{tag}", "*", "W/{tag}", '"x", W/{tag}')),
]


class Resource(NamedTuple):
    """A resource: the list it is added to, the body that adds it, and two changes to it."""

    path: str
    new: dict[str, Any]
    change: dict[str, Any]
    back: dict[str, Any]


PET = Resource("/pets", BELLA, {"name": "Max"}, {"name": "Bella"})
CATEGORY = Resource("/categories", {"name": "Dogs"}, {"description": "All."}, {"description": None})
ORDER = Resource(
    "/store/orders", {"petId": 1}, {"shipDate": "2026-12-24T10:00:00Z"}, {"shipDate": None}
)
KEY = Resource("/keys", {"name": "Till"}, {"name": "Till 2"}, {"name": "Till"})
WEBHOOK = Resource("/webhooks", {"url": URL}, {"enabled": False}, {"enabled": True})

resources = pytest.mark.parametrize(
    "kind", [PET, CATEGORY, ORDER, KEY, WEBHOOK], ids=lambda kind: kind.path
)


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key that may do everything."""
    return await sender(service, scopes=frozenset(SCOPES))


async def add(send: Send, kind: Resource = PET) -> tuple[str, str]:
    """Add a resource of a kind, and what it needs; return its path and its tag."""
    if kind is ORDER:
        await send("POST", "/pets", json=BELLA)
    created = await send("POST", kind.path, json=kind.new)
    assert created.status_code == 201
    path = f"{kind.path}/{created.json()['id']}"
    tag = etag(await send("GET", path))
    # A response with a secret is no version of the resource.
    shows_secret = {"token", "secret"} & created.json().keys()
    assert created.headers.get_list("ETag") == ([] if shows_secret else [tag])
    return path, tag


def etag(response: httpx.Response) -> str:
    """Return the one ``ETag`` of a response, which must be strong."""
    (tag,) = response.headers.get_list("ETag")
    assert re.fullmatch(r'"[\x21\x23-\x7e]+"', tag)
    return tag


def spelled(value: str, tag: str) -> str:
    return value.format(tag=tag, other=OTHER, bare=tag.strip('"'))


@resources
async def test_a_version_of_a_resource_has_one_etag_under_which_alone_it_can_be_changed(
    send: Send, kind: Resource
) -> None:
    path, tag = await add(send, kind)
    for method, value in product(("GET", "HEAD"), THIS_VERSION):
        with case(method, value):
            response = await send(method, path, headers={"If-None-Match": spelled(value, tag)})
            assert (response.status_code, response.content) == (304, b"")
            assert etag(response) == tag
            assert not CONTENT_FIELDS & set(response.headers)
            for name in (*RATE_LIMIT_HEADERS, "X-Request-Id"):
                assert len(response.headers.get_list(name)) == 1
    shown = await send("GET", path)
    for method, (field, value) in product(("PATCH", "DELETE"), NOT_THIS_ONE):
        with case(method, field, value):
            headers = {field: spelled(value, tag)}
            response = await send(method, path, json=kind.change, headers=headers)
            message = assert_error(response, 412, "precondition_failed")
            assert message.startswith(f"{field}: expected ")
            assert "ETag" not in response.headers
    again = await send("GET", path)
    assert (again.status_code, again.content, etag(again)) == (200, shown.content, tag)
    assert etag(await send("HEAD", path)) == etag(await send("PATCH", path, json={})) == tag
    headers = {"If-Match": tag, "If-None-Match": OTHER}
    changed = etag(await send("PATCH", path, json=kind.change, headers=headers))
    assert changed != tag
    assert etag(await send("GET", path)) == changed
    assert etag(await send("PATCH", path, json=kind.back)) == tag
    for method, patch in (("PATCH", kind.change), ("DELETE", kind.back)):
        headers = {"If-Match": etag(await send("GET", path)), "If-None-Match": OTHER}
        first, second = await asyncio.gather(
            send("PATCH", path, json=patch, headers=headers),
            send(method, path, json={}, headers=headers),
        )
        assert first.status_code == 200
        assert_error(second, 412, "precondition_failed")
        assert (await send("GET", path)).json() == first.json()
    headers = {"If-Match": etag(first), "If-None-Match": OTHER}
    deleted = await send("DELETE", path, headers=headers)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert not CONTENT_FIELDS & set(deleted.headers)


# Reads


async def test_a_304_counts_against_the_limit_and_another_version_gets_the_current_one(
    service: Service, send: Send
) -> None:
    path, tag = await add(send)
    key = await service.issue(per_minute=9, per_day=99)
    headers = {"If-None-Match": tag}
    response = await service.request("GET", f"/v1{path}", key.token, headers=headers)
    assert response.status_code == 304
    assert response.headers["X-RateLimit-Remaining"] == "8"  # it counts against the limit
    body = b'{"id":1,"name":"Bella","categoryId":1,"status":"available"}'
    for method, value in product(("GET", "HEAD"), (*OTHER_VERSION, tag.upper())):
        with case(method, value):
            response = await send(method, path, headers={"If-None-Match": spelled(value, tag)})
            assert response.status_code == 200
            assert etag(response) == tag
            assert response.headers["Content-Type"] == "application/json"
            assert response.content == (b"" if method == "HEAD" else body)
            assert response.headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize("kind", [PET, CATEGORY, ORDER], ids=lambda kind: kind.path)
async def test_a_read_with_if_match_of_another_version_is_412(send: Send, kind: Resource) -> None:
    path, _ = await add(send, kind)
    for method, target in product(("GET", "HEAD"), (kind.path, path)):
        tag = etag(await send("GET", target))
        for value, status in (
            *((OTHER, 412), ("", 412)),
            *((tag, 200), ("*", 200), (f"{OTHER}, {tag}", 200)),
        ):
            with case(method, target, value):
                response = await send(method, target, headers={"If-Match": value})
                assert response.status_code == status


# Changes


async def test_if_match_with_this_version_allows_the_change_and_no_condition_concerns_a_new_pet(
    send: Send,
) -> None:
    path, tag = await add(send)
    for field, value in product(("If-None-Match", "If-Match"), ("*", OTHER)):
        response = await send("POST", "/pets", json=BELLA, headers={field: value})
        assert response.status_code == 201
    for number, value in enumerate(THIS_VERSION):
        with case(value):
            patch = {"name": f"Max {number}"}
            headers = {"If-Match": spelled(value, tag)}
            response = await send("PATCH", path, json=patch, headers=headers)
            assert response.json()["name"] == patch["name"]
            tag = etag(response)
    several = [("If-Match", OTHER), ("If-Match", tag)]
    assert (await send("PATCH", path, json={}, headers=several)).is_success
    for value, status in ((f"{OTHER}, " * 500 + tag, 200), ('"' * 9999 + tag, 412)):
        response = await send("PATCH", path, json={}, headers={"If-Match": value})
        assert response.status_code == status


async def test_if_match_is_evaluated_before_if_none_match_and_both_before_a_conflict(
    send: Send,
) -> None:
    path, before = await add(send)
    await send("POST", "/store/orders", json={"petId": 1})
    tag = etag(await send("GET", path))
    assert tag != before
    for method in ("GET", "PATCH", "DELETE"):
        headers = {"If-Match": OTHER, "If-None-Match": tag}
        response = await send(method, path, json={"status": "sold"}, headers=headers)
        assert assert_error(response, 412, "precondition_failed").startswith("If-Match: ")
        headers = {"If-Match": tag, "If-None-Match": tag}
        response = await send(method, path, json={"status": "sold"}, headers=headers)
        assert response.status_code == (304 if method == "GET" else 412)


@pytest.mark.each_database
async def test_if_many_writers_change_the_same_version_only_one_succeeds(send: Send) -> None:
    path, tag = await add(send)
    headers = {"If-Match": tag}
    responses = await asyncio.gather(
        *(send("PATCH", path, json={"name": f"Max {n}"}, headers=headers) for n in range(20))
    )
    assert sorted(response.status_code for response in responses) == [200, *[412] * 19]
    (won,) = [response for response in responses if response.status_code == 200]
    assert (await send("GET", path)).json() == won.json()


async def test_actions_on_a_key_may_be_conditional(send: Send) -> None:
    path, tag = await add(send, KEY)
    for action in ("unban", "rotate"):
        for headers in ({"If-Match": OTHER}, {"If-None-Match": tag}):
            response = await send("POST", f"{path}/{action}", headers=headers)
            assert_error(response, 412, "precondition_failed")
        assert etag(await send("GET", path)) == tag
        response = await send("POST", f"{path}/{action}", headers={"If-Match": tag})
        assert response.is_success


# Lists


@pytest.mark.each_database
async def test_if_none_match_with_an_unchanged_list_is_304(send: Send) -> None:
    async def has_saved_its_use() -> bool:
        # The list of keys shows the last use.
        return (await send("GET", "/keys/1")).json()["lastUsedAt"] is not None

    for kind in (CATEGORY, ORDER):
        await add(send, kind)
    await eventually(has_saved_its_use)
    for path, method in product(
        ("/pets", "/categories", "/store/orders", "/keys", "/webhooks"), ("GET", "HEAD")
    ):
        with case(method, path):
            tag = etag(await send("GET", path))
            for sent, status in ((f"{OTHER}, W/{tag}", 304), (OTHER, 200)):
                response = await send(method, path, headers={"If-None-Match": sent})
                assert (response.status_code, etag(response)) == (status, tag)


async def test_a_list_that_changes_gets_another_etag(send: Send) -> None:
    tags = [etag(await send("GET", "/pets?limit=2"))]
    for method, path, body in (
        ("POST", "/pets", BELLA),
        ("POST", "/pets", BELLA),
        ("POST", "/pets", BELLA),  # which only the link to the next page shows
        ("PATCH", "/pets/1", {"name": "Max"}),
        ("DELETE", "/pets/1", None),
    ):
        assert (await send(method, path, json=body)).is_success
        tags.append(etag(await send("GET", "/pets?limit=2")))
    assert len(set(tags)) == 6


@pytest.mark.parametrize(
    ("kind", "query"), [(PET, "id=1"), (PET, "status=available"), (ORDER, "petId=1")]
)
async def test_a_list_of_one_resource_has_the_etag_of_the_resource(
    send: Send, kind: Resource, query: str
) -> None:
    path, tag = await add(send, kind)
    shown = await send("GET", f"{kind.path}?{query}")
    assert len(shown.json()) == 1
    assert etag(shown) == tag
    headers = {"If-Match": tag}
    for body, status in ((kind.change, 200), (kind.back, 412)):
        response = await send("PATCH", path, json=body, headers=headers)
        assert response.status_code == status
