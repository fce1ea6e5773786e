"""``Idempotency-Key``: a request that is sent again acts once and gets the first response.

That each POST does, on each database, is tested in test_openapi.py.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from petstore.clock import DAY
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.schema import prune_all
from petstore.errors import IdempotencyKeyInUse, NotFound, PetNotAvailable, Unavailable
from petstore.interface.idempotency import request_digest
from petstore.interface.idempotency_records import Attempt, IdempotencyRecord, SafeRetries
from petstore.keys.model import SCOPES
from petstore.orders.model import OrderCreate
from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pet
from support.error_body import assert_error
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.retention import DAYS_KEPT
from support.sending import Send, sender
from support.service import SERVICE_URL, Service
from support.stores import do, locked, open_store

pytestmark = pytest.mark.anyio

BELLA: dict[str, Any] = {"name": "Bella", "categoryId": 7, "status": "available"}
DOGS: dict[str, Any] = {"name": "Dogs", "description": "Great and small."}
TILL: dict[str, Any] = {"name": "Till", "scopes": ["pets:read", "orders:read"]}

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


async def count(store: Store, table: str) -> int:
    ((number,),) = await store.read(Statement(f"SELECT count(*) FROM {table}"))  # noqa: S608
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
    assert await count(service.store, "idempotency_records") == 0


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
    assert await count(service.store, table) == 1


def turned_around(body: Any, **ignored: Any) -> Any:
    """Return a body, or each item of a list, with its members in the opposite order."""
    if isinstance(body, list):
        return [turned_around(item, **ignored) for item in body]
    return {**ignored, **{name: body[name] for name in reversed(body)}}


async def test_an_idempotency_key_with_another_body_or_path_of_one_api_key_is_refused(
    service: Service, post: Post
) -> None:
    requests: list[tuple[str, Any, str, Any]] = [
        ("/pets", BELLA, "/pets", {**BELLA, "name": "Rex"}),
        ("/pets/batch", [BELLA, BELLA], "/pets/batch", [BELLA]),
        ("/categories", DOGS, "/categories", {"name": "Dogs"}),
        ("/keys", TILL, "/keys", {**TILL, "scopes": ["pets:read"]}),
        ("/keys/1/unban", None, "/keys/2/unban", None),
    ]
    for number, (path, body, other_path, other) in enumerate(requests):
        with case(path, other_path, other):
            field = str(number)
            assert (await post(path, body, field)).is_success
            refused = await post(other_path, other, field)
            message = assert_error(refused, 422, "idempotency_key_reused")
            assert message.startswith("Idempotency-Key: ")
            assert is_replay(await post(path, body, field))
    kept = [await count(service.store, table) for table in ("pets", "categories", "api_keys")]
    assert kept == [3, 1, 2]
    other_key = posting(await sender(service, scopes=frozenset(SCOPES)))
    created = await other_key("/pets", {**BELLA, "name": "Rex"}, "0")
    assert (created.json()["name"], is_replay(created)) == ("Rex", False)


def test_a_field_at_its_default_does_not_change_the_digest_of_a_request() -> None:
    order, complete = OrderCreate(pet_id=1), OrderCreate(pet_id=1, quantity=1, complete=False)
    sale = OrderCreate(pet_id=1, complete=True)
    one, same, other = (request_digest("POST", "/", [each]) for each in (order, complete, sale))
    assert one == same != other


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
        assert await count(service.store, table) == 0


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
    assert await count(service.store, "idempotency_records") == 0


# What is recorded, and what is not


async def test_a_refused_request_may_be_corrected_and_sent_again(
    service: Service, send: Send, post: Post
) -> None:
    requests: list[tuple[int, str, dict[str, Any]]] = [
        (400, "/pets", {"json": {"name": "Bella"}}),
        (400, "/store/orders", {"json": {"petId": 99}}),
        (400, "/keys", {"json": {"name": "Till", "perDay": 1}}),
        (404, "/keys/99/rotate", {}),
        (404, "/parrots", {}),
        (413, "/pets", {"json": {**BELLA, "name": "B" * 65_536}}),
        (415, "/pets", {"content": b"Bella", "headers": {"Content-Type": "text/plain"}}),
    ]
    for number, (status, path, options) in enumerate(requests):
        with case(status, path):
            headers = {"Idempotency-Key": str(number), **options.pop("headers", {})}
            refused = await send("POST", path, headers=headers, **options)
            assert refused.status_code == status, refused.text
            assert await count(service.store, "idempotency_records") == number
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
    limited = posting(await sender(service, per_minute=3))
    responses = [await limited("/pets", BELLA, "c") for _ in range(3)]
    remaining = [response.headers["X-RateLimit-Remaining"] for response in responses]
    assert remaining == ["2", "1", "0"]  # a replay counts as one
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
    assert await count(service.store, "orders") == 0
    assert (await post("/store/orders", {"petId": 1}, "fresh")).status_code == 201


# Whatever comes between the two


RESPONSES = [*((f"old {n}", -n) for n in range(1, 2501)), *((f"new {n}", n) for n in range(1, 11))]
EXPIRED_AND_KEPT = "INSERT INTO idempotency_records VALUES " + ", ".join(  # noqa: S608
    f"(?1, '{key}', ?2, ?2, CAST(?3 AS BIGINT) + ({after}))" for key, after in RESPONSES
)


@pytest.fixture
def retries(store: Store, clock: ManualClock) -> SafeRetries:
    return SafeRetries(store, clock)


@pytest.fixture
async def attempt(store: Store, clock: ManualClock) -> Attempt:
    return Attempt(await issue_stored(store, clock), "a", b"request")


def add() -> Unit[bytes]:
    """Add a pet and return its id."""
    pet = yield from create_pet(NewPet("Bella", 1))
    return str(pet.id).encode()


@pytest.mark.each_database
async def test_only_one_of_fifty_concurrent_requests_takes_effect(
    retries: SafeRetries, attempt: Attempt, store: Store
) -> None:
    outcomes = await asyncio.gather(
        *(retries.once(attempt, add()) for _ in range(50)), return_exceptions=True
    )
    responses = [outcome for outcome in outcomes if isinstance(outcome, IdempotencyRecord)]
    assert responses == [IdempotencyRecord(b"1", is_replay=False)]
    assert {type(outcome) for outcome in outcomes} == {IdempotencyRecord, IdempotencyKeyInUse}
    assert await count(store, "pets") == 1
    assert await retries.once(attempt, add()) == IdempotencyRecord(b"1", is_replay=True)


@pytest.mark.each_database
async def test_only_one_of_two_concurrent_processes_takes_effect(
    retries: SafeRetries, attempt: Attempt, store: Store, clock: ManualClock, address: str
) -> None:
    async with open_store(address) as other:
        responses = await asyncio.gather(
            retries.once(attempt, add()), SafeRetries(other, clock).once(attempt, add())
        )
    assert sorted(responses) == [(b"1", False), (b"1", True)]
    assert await count(store, "pets") == 1


async def test_retries_are_refused_while_the_first_request_is_running(
    retries: SafeRetries, attempt: Attempt, database: Path
) -> None:
    with locked(database):
        first = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0)
        with pytest.raises(IdempotencyKeyInUse, match="in progress"):
            await retries.once(attempt, add())
        with pytest.raises(IdempotencyKeyInUse, match="in progress"):
            await retries.once(attempt._replace(request=b"another"), add())
        assert not first.done()
    assert await first == IdempotencyRecord(b"1", is_replay=False)
    assert await retries.once(attempt, add()) == IdempotencyRecord(b"1", is_replay=True)


@pytest.mark.parametrize("error", [NotFound("gone"), PetNotAvailable("sold"), ValueError("fault")])
async def test_a_failure_is_not_recorded_and_changes_nothing(
    retries: SafeRetries, attempt: Attempt, store: Store, database: Path, error: Exception
) -> None:
    def add_in_vain() -> Unit[bytes]:
        yield from add()
        raise error

    with pytest.raises(type(error)):
        await retries.once(attempt, add_in_vain())
    with locked(database, store), pytest.raises(Unavailable):
        await retries.once(attempt, add())
    assert await count(store, "pets") == await count(store, "idempotency_records") == 0
    assert not (await retries.once(attempt, add())).is_replay


async def test_a_client_that_disconnected_can_retry(
    retries: SafeRetries, attempt: Attempt, store: Store, database: Path
) -> None:
    with locked(database):
        first = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(retries.once(attempt, add()))
        await asyncio.sleep(0)
    assert (await second).response == b"1"
    assert await count(store, "pets") == 1


@pytest.mark.each_database
async def test_an_idempotency_record_is_kept_for_24_hours(
    retries: SafeRetries, attempt: Attempt, store: Store, clock: ManualClock
) -> None:
    another = attempt._replace(request=b"another")
    for sent, response in ((attempt, b"1"), (another, b"2")):
        assert await retries.once(sent, add()) == IdempotencyRecord(response, is_replay=False)
        clock.now += DAY - 1
        assert await retries.once(sent, add()) == IdempotencyRecord(response, is_replay=True)
        await prune_all(store, clock, DAYS_KEPT)
        assert await count(store, "idempotency_records") == 1
        clock.now += 1
    clock.now += 1
    await store.write(do(EXPIRED_AND_KEPT, attempt.caller.id, b"\0", clock() - DAY))
    await prune_all(store, clock, DAYS_KEPT)  # any number of them
    select = "SELECT idempotency_key FROM idempotency_records ORDER BY kept_at"
    rows = await store.read(Statement(select))
    assert rows == [(f"new {n}",) for n in range(1, 11)]
