"""``Idempotency-Key`` over HTTP: a retry acts once and gets the first response."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from petstore.databases.contract import Statement
from petstore.interface.idempotency import request_digest
from petstore.interface.operation import BASE
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import SCOPES
from petstore.orders.model import OrderCreate
from support.cases import case
from support.error_body import assert_error
from support.manual_clock import ManualClock
from support.service import SERVICE_URL, Service, running_service
from support.stores import do
from support.webhooks import URL, publish

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 7, "status": "available"}
LUNA = {**BELLA, "name": "Luna"}


class Post(NamedTuple):
    """A POST, another body it could have, and the SQL that counts what it did."""

    path: str
    body: Any
    other: Any
    done: str


def _events(which: str, rest: str = "") -> str:
    """Return the SELECT of how many events there are, in the feed or not yet."""
    return (
        f"SELECT count(*) {rest} /*pg + (SELECT count(*) FROM events_outbox WHERE {which}) */"  # noqa: S608
        f" FROM events WHERE {which}"
    )


POSTS = {
    "createPet": Post(
        "/pets",
        BELLA,
        {**BELLA, "name": "Rex"},
        "SELECT count(*) - 3 FROM pets WHERE name <> 'Luna'",
    ),
    "createPets": Post(
        "/pets/batch", [LUNA, LUNA], [LUNA], "SELECT count(*) / 2 FROM pets WHERE name = 'Luna'"
    ),
    "createCategory": Post(
        "/categories",
        {"name": "Dogs", "description": "Great and small."},
        {"name": "Dogs"},
        "SELECT count(*) FROM categories",
    ),
    "placeOrder": Post(
        "/store/orders",
        {"petId": 1, "shipDate": "2026-12-24T10:00:00Z"},
        {"petId": 2},
        "SELECT count(*) FROM orders",
    ),
    "createKey": Post(
        "/keys",
        {"name": "Till", "scopes": ["pets:read", "orders:read"]},
        {"name": "Till", "scopes": ["pets:read"]},
        "SELECT count(*) - 2 FROM api_keys",
    ),
    "rotateKey": Post(
        "/keys/2/rotate",
        {"graceSeconds": 60},
        {"graceSeconds": 61},
        _events("type = 'key.rotated' AND resource = 'key/2'"),
    ),
    "unbanKey": Post("/keys/2/unban", None, None, _events("type = 'key.unbanned'")),
    "createPerson": Post(
        "/people",
        {"name": "Grace", "login": "grace@shop.example", "role": "clerk"},
        {"name": "Grace", "login": "grace@shop.example", "role": "viewer"},
        "SELECT count(*) - 1 FROM people",
    ),
    "invitePerson": Post(
        "/people/3/invite",
        None,
        None,
        _events("type = 'person.invited' AND resource = 'person/3'", "- 1"),
    ),
    "createWebhook": Post(
        "/webhooks",
        {"url": URL, "types": ["pet.created", "pet.updated"]},
        {"url": URL, "types": ["pet.created"]},
        "SELECT count(*) - 2 FROM webhooks",
    ),
    "rotateWebhook": Post(
        "/webhooks/1/rotate",
        {"graceSeconds": 60},
        {"graceSeconds": 61},
        "SELECT count(previous_secret_ends_at) FROM webhooks",
    ),
    "testWebhook": Post("/webhooks/1/test", None, None, _events("type = 'webhook.test'")),
    "recoverWebhook": Post(
        "/webhooks/1/recover",
        {"since": "2026-01-01T00:00:00Z"},
        {"since": "2026-01-02T00:00:00Z"},
        "SELECT count(recovered_to) FROM webhooks",
    ),
    "retryWebhookDelivery": Post(
        "/webhooks/2/deliveries/1/retry",
        None,
        None,
        "SELECT count(*) - 1 FROM webhook_deliveries WHERE webhook_id = 2",
    ),
    # The last one, for it gives the token an end: with that, nobody is given a longer life.
    "rotateCurrentKey": Post(
        "/keys/current/rotate",
        {"graceSeconds": 60},
        {"graceSeconds": 61},
        _events("type = 'key.rotated' AND resource = 'key/1'"),
    ),
}

every_post = pytest.mark.parametrize("post", POSTS.values(), ids=POSTS)
every_post_with_a_body = pytest.mark.parametrize(
    "post", [post for post in POSTS.values() if post.body], ids=[n for n in POSTS if POSTS[n].body]
)
every_post_with_a_secret = pytest.mark.parametrize(
    "name",
    ["createKey", "rotateKey", "createPerson", "invitePerson", "createWebhook", "rotateWebhook"],
)


class Shop(NamedTuple):
    """A service with two pets, two keys and a person; the first key may do everything."""

    service: Service
    token: str

    async def ask(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        return await self.service.request(method, f"{BASE}{path}", token or self.token, **options)

    async def post(self, post: Post, field: str | bytes = "a", **options: Any) -> httpx.Response:
        """Send ``post``, with ``field`` as its Idempotency-Key."""
        wanted: dict[str, Any] = {} if post.body is None else {"json": post.body}
        if options.keys() & {"content", "json"}:
            wanted = {}
        headers = {"Idempotency-Key": field, **options.pop("headers", {})}
        return await self.ask("POST", post.path, headers=headers, **wanted, **options)

    async def rows(self, sql: str) -> int:
        ((number,),) = await self.service.store.read(Statement(sql))
        return int(number)

    async def kept(self) -> int:
        return await self.rows("SELECT count(*) FROM idempotency_records")


_FAILED = (
    "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, resource, state,"
    " created_at, attempts, due_at)"
    " SELECT 2, sequence, id, type, resource, 'failed', at, 1, at FROM events"
    " WHERE type = 'pet.created' ORDER BY sequence LIMIT 1"
)


async def furnish(service: Service) -> Shop:
    shop = Shop(service, (await service.issue(scopes=frozenset(SCOPES))).token)
    await service.issue("free")
    ada = {"name": "Ada", "login": "ada@shop.example", "role": "administrator"}
    await shop.ask("POST", "/people", json=ada)
    for kind in ("pet.created", "webhook.disabled"):
        await shop.ask("POST", "/webhooks", json={"url": URL, "types": [kind]})
    for status in ("available", "available", "sold"):
        await shop.ask("POST", "/pets", json={**BELLA, "status": status})
    await publish(service.store)
    await service.store.write(do(_FAILED))
    return shop


@pytest.fixture
async def shop(address: str, clock: ManualClock) -> AsyncIterator[Shop]:
    """A shop that writes nothing by itself, so that a test can have the lock of its database."""
    async with running_service(address, clock, limits_save_seconds=60) as service:
        yield await furnish(service)


def secret_of(response: httpx.Response) -> str:
    """Return the token or the secret in a response, empty if it has none."""
    shown = response.json() if response.content else {}
    if not isinstance(shown, dict):
        return ""
    link = shown.get("invitation", {}).get("url", "")
    return str(shown.get("token") or shown.get("secret") or link.rpartition("/")[2])


def is_replay(response: httpx.Response) -> bool:
    values = response.headers.get_list("Idempotent-Replayed")
    assert values in ([], ["true"])
    return bool(values)


def assert_same(replay: httpx.Response, first: httpx.Response) -> None:
    """Check that ``replay`` says what ``first`` said, but no secret, and that it says it again."""
    assert not is_replay(first)
    assert is_replay(replay)
    if first.is_success and (secret := secret_of(first)):
        message = assert_error(replay, 409, "secret_already_shown")
        assert f" {first.json()['id']} and showed " in message
        assert secret not in message
        return
    assert (replay.status_code, replay.content) == (first.status_code, first.content)
    for name in ("Content-Type", "Location", "ETag"):
        assert replay.headers.get_list(name) == first.headers.get_list(name)


# Every POST


def test_every_post_is_tested_here() -> None:
    # Those that take long, and record their response with the last of several transactions, are in
    # tests/imports.
    posts = {row.id for row in OPERATIONS if row.method == "POST" and not row.in_turn}
    assert set(POSTS) == posts


async def test_per_response_headers_are_not_recorded(shop: Shop) -> None:
    await shop.post(POSTS["createPet"])
    ((kept,),) = await shop.service.store.read(Statement("SELECT answer FROM idempotency_records"))
    assert f"location: {SERVICE_URL}/v1/pets/".encode() in kept
    # Another version would send a length twice that is kept, or none where none is.
    assert not any(name in kept for name in (b"content-length", b"x-request-id", b"ratelimit"))


@pytest.mark.each_database
@every_post
async def test_a_retry_takes_effect_once_and_gets_the_first_response(
    shop: Shop, post: Post
) -> None:
    first = await shop.post(post)
    assert first.is_success, first.text
    for _ in range(2):
        assert_same(await shop.post(post), first)
    assert await shop.rows(post.done) == 1


async def test_without_an_idempotency_key_every_request_takes_effect(shop: Shop) -> None:
    for post in POSTS.values():
        for _ in range(2):
            assert not is_replay(await shop.ask("POST", post.path, json=post.body))
            shop.service.clock.advance(1)
    assert await shop.kept() == 0


@every_post_with_a_body
async def test_an_idempotency_key_with_another_body_is_refused(shop: Shop, post: Post) -> None:
    first = await shop.post(post)
    message = assert_error(await shop.post(post, json=post.other), 422, "idempotency_key_reused")
    assert message.startswith("Idempotency-Key: ")
    assert await shop.rows(post.done) == 1
    assert_same(await shop.post(post), first)


async def test_an_idempotency_key_with_another_path_is_refused(shop: Shop) -> None:
    for name, path in (("createPet", "/categories"), ("unbanKey", "/keys/1/unban")):
        await shop.post(POSTS[name], name)
        response = await shop.post(POSTS[name]._replace(path=path), name)
        assert_error(response, 422, "idempotency_key_reused")


@every_post_with_a_body
async def test_whitespace_member_order_and_unknown_members_do_not_change_a_request(
    shop: Shop, post: Post
) -> None:
    first = await shop.post(post)
    assert post.body is not None
    turned = turned_around(post.body)
    for content in (
        json.dumps(post.body, indent=4),
        json.dumps(turned),
        json.dumps(turned_around(post.body, ignored=[1, 2])),
        json.dumps(turned, ensure_ascii=True).replace("e", "\\u0065", 1),
    ):
        assert_same(await shop.post(post, content=content), first)
    assert await shop.rows(post.done) == 1


def turned_around(body: Any, **ignored: Any) -> Any:
    """Return a body, or each item of a list, with its members in the opposite order."""
    if isinstance(body, list):
        return [turned_around(item, **ignored) for item in body]
    return {**ignored, **{name: body[name] for name in reversed(body)}}


def test_a_field_at_its_default_does_not_change_the_digest_of_a_request() -> None:
    order, complete = OrderCreate(pet_id=1), OrderCreate(pet_id=1, quantity=1, complete=False)
    sale = OrderCreate(pet_id=1, complete=True)
    one, same, other = (request_digest("POST", "/", [each]) for each in (order, complete, sale))
    assert one == same != other


# The field


async def test_a_bare_and_a_quoted_idempotency_key_are_the_same(shop: Shop) -> None:
    for one, other in (
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", '"8e03978e-40d5-43dd-bc93-6894a57f9324"'),
        ("x" * 255, f'"{"x" * 255}"'),
        ("!", '"!"'),
        ('a"b', r'"a\"b"'),
        (r"a\b", r'"a\\b"'),
    ):
        with case(one):
            first = await shop.post(POSTS["createPet"], one)
            assert first.status_code == 201
            assert_same(await shop.post(POSTS["createPet"], other), first)


MALFORMED = {
    "empty": b"",
    "empty in quotes": b'""',
    "256 characters": b"x" * 256,
    "256 characters in quotes": b'"' + b"x" * 256 + b'"',
    "a space": b"a b",
    "a space in quotes": b'"a b"',
    "a tab": b"a\tb",
    "two words": b'"a", "b"',
    "UTF-8": "ä".encode(),
    "Latin-1": "ä".encode("latin-1"),
    "a control": b"a\x7f",
    "a line break": b"a\n",
    "one quote": b'"',
    "an opening quote alone": b'"abc',
    "a quote within quotes": b'"a"b"',
    "a backslash that escapes the end": b'"abc\\"',
    "a backslash that escapes a letter": b'"a\\b"',
    "a parameter": b'"abc";q=1',
}


async def test_a_malformed_idempotency_key_is_refused(shop: Shop) -> None:
    for name, field in MALFORMED.items():
        with case(name):
            response = await shop.post(POSTS["createPet"], field)
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith("Idempotency-Key: expected 1 to 255 visible ASCII characters")
    assert await shop.kept() == await shop.rows(POSTS["createPet"].done) == 0


async def test_only_post_reads_the_idempotency_key(shop: Shop) -> None:
    for field in (b"a", b"", b"a b"):
        headers = {"Idempotency-Key": field}
        for name in ("Rex", "Bello", "Rex"):
            changed = await shop.ask("PATCH", "/pets/1", headers=headers, json={"name": name})
            got = await shop.ask("GET", "/pets/1", headers=headers)
            assert changed.json()["name"] == got.json()["name"] == name
            assert not is_replay(changed)
            assert not is_replay(got)
    for status in (204, 404):
        deleted = await shop.ask("DELETE", "/pets/1", headers={"Idempotency-Key": "a"})
        assert deleted.status_code == status
    assert await shop.kept() == 0


# Whose, and how long


async def test_idempotency_keys_are_scoped_to_one_api_key(shop: Shop) -> None:
    other = (await shop.service.issue(scopes=frozenset(SCOPES))).token
    first = await shop.post(POSTS["createPet"])
    second = await shop.post(POSTS["createPet"], token=other, json={**BELLA, "name": "Rex"})
    assert (first.json()["name"], second.json()["name"]) == ("Bella", "Rex")
    assert_same(await shop.post(POSTS["createPet"]), first)


@pytest.mark.each_database
async def test_idempotency_records_survive_a_restart(address: str, clock: ManualClock) -> None:
    async with running_service(address, clock) as service:
        shop = await furnish(service)
        first = {name: await shop.post(post, name) for name, post in POSTS.items()}
    async with running_service(address, clock) as service:
        shop = shop._replace(service=service)
        for name, post in POSTS.items():
            assert_same(await shop.post(post, name), first[name])
            assert await shop.rows(post.done) == 1


async def test_a_replay_counts_as_one_request(shop: Shop) -> None:
    token = (await shop.service.issue(per_minute=3)).token
    responses = [await shop.post(POSTS["createPet"], token=token) for _ in range(4)]
    remaining = [response.headers["X-RateLimit-Remaining"] for response in responses]
    assert remaining == ["2", "1", "0", "0"]
    assert [response.status_code for response in responses] == [201, 201, 201, 429]


# What is kept, and what is not


REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    "an incomplete body": (400, "/pets", {"json": {"name": "Bella"}}),
    "a pet that is not there": (400, "/store/orders", {"json": {"petId": 99}}),
    "limits of its own": (400, "/keys", {"json": {"name": "Till", "perDay": 1}}),
    "a key that is not valid": (401, "/pets", {"json": BELLA, "token": "ps_live_x"}),
    "a key that is not there": (404, "/keys/99/rotate", {}),
    "a path that is not there": (404, "/parrots", {}),
    "a body too long": (413, "/pets", {"json": {**BELLA, "name": "B" * 65_536}}),
    "another media type": (415, "/pets", {"headers": {"Content-Type": "text/plain"}}),
}


async def test_a_refused_request_may_be_corrected_and_sent_again(shop: Shop) -> None:
    post = POSTS["createPet"]
    for field, (name, (status, path, options)) in enumerate(REFUSED.items()):
        with case(name):
            refused = await shop.post(post._replace(path=path), str(field), **options)
            assert refused.status_code == status, refused.text
            assert await shop.kept() == field
            created = await shop.post(post, str(field))
            assert (created.status_code, is_replay(created)) == (201, False)


@pytest.mark.parametrize(
    ("scopes", "path", "code"),
    [(["pets:read"], "/pets", "missing_scope"), (["keys:admin"], "/keys", "beyond_own_rights")],
)
async def test_a_forbidden_request_may_be_sent_again_with_more_rights(
    shop: Shop, scopes: list[str], path: str, code: str
) -> None:
    issued = (await shop.ask("POST", "/keys", json={"name": "Till", "scopes": scopes})).json()
    post = Post(path, BELLA, None, "")
    assert_error(await shop.post(post, token=issued["token"]), 403, code)
    assert await shop.kept() == 0
    await shop.ask("PATCH", f"/keys/{issued['id']}", json={"scopes": [*SCOPES]})
    created = await shop.post(post, token=issued["token"])
    assert (created.status_code, is_replay(created)) == (201, False)


async def test_a_request_over_the_limit_is_not_recorded(shop: Shop) -> None:
    token = (await shop.service.issue(per_minute=1)).token
    await shop.ask("GET", "/pets", token)
    assert_error(await shop.post(POSTS["createPet"], token=token), 429, "rate_limit_exceeded")
    shop.service.clock.advance(60)
    created = await shop.post(POSTS["createPet"], token=token)
    assert (created.status_code, is_replay(created)) == (201, False)


@pytest.mark.each_database
async def test_a_conflict_is_recorded_even_if_a_retry_would_succeed(shop: Shop) -> None:
    order = POSTS["placeOrder"]._replace(body={"petId": 3})
    refused = await shop.post(order)
    assert_error(refused, 409, "pet_not_available")
    await shop.ask("PATCH", "/pets/3", json={"status": "available"})
    assert_same(await shop.post(order), refused)
    assert await shop.rows(order.done) == 0
    assert (await shop.post(order, "fresh")).status_code == 201


async def test_a_conflict_of_an_operation_that_returns_a_token_is_recorded(shop: Shop) -> None:
    await shop.ask("DELETE", "/keys/2")
    refused = await shop.post(POSTS["rotateKey"])
    assert_error(refused, 409, "api_key_ended")
    assert_same(await shop.post(POSTS["rotateKey"]), refused)


# Responses with a secret


@every_post_with_a_secret
async def test_a_token_is_nowhere_in_the_files_of_the_database(
    shop: Shop, name: str, database: Path
) -> None:
    first = await shop.post(POSTS[name])
    assert_same(await shop.post(POSTS[name]), first)
    await shop.post(POSTS["createPet"], "plain", json={**BELLA, "name": "Bellerophon"})
    content = b"".join(path.read_bytes() for path in database.parent.glob(f"{database.name}*"))
    # What is stored can be found this way, in the pet and in the idempotency record.
    assert content.count(b"Bellerophon") >= 2
    for token in (secret_of(first), shop.token):
        assert token.encode() not in content
        assert token.removeprefix("ps_live_").removeprefix("whsec_")[:32].encode() not in content
