"""``Idempotency-Key`` over HTTP: a retry acts once and gets the first response.

That each POST does, on each database, is tested in test_openapi.py.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.databases.contract import Statement
from petstore.interface.idempotency import request_digest
from petstore.keys.model import SCOPES
from petstore.orders.model import OrderCreate
from support.cases import case
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 7, "status": "available"}
DOGS = {"name": "Dogs", "description": "Great and small."}
TILL = {"name": "Till", "scopes": ["pets:read", "orders:read"]}

Post: TypeAlias = Callable[..., Awaitable[httpx.Response]]
"""Takes a path, a body and an Idempotency-Key."""


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends with a key that may do everything."""
    return await sender(service, scopes=frozenset(SCOPES))


@pytest.fixture
def post(send: Send) -> Post:
    return posting(send)


def posting(send: Send) -> Post:
    async def post(path: str, body: Any = None, field: str | bytes = "a") -> httpx.Response:
        sent = {"content": body} if isinstance(body, str) else {"json": body}
        return await send("POST", path, headers={"Idempotency-Key": field}, **sent)

    return post


async def count_in(service: Service, table: str) -> int:
    ((number,),) = await service.store.read(Statement(f"SELECT count(*) FROM {table}"))  # noqa: S608
    return int(number)


def is_replay(response: httpx.Response) -> bool:
    values = response.headers.get_list("Idempotent-Replayed")
    assert values in ([], ["true"])
    return bool(values)


def assert_same(replay: httpx.Response, first: httpx.Response) -> None:
    assert (is_replay(first), is_replay(replay)) == (False, True)
    assert (replay.status_code, replay.content) == (first.status_code, first.content)
    for name in ("Content-Type", "Location", "ETag"):
        assert replay.headers.get_list(name) == first.headers.get_list(name)


async def test_per_response_headers_are_not_recorded(service: Service, post: Post) -> None:
    await post("/pets", BELLA)
    ((kept,),) = await service.store.read(Statement("SELECT answer FROM idempotency_records"))
    assert f"location: {SERVICE_URL}/v1/pets/".encode() in kept
    # Another version would send a length twice that is kept, or none where none is.
    assert not any(name in kept for name in (b"content-length", b"x-request-id", b"ratelimit"))


# The same request, and another one


async def test_without_an_idempotency_key_every_request_takes_effect(
    service: Service, send: Send
) -> None:
    for number in (1, 2):
        created = await send("POST", "/pets", json=BELLA)
        assert (created.json()["id"], is_replay(created)) == (number, False)
    assert await count_in(service, "idempotency_records") == 0


@pytest.mark.parametrize(
    ("path", "body", "table"),
    [
        ("/pets", BELLA, "pets"),
        ("/pets/batch", [BELLA], "pets"),
        ("/categories", DOGS, "categories"),
    ],
)
async def test_whitespace_member_order_and_unknown_members_do_not_change_a_request(
    service: Service, post: Post, path: str, body: Any, table: str
) -> None:
    first = await post(path, body)
    turned = turned_around(body)
    for content in (
        json.dumps(body, indent=4),
        json.dumps(turned),
        json.dumps(turned_around(body, ignored=[1, 2])),
        json.dumps(turned, ensure_ascii=True).replace("e", "\\u0065", 1),
    ):
        assert_same(await post(path, content), first)
    assert await count_in(service, table) == 1


def turned_around(body: Any, **ignored: Any) -> Any:
    """Return a body, or each item of a list, with its members in the opposite order."""
    if isinstance(body, list):
        return [turned_around(item, **ignored) for item in body]
    return {**ignored, **{name: body[name] for name in reversed(body)}}


async def test_an_idempotency_key_with_another_body_or_path_is_refused(
    service: Service, post: Post
) -> None:
    for number, (path, body, other_path, other) in enumerate(
        [
            ("/pets", BELLA, "/pets", {**BELLA, "name": "Rex"}),
            ("/pets/batch", [BELLA, BELLA], "/pets/batch", [BELLA]),
            ("/categories", DOGS, "/categories", {"name": "Dogs"}),
            ("/keys", TILL, "/keys", {**TILL, "scopes": ["pets:read"]}),
            ("/keys/1/unban", None, "/keys/2/unban", None),
        ]
    ):
        with case(path, other_path, other):
            field = str(number)
            assert (await post(path, body, field)).is_success
            refused = await post(other_path, other, field)
            message = assert_error(refused, 422, "idempotency_key_reused")
            assert message.startswith("Idempotency-Key: ")
            assert is_replay(await post(path, body, field))
    kept = [await count_in(service, table) for table in ("pets", "categories", "api_keys")]
    assert kept == [3, 1, 2]


def test_a_field_at_its_default_does_not_change_the_digest_of_a_request() -> None:
    order, complete = OrderCreate(pet_id=1), OrderCreate(pet_id=1, quantity=1, complete=False)
    sale = OrderCreate(pet_id=1, complete=True)
    one, same, other = (request_digest("POST", "/", [each]) for each in (order, complete, sale))
    assert one == same != other


async def test_idempotency_keys_are_scoped_to_one_api_key(service: Service, post: Post) -> None:
    first = await post("/pets", BELLA)
    other = posting(await sender(service, scopes=frozenset(SCOPES)))
    second = await other("/pets", {**BELLA, "name": "Rex"})
    assert (first.json()["name"], second.json()["name"]) == ("Bella", "Rex")
    assert_same(await post("/pets", BELLA), first)


