"""ETag, If-None-Match and If-Match: versions of a resource (RFC 9110, sections 8.8.3 and 13)."""

import asyncio
import json
import re
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.keys.model import SCOPES
from support.cases import case
from support.client import RATE_LIMIT_HEADERS
from support.error_body import assert_error
from support.process import ServerProcess
from support.raw_socket import RawSocket
from support.sending import Send, sender
from support.service import Service
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
CONTENT_FIELDS = {"content-length", "content-type", "transfer-encoding"}
OTHER = '"0123456789abcdef01234567"'


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

resources = pytest.mark.parametrize("kind", [PET, CATEGORY, ORDER], ids=lambda kind: kind.path)


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key that may do everything."""
    return await sender(service, scopes=frozenset(SCOPES))


async def add(send: Send, kind: Resource = PET) -> str:
    """Add the first resource of a kind, and what it needs; return its tag."""
    if kind is ORDER:
        await send("POST", "/pets", json=BELLA)
    created = await send("POST", kind.path, json=kind.new)
    assert created.status_code == 201
    return etag(created)


def etag(response: httpx.Response) -> str:
    """Return the one ``ETag`` of a response, which must be strong."""
    (tag,) = response.headers.get_list("ETag")
    assert re.fullmatch(r'"[\x21\x23-\x7e]+"', tag)
    return tag


async def has_saved_its_use(send: Send) -> bool:
    """Return whether ``lastUsedAt`` of the key, which the list of keys shows, is saved."""
    return (await send("GET", "/keys/1")).json()["lastUsedAt"] is not None


# ETag


@resources
async def test_every_response_has_the_same_etag_for_one_version(send: Send, kind: Resource) -> None:
    tag = await add(send, kind)
    path = f"{kind.path}/1"
    assert etag(await send("GET", path)) == tag
    assert etag(await send("HEAD", path)) == tag
    assert etag(await send("PATCH", path, json={})) == tag
    changed = etag(await send("PATCH", path, json=kind.change))
    assert changed != tag
    assert etag(await send("GET", path)) == changed
    assert etag(await send("PATCH", path, json=kind.back)) == tag


async def test_an_order_changes_the_etag_of_its_pet(send: Send) -> None:
    tag = await add(send)
    await send("POST", "/store/orders", json={"petId": 1})
    assert etag(await send("GET", "/pets/1")) != tag


async def test_a_key_has_an_etag(service: Service, send: Send) -> None:
    key = await service.issue()
    path = f"/keys/{key.id}"
    tag = etag(await send("GET", path))
    assert etag(await send("GET", path)) == tag
    changed = await send("PATCH", path, json={"name": "till"}, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert etag(changed) == etag(await send("GET", path)) != tag
    for method in ("PATCH", "DELETE"):
        response = await send(method, path, json={}, headers={"If-Match": tag})
        assert_error(response, 412, "precondition_failed")
    response = await send("GET", path, headers={"If-None-Match": etag(changed)})
    assert response.status_code == 304
    response = await send("DELETE", path, headers={"If-Match": etag(changed)})
    assert response.status_code == 204


# If-None-Match


BY_PROXIES = (
    "W/{tag}",
    '"{bare}-gzip"',
    'W/"{bare};gzip"',
    '"{bare}--br"',
    '"a, b",W/{other} ,\tW/{tag}',
)
THIS_VERSION = (
    *("{tag}", "*", " {tag} ", "{other}, {tag}", '{tag},{other},""', "{tag} ,W/{other}"),
    *BY_PROXIES,
)
OTHER_VERSION = ("{other}", "W/{other}", "{bare}", '"{bare}', '"{bare} "', "", '""', '"*"')


@resources
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_if_none_match_with_this_version_is_304(
    send: Send, kind: Resource, method: str
) -> None:
    tag = await add(send, kind)
    for field in THIS_VERSION:
        with case(field):
            value = field.format(tag=tag, other=OTHER, bare=tag.strip('"'))
            headers = {"If-None-Match": value}
            response = await send(method, f"{kind.path}/1", headers=headers)
            assert response.status_code == 304
            assert response.content == b""
            assert etag(response) == tag
            assert not {"content-length", "content-type"} & set(response.headers)
            for name in (*RATE_LIMIT_HEADERS, "X-Request-Id"):
                assert len(response.headers.get_list(name)) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_if_none_match_with_another_version_gets_the_current_one(
    send: Send, method: str
) -> None:
    tag = await add(send)
    bare = tag.strip('"')
    body = b'{"id":1,"name":"Bella","categoryId":1,"status":"available"}'
    for field in (*OTHER_VERSION, '"{upper}"'):
        with case(field):
            value = field.format(other=OTHER, bare=bare, upper=bare.upper())
            response = await send(method, "/pets/1", headers={"If-None-Match": value})
            assert response.status_code == 200
            assert etag(response) == tag
            assert response.headers["Content-Type"] == "application/json"
            assert response.content == (b"" if method == "HEAD" else body)
            assert response.headers["Content-Length"] == str(len(body))


async def test_conditions_are_ignored_when_a_resource_is_created(send: Send) -> None:
    await add(send)
    for field in ("If-None-Match", "If-Match"):
        for value in ("*", OTHER):
            response = await send("POST", "/pets", json=BELLA, headers={field: value})
            assert response.status_code == 201


@resources
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_if_none_match_with_this_version_changes_nothing(
    send: Send, kind: Resource, method: str
) -> None:
    tag = await add(send, kind)
    path = f"{kind.path}/1"
    for field in ("{tag}", "*", "W/{tag}", '"x", W/{tag}'):
        with case(field):
            headers = {"If-None-Match": field.format(tag=tag)}
            response = await send(method, path, json=kind.change, headers=headers)
            message = assert_error(response, 412, "precondition_failed")
            assert message.startswith("If-None-Match: expected ")
            assert etag(await send("GET", path)) == tag
    response = await send(method, path, json=kind.change, headers={"If-None-Match": OTHER})
    assert response.is_success


async def test_a_304_counts_against_the_limit(service: Service, send: Send) -> None:
    tag = await add(send)
    key = await service.issue(per_minute=9, per_day=99)
    headers = {"If-None-Match": tag}
    response = await service.request("GET", "/v1/pets/1", key.token, headers=headers)
    assert response.status_code == 304
    assert response.headers["X-RateLimit-Remaining"] == "8"


# If-Match


async def test_if_match_with_this_version_allows_the_change(send: Send) -> None:
    tag = await add(send)
    for number, field in enumerate((*THIS_VERSION, " * ")):
        with case(field):
            headers = {"If-Match": field.format(tag=tag, other=OTHER, bare=tag.strip('"'))}
            patch = {"name": f"Max {number}"}
            response = await send("PATCH", "/pets/1", json=patch, headers=headers)
            assert response.json()["name"] == patch["name"]
            tag = etag(response)
    several = [("If-Match", OTHER), ("If-Match", tag)]
    assert (await send("PATCH", "/pets/1", json={"name": "Max"}, headers=several)).is_success


@resources
async def test_if_match_with_this_version_allows_a_change_and_a_deletion(
    send: Send, kind: Resource
) -> None:
    headers = {"If-Match": await add(send, kind)}
    changed = await send("PATCH", f"{kind.path}/1", json=kind.change, headers=headers)
    assert changed.status_code == 200
    headers = {"If-Match": etag(changed)}
    assert (await send("DELETE", f"{kind.path}/1", headers=headers)).status_code == 204


@resources
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_if_match_with_another_version_changes_nothing(
    send: Send, kind: Resource, method: str
) -> None:
    tag = await add(send, kind)
    path = f"{kind.path}/1"
    shown = await send("GET", path)
    malformed = ("w/{tag}", "W/ {tag}", "x{tag}", "{tag}x", "{tag} {other}", "*, {tag}")
    for field in (*OTHER_VERSION, *malformed, '"a" "{tag}'):
        with case(field):
            headers = {"If-Match": field.format(tag=tag, other=OTHER, bare=tag.strip('"'))}
            response = await send(method, path, json=kind.change, headers=headers)
            message = assert_error(response, 412, "precondition_failed")
            assert message.startswith("If-Match: expected ")
            assert "ETag" not in response.headers
    again = await send("GET", path)
    assert (again.status_code, again.content, etag(again)) == (200, shown.content, tag)


async def test_if_match_is_evaluated_before_a_conflict_is_found(send: Send) -> None:
    await add(send)
    await send("POST", "/store/orders", json={"petId": 1})
    for method in ("PATCH", "DELETE"):
        response = await send(
            method, "/pets/1", json={"status": "sold"}, headers={"If-Match": OTHER}
        )
        assert_error(response, 412, "precondition_failed")


@resources
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_the_second_change_of_the_same_version_is_refused(
    send: Send, kind: Resource, method: str
) -> None:
    path, headers = f"{kind.path}/1", {"If-Match": await add(send, kind)}
    first, second = await asyncio.gather(
        send("PATCH", path, json=kind.change, headers=headers),
        send(method, path, json=kind.back, headers=headers),
    )
    assert first.status_code == 200
    assert_error(second, 412, "precondition_failed")
    assert (await send("GET", path)).json() == first.json()


@pytest.mark.each_database
async def test_if_many_writers_change_the_same_version_only_one_succeeds(send: Send) -> None:
    headers = {"If-Match": await add(send)}
    responses = await asyncio.gather(
        *(send("PATCH", "/pets/1", json={"name": f"Max {n}"}, headers=headers) for n in range(20))
    )
    assert sorted(response.status_code for response in responses) == [200, *[412] * 19]
    (won,) = [response for response in responses if response.status_code == 200]
    assert (await send("GET", "/pets/1")).json() == won.json()


@resources
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_read_with_if_match_of_another_version_is_412(
    send: Send, kind: Resource, method: str
) -> None:
    tag = await add(send, kind)
    for path in (kind.path, f"{kind.path}/1"):
        for field in (OTHER, ""):
            response = await send(method, path, headers={"If-Match": field})
            assert response.status_code == 412
        for field in (tag, "*", f"{OTHER}, {tag}"):
            response = await send(method, path, headers={"If-Match": field})
            assert response.status_code == 200


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_if_match_is_evaluated_before_if_none_match(send: Send, method: str) -> None:
    tag = await add(send)
    headers = {"If-Match": OTHER, "If-None-Match": tag}
    response = await send(method, "/pets/1", json={}, headers=headers)
    assert assert_error(response, 412, "precondition_failed").startswith("If-Match: ")
    headers = {"If-Match": tag, "If-None-Match": tag}
    response = await send(method, "/pets/1", json={}, headers=headers)
    assert response.status_code == (304 if method == "GET" else 412)


@pytest.mark.parametrize("action", ["rotate", "unban"])
async def test_actions_on_a_key_may_be_conditional(
    service: Service, send: Send, action: str
) -> None:
    key = await service.issue()
    path = f"/keys/{key.id}"
    tag = etag(await send("GET", path))
    for headers in ({"If-Match": OTHER}, {"If-None-Match": tag}):
        response = await send("POST", f"{path}/{action}", headers=headers)
        assert_error(response, 412, "precondition_failed")
    assert (await send("GET", path)).json()["state"] == "active"
    assert etag(await send("GET", path)) == tag
    response = await send("POST", f"{path}/{action}", headers={"If-Match": tag})
    assert response.is_success


async def test_a_long_list_of_etags_is_read_to_its_end(send: Send) -> None:
    tag = await add(send)
    for values, status in ((f"{OTHER}, " * 500 + tag, 200), ('"' * 9999 + tag, 412)):
        response = await send("PATCH", "/pets/1", json={}, headers={"If-Match": values})
        assert response.status_code == status


# Lists


LISTS = ["/pets", "/categories", "/store/orders", "/keys", "/webhooks"]


@pytest.mark.each_database
async def test_if_none_match_with_an_unchanged_list_is_304(send: Send) -> None:
    await add(send, CATEGORY)
    await add(send, ORDER)
    await eventually(partial(has_saved_its_use, send))
    for path in LISTS:
        for method in ("GET", "HEAD"):
            with case(method, path):
                tag = etag(await send("GET", path))
                assert etag(await send(method, path)) == tag
                headers = {"If-None-Match": f"{OTHER}, W/{tag}"}
                response = await send(method, path, headers=headers)
                expected = (304, b"", tag)
                assert (response.status_code, response.content, etag(response)) == expected
                response = await send(method, path, headers={"If-None-Match": OTHER})
                assert (response.status_code, etag(response)) == (200, tag)


async def test_a_list_that_changes_gets_another_etag(send: Send) -> None:
    tags = [etag(await send("GET", "/pets"))]
    for change in (
        ("POST", "/pets", BELLA),
        ("POST", "/pets", BELLA),
        ("PATCH", "/pets/1", {"name": "Max"}),
        ("DELETE", "/pets/1", None),
    ):
        assert (await send(*change[:2], json=change[2])).is_success
        tags.append(etag(await send("GET", "/pets")))
    assert len(set(tags)) == 5


@pytest.mark.parametrize(
    ("kind", "query"), [(PET, "id=1"), (PET, "status=available"), (ORDER, "petId=1")]
)
async def test_a_list_of_one_resource_has_the_etag_of_the_resource(
    send: Send, kind: Resource, query: str
) -> None:
    tag = await add(send, kind)
    shown = await send("GET", f"{kind.path}?{query}")
    assert len(shown.json()) == 1
    assert etag(shown) == tag
    path, headers = f"{kind.path}/1", {"If-Match": tag}
    response = await send("PATCH", path, json=kind.change, headers=headers)
    assert response.status_code == 200
    response = await send("PATCH", path, json=kind.back, headers=headers)
    assert_error(response, 412, "precondition_failed")


# On the wire


def test_a_connection_stays_open_after_responses_without_a_body(
    server: ServerProcess, token: str
) -> None:
    def request(method: str, path: str, *lines: str, body: str = "") -> bytes:
        head = [
            *(f"{method} /v1{path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"),
            *(f"Content-Length: {len(body)}", *lines),
        ]
        return "\r\n".join([*head, "", body]).encode()

    with RawSocket(server.port) as connection:
        connection.send(request("POST", "/pets", body=json.dumps(BELLA)))
        created = connection.read_response()
        path = created.fields["location"].removeprefix("http://localhost/v1")
        tag = created.fields["etag"]
        for method in ("GET", "HEAD"):
            connection.send(request(method, path, f"If-None-Match: {tag}"))
            unchanged = connection.read_response(to_head=True)
            assert unchanged.status == 304
            assert unchanged.fields["etag"] == tag
            assert {"x-ratelimit-limit", "x-request-id"} <= set(unchanged.fields)
            assert not CONTENT_FIELDS & set(unchanged.fields)
        connection.send(request("GET", path))
        assert connection.read_response().json() == created.json()
        connection.send(request("DELETE", path, f"If-Match: {tag}"))
        deleted = connection.read_response()
        assert (deleted.status, deleted.body) == (204, b"")
        assert not CONTENT_FIELDS & set(deleted.fields)
        connection.send(request("GET", path))
        assert connection.read_response().status == 404