# The field


async def test_a_bare_and_a_quoted_idempotency_key_are_the_same(post: Post) -> None:
    for one, other in (
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", '"8e03978e-40d5-43dd-bc93-6894a57f9324"'),
        ("x" * 255, f'"{"x" * 255}"'),
        ("!", '"!"'),
        ('a"b', r'"a\"b"'),
        (r"a\b", r'"a\\b"'),
    ):
        with case(one):
            first = await post("/pets", BELLA, one)
            assert first.status_code == 201
            assert_same(await post("/pets", BELLA, other), first)


async def test_a_malformed_idempotency_key_is_refused(service: Service, post: Post) -> None:
    for field in (
        *(b"", b'""', b"x" * 256, b'"' + b"x" * 256 + b'"', b"a b", b'"a b"', b'"a", "b"'),
        *("ä".encode(), "ä".encode("latin-1"), b"a\x7f", b"a\n"),
        *(b'"', b'"abc', b'"a"b"', b'"abc\\"', b'"a\\b"', b'"abc";q=1'),
    ):
        with case(field):
            message = assert_error(await post("/pets", BELLA, field), 400, "invalid_parameter")
            assert message.startswith("Idempotency-Key: expected 1 to 255 visible ASCII characters")
    for table in ("idempotency_records", "pets"):
        assert await count_in(service, table) == 0


async def test_only_post_reads_the_idempotency_key(service: Service, send: Send) -> None:
    await send("POST", "/pets", json=BELLA)
    for field in (b"a", b"", b"a b"):
        headers = {"Idempotency-Key": field}
        for name in ("Rex", "Bello", "Rex"):
            changed = await send("PATCH", "/pets/1", headers=headers, json={"name": name})
            got = await send("GET", "/pets/1", headers=headers)
            assert changed.json()["name"] == got.json()["name"] == name
            assert not is_replay(changed)
            assert not is_replay(got)
    for status in (204, 404):
        deleted = await send("DELETE", "/pets/1", headers={"Idempotency-Key": "a"})
        assert deleted.status_code == status
    assert await count_in(service, "idempotency_records") == 0


# What is recorded, and what is not


async def test_a_replay_counts_as_one_request(service: Service) -> None:
    post = posting(await sender(service, per_minute=3))
    responses = [await post("/pets", BELLA) for _ in range(4)]
    remaining = [response.headers["X-RateLimit-Remaining"] for response in responses]
    assert remaining == ["2", "1", "0", "0"]
    assert [response.status_code for response in responses] == [201, 201, 201, 429]


async def test_a_refused_request_may_be_corrected_and_sent_again(
    service: Service, send: Send, post: Post
) -> None:
    for number, (status, path, options) in enumerate(
        [
            (400, "/pets", {"json": {"name": "Bella"}}),
            (400, "/store/orders", {"json": {"petId": 99}}),
            (400, "/keys", {"json": {"name": "Till", "perDay": 1}}),
            (404, "/keys/99/rotate", {}),
            (404, "/parrots", {}),
            (413, "/pets", {"json": {**BELLA, "name": "B" * 65_536}}),
            (415, "/pets", {"content": b"Bella", "headers": {"Content-Type": "text/plain"}}),
        ]
    ):
        with case(status, path):
            headers = {"Idempotency-Key": str(number), **options.pop("headers", {})}
            refused = await send("POST", path, headers=headers, **options)
            assert refused.status_code == status, refused.text
            assert await count_in(service, "idempotency_records") == number
            created = await post("/pets", BELLA, str(number))
            assert (created.status_code, is_replay(created)) == (201, False)


async def test_a_request_beyond_its_rights_or_limit_may_be_sent_again(
    service: Service, send: Send
) -> None:
    for field, scopes, path, code in [
        ("a", ["pets:read"], "/pets", "missing_scope"),
        ("b", ["keys:admin"], "/keys", "beyond_own_rights"),
    ]:
        issued = (await send("POST", "/keys", json={"name": "Till", "scopes": scopes})).json()
        sent = {"json": BELLA, "headers": {"Idempotency-Key": field}}
        refused = await service.request("POST", f"/v1{path}", issued["token"], **sent)
        assert_error(refused, 403, code)
        await send("PATCH", f"/keys/{issued['id']}", json={"scopes": [*SCOPES]})
        created = await service.request("POST", f"/v1{path}", issued["token"], **sent)
        assert (created.status_code, is_replay(created)) == (201, False)
    limited = posting(await sender(service, per_minute=1))
    await limited("/nothing")
    assert_error(await limited("/pets", BELLA), 429, "rate_limit_exceeded")
    service.clock.advance(60)
    created = await limited("/pets", BELLA)
    assert (created.status_code, is_replay(created)) == (201, False)


@pytest.mark.each_database
async def test_a_conflict_is_recorded_even_if_a_retry_would_succeed(
    service: Service, send: Send, post: Post
) -> None:
    await send("POST", "/pets", json={**BELLA, "status": "sold"})
    refused = await post("/store/orders", {"petId": 1})
    assert_error(refused, 409, "pet_not_available")
    await send("PATCH", "/pets/1", json={"status": "available"})
    assert_same(await post("/store/orders", {"petId": 1}), refused)
    assert await count_in(service, "orders") == 0
    assert (await post("/store/orders", {"petId": 1}, "fresh")).status_code == 201
