"""The OpenAPI document against its own standard, interface.md, and the responses of the service."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import apsw
import httpx
import jsonschema_rs
import pytest

from petstore.backends import secret_file_of
from petstore.categories.model import CategoryCreate
from petstore.clock import HOUR, Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.domain.decoding import convert
from petstore.errors import InvalidParameter, SecretAlreadyShown
from petstore.events import store as events
from petstore.events.model import EVENT_TYPES, IN_FEED, EventType, Position
from petstore.imports.model import MAX_UNFINISHED
from petstore.interface.bodies import MAX_UPLOAD
from petstore.interface.idempotency import idempotency_key
from petstore.interface.openapi.document import DocumentPage, document
from petstore.interface.openapi.events import example_of as example_of_event
from petstore.interface.operation import BASE, FileBody, Operation
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import SCOPES, Environment, new_token
from petstore.keys.store import MAX_OWN_ROTATIONS, change_key, create_key
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from petstore.people.model import PersonCreate
from petstore.people.store import add_person, change_person
from petstore.pets.model import NewPet
from petstore.settings import is_postgres, sqlite_path
from petstore.webhooks.model import MAX_WEBHOOKS, WebhookCreate
from petstore.webhooks.store import create_webhook
from support.cases import case
from support.changes import create_category, create_pets
from support.error_body import assert_error
from support.imported import new_import
from support.keys import OPERATOR, new_key, stored_key
from support.memory_folder import folder_in_memory
from support.service import Service, http_request, running_service
from support.stores import do, locked
from support.webhooks import URL, add_deliveries, add_webhook, publish

pytestmark = pytest.mark.anyio

ORIGIN = "http://petstore.test"
DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(ORIGIN)))
COMPONENTS: dict[str, Any] = DOCUMENT["components"]


def resolved(part: Any) -> Any:
    """Return ``part`` with what it refers to in place of each reference, except to schemas."""
    if isinstance(part, list):
        return [resolved(item) for item in part]
    if not isinstance(part, dict):
        return part
    _, _, target = part.get("$ref", "").partition("#/components/")
    kind, _, name = target.partition("/")
    if target and kind != "schemas":
        return resolved(COMPONENTS[kind][name])
    return {name: resolved(item) for name, item in part.items()}


RESOLVED: dict[str, Any] = resolved(DOCUMENT)
DESCRIBED: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation
    for path in RESOLVED["paths"].values()
    for operation in path.values()
}
ROWS = {row.id: row for row in OPERATIONS}
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
HTTPS_OWN_HEADERS = {"content-type", "content-length", "x-content-type-options", "connection"}
# In the store of ``some_of_everything`` all pets belong to category 1.
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}
GRACE = {"name": "Grace Hopper", "login": "grace@shop.example", "role": "clerk"}


class Ask(NamedTuple):
    """A request that suits an operation."""

    method: str
    path: str
    options: dict[str, Any]

    async def send(
        self, service: Service, token: str | None = None, **options: Any
    ) -> httpx.Response:
        every = {**self.options, **options}
        if isinstance(every.get("headers"), dict):
            every["headers"] = self.options.get("headers", {}) | every["headers"]
        return await service.request(self.method, self.path, token, **every)


ONE: dict[str, Any] = {"params": {"limit": 1}}
COUNTED: dict[str, Any] = {"params": {"limit": 1, "count": "true"}}
CSV = {"Content-Type": "text/csv"}
# Where the example of a body does not suit the shop, and queries.
OPTIONS: dict[str, dict[str, Any]] = {
    "listPets": COUNTED,
    "createPets": {"json": [BELLA, BELLA]},
    "updatePet": {"json": {"name": "Rex"}},
    "createImport": {"content": b"name,category\nRex,Dogs\n", "headers": CSV},
    "getImportRefused": ONE,
    "listOrders": COUNTED,
    "placeOrder": {"json": {"petId": 1}},
    "getInventory": {"params": {"by": "category"}},
    "getSales": {"params": {"by": "category"}},
    "updatePerson": {"json": {"name": "Ada"}},
}
IDS = {"categories": "2", "keys": "2", "people": "3"}
OTHER_PATHS = {
    "deletePet": "/pets/4",
    "undoImport": "/imports/2/undo",
    "retryWebhookDelivery": "/webhooks/1/deliveries/3/retry",
}


def request_of(row: Operation) -> Ask:
    """Return a request that succeeds in the shop below."""
    number = IDS.get(row.path.split("/")[1], "1")
    path = OTHER_PATHS.get(row.id, re.sub(r"{\w+}", number, row.path))
    usual = {"json": row.body_example} if row.body else ONE if row.is_list else {}
    return Ask(row.method, f"{BASE}{path}", OPTIONS.get(row.id, usual))


REQUESTS = {row.id: request_of(row) for row in OPERATIONS}


# Ways to get each response of an operation


class Shop(NamedTuple):
    """A service with some of everything, and the token of its key 1, which may do all."""

    service: Service
    token: str

    async def with_key(self, **wanted: Any) -> "Shop":
        """Return the shop as another key finds it, one without limits but those wanted."""
        return self._replace(token=(await self.service.issue(**wanted)).token)


Way: TypeAlias = Callable[[Shop, Ask], Awaitable[httpx.Response]]

Change: TypeAlias = tuple[str, str, dict[str, Any]]
"""Method, path and body."""


def some_of_everything(now: Milliseconds, environment: Environment) -> Unit[str]:
    """Put two and more of everything in the store; return the token of key 1, which may do all.

    Pets 1 and 4 are free, orders 1 and 2 hold 2 and 3; no pet is of category 2. Person 3 is
    the last active administrator, and 4 is disabled. Import 1 is open, and import 2 is finished.
    """
    admin = new_key(plan="enterprise", scopes=frozenset(SCOPES))
    issued = yield from create_key(admin, environment, OPERATOR.at(now))
    for name in ("Dogs", "Cats"):
        yield from create_category(CategoryCreate(name))
    yield from create_pets([NewPet("Bella", 1, "available")] * 4)
    for pet_id in (2, 3):
        yield from place_order(events.Change(now, reservation_minutes=1440), OrderCreate(pet_id))
    yield from create_key(new_key(), environment, OPERATOR.at(now))
    yield from change_key(2, {"name": "Till 1"}, OPERATOR.at(now))
    for new in (
        PersonCreate("Grace", "grace", "administrator"),
        PersonCreate("Eve", "eve", "clerk"),
    ):
        yield from add_person(new, OPERATOR.at(now), environment)
    yield from do("UPDATE people SET password = 'no hash' WHERE id = 3")
    yield from change_person(4, {"state": "disabled"}, OPERATOR.at(now))
    for _ in range(2):
        yield from create_webhook(WebhookCreate(URL), 1, now)
    for number in (1, 2):
        yield from new_import(1, b"%d" % number, now)
    yield from do("UPDATE imports SET done = 1, added = 1, run_request = 'r1' WHERE id = 2")
    for key_id in (1, 2):
        called = "INSERT INTO counts VALUES ('deprecated', ?1, 'getPet', ?2, 1, ?3)"
        yield from do(called, key_id, now // HOUR, f'[{now},"till/1","r1"]')
    return issued.token


async def furnish(service: Service) -> Shop:
    secret_file_of(service.settings).create()
    unit = some_of_everything(service.clock(), service.settings.environment)
    token = await service.store.write(unit)
    await add_deliveries(service.store, 1, "succeeded", "pending", "failed")
    await publish(service.store)
    same = "SELECT id FROM events e WHERE e.sequence = webhook_deliveries.sequence"
    await service.store.write(do(f"UPDATE webhook_deliveries SET event_id = ({same})"))  # noqa: S608
    return Shop(service, token)


# Ways that leave the shop as it is: an operation gets all these responses from the same one.


def by_key(**wanted: Any) -> Way:
    """Return the way of another key."""

    async def way(shop: Shop, ask: Ask) -> httpx.Response:
        return await ask.send(*await shop.with_key(**wanted))

    return way


async def over_the_limit_of_the_key(shop: Shop, ask: Ask) -> httpx.Response:
    limited = await shop.with_key(per_minute=1, scopes=frozenset())
    await ask.send(*limited)
    return await ask.send(*limited)


async def over_the_limit_of_the_address(shop: Shop, ask: Ask) -> httpx.Response:
    for _ in range(shop.service.settings.anonymous_per_minute):
        await ask.send(shop.service)
    return await ask.send(shop.service)


async def while_banned(shop: Shop, ask: Ask) -> httpx.Response:
    limited = await shop.with_key(per_minute=1, scopes=frozenset())
    for _ in range(2):
        await ask.send(*limited)
    shop.service.clock.advance(2)
    for _ in range(shop.service.settings.ban_strikes):
        await ask.send(*limited)
    return await ask.send(*limited)


async def while_the_database_is_locked(shop: Shop, ask: Ask) -> httpx.Response:
    with locked(sqlite_path(shop.service.settings.database), shop.service.store):
        return await ask.send(*shop)


async def where_nothing_is(shop: Shop, ask: Ask) -> httpx.Response:
    return await ask._replace(path=re.sub("/[0-9]", "/99", ask.path)).send(*shop)


async def with_a_version_known(shop: Shop, ask: Ask) -> httpx.Response:
    tag = (await ask.send(*shop)).headers["ETag"]
    return await ask.send(*shop, headers={"If-None-Match": tag})


async def without_the_scope_of_a_type(shop: Shop, ask: Ask) -> httpx.Response:
    return await ask.send(*await shop.with_key(scopes=frozenset()), params={"type": "pet.created"})


async def with_fewer_rights(shop: Shop, ask: Ask) -> httpx.Response:
    key = await shop.with_key(plan="pro", scopes=frozenset({"keys:admin"}))
    return await ask.send(*key, json={**GRACE, "plan": "business"})


async def to_a_person_with_more_rights(shop: Shop, ask: Ask) -> httpx.Response:
    key = await shop.with_key(scopes=frozenset({"keys:admin"}))
    return await ask._replace(path="/v1/people/4").send(*key, json={"state": "active"})


async def broken_off() -> AsyncIterator[bytes]:
    yield b"{"
    raise ConnectionError


async def with_a_body_that_breaks_off(shop: Shop, ask: Ask) -> httpx.Response:
    return await ask.send(*shop, json=None, content=broken_off())


async def never_ending() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def with_a_body_that_never_ends(shop: Shop, ask: Ask) -> httpx.Response:
    bodies = shop.service.app._bodies  # noqa: SLF001 - on a busy machine others take a while
    seconds, bodies._seconds = bodies._seconds, 0  # noqa: SLF001
    try:
        return await ask.send(*shop, json=None, content=never_ending())
    finally:
        bodies._seconds = seconds  # noqa: SLF001


def asking(path: str = "", **options: Any) -> Way:
    """Return a way that sends the same request with other options, or to another path."""

    async def way(shop: Shop, ask: Ask) -> httpx.Response:
        return await ask._replace(path=path or ask.path).send(*shop, **options)

    return way


async def at_a_fault(shop: Shop, ask: Ask) -> httpx.Response:
    key = await shop.with_key()
    with apsw.Connection(str(sqlite_path(shop.service.settings.database))) as connection:
        connection.set_busy_timeout(30_000)  # the service may be writing just now
        connection.execute("DROP TABLE rate_limits")
    return await ask.send(*key)


# Ways that change the shop, or need it as it was: each has one of its own.


A_KEY = {"Idempotency-Key": "a"}


async def after_the_sunset(shop: Shop, ask: Ask) -> httpx.Response:
    shop.service.clock.advance(5 * 365 * 86400)
    return await ask.send(*shop)


async def sent_again(shop: Shop, ask: Ask) -> httpx.Response:
    await ask.send(*shop, headers=A_KEY)
    response = await ask.send(*shop, headers=A_KEY)
    assert response.headers["Idempotent-Replayed"] == "true"
    return response


async def while_its_key_is_in_use(shop: Shop, ask: Ask) -> httpx.Response:
    shop.service.app.services.retries._under_way.add((1, "a"))  # noqa: SLF001
    return await ask.send(*shop, headers=A_KEY)


async def undone_first(shop: Shop, ask: Ask) -> httpx.Response:
    await shop.service.request("POST", "/v1/imports/2/undo", shop.token)
    return await ask._replace(path="/v1/imports/2/run").send(*shop)


async def with_many_imports(shop: Shop, ask: Ask) -> httpx.Response:
    for number in range(MAX_UNFINISHED - 1):
        unit = new_import(1, b"another %d" % number, shop.service.clock())
        await shop.service.store.write(unit)
    return await ask.send(*shop)


async def with_the_key_of_another_request(shop: Shop, ask: Ask) -> httpx.Response:
    await Ask("POST", "/v1/categories", {"json": {"name": "Fish"}}).send(*shop, headers=A_KEY)
    return await ask.send(*shop, headers=A_KEY)


async def with_an_old_token(shop: Shop, ask: Ask) -> httpx.Response:
    await ask.send(*shop)
    return await ask.send(*shop)


async def too_often(shop: Shop, ask: Ask) -> httpx.Response:
    response = await ask.send(*shop)
    for _ in range(MAX_OWN_ROTATIONS):
        response = await ask.send(shop.service, response.json()["token"])
    return response


async def without_the_secret_file(shop: Shop, ask: Ask) -> httpx.Response:
    path = shop.service.settings.secret_path
    assert path is not None
    path.unlink()
    return await ask.send(*shop)


async def with_many_webhooks(shop: Shop, ask: Ask) -> httpx.Response:
    key = await stored_key(shop.service.store, 1)
    for _ in range(MAX_WEBHOOKS - 2):
        await add_webhook(shop.service.store, key)
    return await ask.send(*shop)


async def without_its_events(shop: Shop, ask: Ask) -> httpx.Response:
    await shop.service.store.write(do("DELETE FROM events WHERE sequence <= 3"))
    return await ask.send(*shop)


async def of_another_key(shop: Shop, ask: Ask) -> httpx.Response:
    await shop.service.issue()
    other = "(SELECT max(id) FROM api_keys)"
    await shop.service.store.write(do(f"UPDATE webhooks SET key_id = {other}"))  # noqa: S608
    return await ask.send(*shop)


def after(*others: Change, **options: Any) -> Way:
    """Return the way on which ``others``, PATCH and DELETE, come first."""

    async def way(shop: Shop, ask: Ask) -> httpx.Response:
        for method, path, body in others:
            response = await shop.service.request(method, path, shop.token, json=body)
            assert response.is_success, response.text
        return await ask.send(*shop, **options)

    return way


TWO_HOSTS = httpx.Headers([("Host", "petstore.test"), ("Host", "petstore.test")])
TOO_LONG = {"name": "B" * 8 * 65_536}
APPROVED: Change = ("PATCH", "/v1/store/orders/1", {"status": "approved"})
DELIVERED: Change = ("PATCH", "/v1/store/orders/1", {"status": "delivered"})
NOT_KEPT = IN_FEED.encode(Position(99, b"mark"))
SOLD: Change = ("PATCH", "/v1/pets/1", {"status": "sold"})
REVOKED: Change = ("DELETE", "/v1/keys/2", {})
DISABLED: Change = ("PATCH", "/v1/webhooks/1", {"enabled": False})

Response: TypeAlias = tuple[int, str | None, Way]
"""A status, the code of an error, and how an operation comes to that."""

WITH_ONE: dict[str, list[Response]] = {
    "createPet": [
        (400, "unknown_category", asking(json={**BELLA, "categoryId": 99})),
        (503, "service_unavailable", while_the_database_is_locked),
    ],
    "createPets": [
        (400, "unknown_category", asking(json=[BELLA, {**BELLA, "categoryId": 99}])),
        (429, "rate_limit_exceeded", by_key(per_day=1)),
    ],
    "getPet": [(410, "gone", after_the_sunset)],
    "updatePet": [
        (400, "unknown_category", asking(json={"categoryId": 99})),
        (409, "illegal_transition", after(SOLD, json={"status": "pending"})),
        (409, "pet_reserved", asking("/v1/pets/2", json={"status": "sold"})),
    ],
    "deletePet": [(409, "pet_reserved", asking("/v1/pets/2"))],
    "createCategory": [(409, "category_name_taken", asking(json={"name": "DOGS"}))],
    "updateCategory": [(409, "category_name_taken", asking(json={"name": "DOGS"}))],
    "deleteCategory": [(409, "category_in_use", asking("/v1/categories/1"))],
    "createImport": [(409, "too_many_imports", with_many_imports)],
    "updateImport": [
        (400, "unknown_category", asking(json={"defaultCategoryId": 99})),
        (409, "import_closed", asking("/v1/imports/2")),
    ],
    "runImport": [(409, "import_closed", undone_first)],
    "undoImport": [(409, "import_closed", asking("/v1/imports/1/undo"))],
    "placeOrder": [
        (400, "unknown_pet", asking(json={"petId": 99})),
        (409, "pet_not_available", asking(json={"petId": 2})),
    ],
    "updateOrder": [(409, "illegal_transition", asking(json={"status": "delivered"}))],
    "cancelOrder": [(409, "illegal_transition", after(APPROVED, DELIVERED))],
    "listEvents": [
        (403, "missing_scope", without_the_scope_of_a_type),
        (410, "cursor_expired", asking(params={"cursor": NOT_KEPT})),
    ],
    "createKey": [(403, "beyond_own_rights", with_fewer_rights)],
    "updateKey": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "last_admin_key", asking("/v1/keys/1", json={"scopes": ["pets:read"]})),
    ],
    "revokeKey": [(409, "last_admin_key", asking("/v1/keys/1"))],
    "rotateKey": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "api_key_ended", after(REVOKED)),
    ],
    "rotateCurrentKey": [
        (403, "beyond_own_rights", with_an_old_token),
        (429, "too_many_rotations", too_often),
    ],
    "createPerson": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "login_taken", asking(json={**GRACE, "login": "GRACE"})),
    ],
    "updatePerson": [
        (403, "beyond_own_rights", to_a_person_with_more_rights),
        (409, "login_taken", asking("/v1/people/4", json={"login": "GRACE"})),
        (409, "last_administrator", asking(json={"state": "disabled"})),
    ],
    "invitePerson": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "person_disabled", asking("/v1/people/4/invite")),
    ],
    "createWebhook": [
        (400, "invalid_webhook_url", asking(json={"url": "https://127.0.0.1"})),
        (409, "too_many_webhooks", with_many_webhooks),
        (409, "webhooks_not_configured", without_the_secret_file),
    ],
    "updateWebhook": [
        (403, "not_owner", of_another_key),
        (400, "invalid_webhook_url", asking(json={"url": "https://127.0.0.1"})),
    ],
    "deleteWebhook": [(403, "not_owner", of_another_key)],
    "rotateWebhook": [
        (403, "not_owner", of_another_key),
        (409, "webhooks_not_configured", without_the_secret_file),
    ],
    "testWebhook": [(403, "not_owner", of_another_key), (409, "webhook_disabled", after(DISABLED))],
    "listWebhookDeliveries": [(403, "not_owner", of_another_key)],
    "retryWebhookDelivery": [
        (403, "not_owner", of_another_key),
        (409, "webhook_disabled", after(DISABLED)),
        (409, "event_not_kept", without_its_events),
    ],
    "recoverWebhook": [
        (403, "not_owner", of_another_key),
        (409, "webhook_disabled", after(DISABLED)),
    ],
}


ALONE = {sent_again, while_its_key_is_in_use, with_the_key_of_another_request}


def responses_of(name: str) -> list[Response]:
    """Return every response of an operation, and how to get it."""
    row = ROWS[name]
    is_file, is_json = bool(row.media_types), bool(row.body and not row.media_types)
    is_post, is_change = row.method == "POST", row.method in {"PATCH", "DELETE"}
    is_shown_once = SecretAlreadyShown in row.errors
    wrong_query = {"limit": 0, "by": "nothing", "fileName": "\0"}
    other_scopes = frozenset(SCOPES) - {row.scope or ""}
    kinds: list[tuple[object, int, str | None, Way]] = [
        (True, 400, "invalid_request", asking(headers=TWO_HOSTS)),
        (True, 401, "missing_api_key", lambda shop, ask: ask.send(shop.service)),
        (True, 401, "invalid_api_key", lambda shop, ask: ask.send(shop.service, "not-a-key")),
        (True, 403, "network_not_allowed", by_key(allowed_networks=("192.0.2.0/24",))),
        (True, 429, "rate_limit_exceeded", over_the_limit_of_the_address),
        (row.scope, 403, "missing_scope", by_key(scopes=other_scopes)),
        (row.charged, 429, "rate_limit_exceeded", over_the_limit_of_the_key),
        (row.charged, 429, "api_key_banned", while_banned),
        (row.body, 400, "incomplete_body", with_a_body_that_breaks_off),
        (row.body, 408, "request_timeout", with_a_body_that_never_ends),
        (row.body, 415, "unsupported_media_type", asking(headers={"Content-Type": "text/plain"})),
        (row.body, 415, "unsupported_media_type", asking(headers={"Content-Encoding": "gzip"})),
        (is_json, 400, "invalid_body", asking(json=[])),
        (is_json, 413, "content_too_large", asking(json=TOO_LONG)),
        (is_file, 400, "invalid_body", asking(content=b"name,category\n")),
        (is_file, 413, "content_too_large", asking(content=b"a" * (MAX_UPLOAD + 1))),
        (row.query, 400, "invalid_parameter", asking(params=wrong_query)),
        (row.parameters, 404, "not_found", where_nothing_is),
        (is_post, 400, "invalid_parameter", asking(headers={"Idempotency-Key": ""})),
        (is_post, 422, "idempotency_key_reused", with_the_key_of_another_request),
        (is_post, 409, "idempotency_key_in_use", while_its_key_is_in_use),
        (is_post and is_shown_once, 409, "secret_already_shown", sent_again),
        (is_post and not is_shown_once, row.success.status, None, sent_again),
        (row.reads_one, 304, None, with_a_version_known),
        (is_change, 412, "precondition_failed", asking(headers={"If-Match": '"another"'})),
    ]
    return [
        *((status, code, way) for holds, status, code, way in kinds if holds),
        *WITH_ONE.get(name, []),
        # These come last: a success may change the shop, and a fault destroys it.
        (row.success.status, None, asking()),
        (500, "internal_error", at_a_fault),
    ]


def codes_of(name: str, status: int) -> set[str | None]:
    """Return the documented codes of errors; ``None`` stands for a success."""
    described = DESCRIBED[name]["responses"][str(status)]
    content = described.get("content", {}).get("application/json", {})
    return set(content.get("examples", [None]))


@asynccontextmanager
async def opened_shop() -> AsyncIterator[Shop]:
    """Open a shop with strict categories."""
    with folder_in_memory() as folder:
        async with running_service(
            folder / "petstore.db",
            limits_save_seconds=60,  # or its own writing could stand in the way of ``locked``
            anonymous_per_minute=2,
            strict_categories=True,
        ) as service:
            yield await furnish(service)


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with opened_shop() as shop:
        yield shop


def check(schema: dict[str, Any], value: object) -> None:
    """Check ``value`` against a schema of the document."""
    validator_of(json.dumps(schema)).validate(value)


@cache
def validator_of(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Compile a schema of the document, with all that it may refer to."""
    return jsonschema_rs.Draft202012Validator(
        {**json.loads(schema), "components": COMPONENTS}, validate_formats=True
    )


def parameters(name: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of an operation that are in ``place``, by name."""
    return {each["name"]: each for each in DESCRIBED[name]["parameters"] if each["in"] == place}


# The document and interface.md; whether it is valid is tested in test_openapi_linters.py


def test_every_operation_of_the_service_is_documented_and_what_they_share_once() -> None:
    documented = {
        (operation["operationId"], method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method, operation in operations.items()
    }
    assert documented == {(row.id, row.method, row.path) for row in OPERATIONS}
    tagged = {tag for operation in DESCRIBED.values() for tag in operation["tags"]}
    assert tagged == {tag["name"] for tag in DOCUMENT["tags"]}
    # 55 operations of 3.6 kB each, 28 kB of events, and what these share.
    assert len(json.dumps(DOCUMENT, separators=(",", ":"))) < 365_000


def test_plans_and_scopes_of_responses_are_open_lists() -> None:
    key = SCHEMAS["Key"]["properties"]
    for schema in (key["plan"], key["scopes"]["items"], SCHEMAS["Usage"]["properties"]["plan"]):
        assert schema["type"] == "string"
        assert "enum" not in schema
        assert "More will follow" in schema["description"]
    plan = SCHEMAS["KeyCreate"]["properties"]["plan"]["$ref"].rpartition("/")[2]
    assert SCHEMAS[plan]["enum"]


def test_the_document_names_its_version_its_server_its_security_and_the_documentation() -> None:
    assert DOCUMENT["info"]["version"] == "1.0.0"
    production = "production: keys begin with ps_live_."
    assert DOCUMENT["servers"] == [{"url": f"{ORIGIN}/v1", "description": production}]
    assert DOCUMENT["info"]["contact"]["url"] == f"{ORIGIN}/docs/"
    assert DOCUMENT["externalDocs"]["url"] == f"{ORIGIN}/docs/"
    ((name, scheme),) = COMPONENTS["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert DOCUMENT["security"] == [{name: []}]


def test_only_getting_a_pet_is_deprecated() -> None:
    deprecated = {name for name, described in DESCRIBED.items() if described.get("deprecated")}
    assert deprecated == {"getPet"}
    assert "5 December 2030" in DESCRIBED["getPet"]["description"]
    assert DESCRIBED["getPet"]["x-sunset"] == "2030-12-05"


REFERENCES = "#/components/schemas"
INT64: dict[str, Any] = {"type": "integer", "format": "int64"}
LIMIT: dict[str, Any] = {
    "type": "integer",
    "format": "int32",
    "minimum": 1,
    "maximum": 100,
    "default": 20,
}


def test_parameters_are_those_of_the_interface() -> None:
    status: dict[str, Any] = {"$ref": f"{REFERENCES}/PetStatus"}
    for operation, name, is_required, schema, text in [
        ("listPets", "limit", False, LIMIT, "Maximum number of animals returned."),
        ("listPets", "status", False, status, "Filters by availability status."),
        ("getPet", "petId", True, INT64, "Identifier of the animal to retrieve."),
    ]:
        (found,) = (each for each in DESCRIBED[operation]["parameters"] if each["name"] == name)
        assert (found["required"], found["description"]) == (is_required, text)
        assert schema.items() <= found["schema"].items()


def test_adding_a_pet_takes_a_new_pet_and_returns_a_pet_which_has_an_id_too() -> None:
    body = DESCRIBED["createPet"]["requestBody"]
    assert body["required"] is True
    assert body["content"]["application/json"]["schema"] == {"$ref": f"{REFERENCES}/NewPet"}
    created = DESCRIBED["createPet"]["responses"]["201"]["content"]["application/json"]
    assert created["schema"] == {"$ref": f"{REFERENCES}/Pet"}
    new, pet = SCHEMAS["NewPet"], SCHEMAS["Pet"]
    assert set(new["properties"]) >= {"name", "categoryId", "status"}
    assert set(pet["properties"]) == {"id", *new["properties"]}
    assert {"id", *new["required"]} == set(pet["required"]) == {"id", "name", "categoryId"}
    for described in (new["properties"], pet["properties"]):
        for name, words in {
            "id": "Unique identifier, assigned by the service on creation.",
            "name": "The animal's name.",
            "categoryId": "Identifier of the category the animal belongs to.",
            "status": "Availability status.",
        }.items():
            if name in described:
                assert described[name]["description"].startswith(words)
            if name in {"id", "categoryId"} & described.keys():
                assert INT64.items() <= described[name].items()
        assert described["status"]["$ref"] == f"{REFERENCES}/PetStatus"
        assert "default" not in described["status"]
    assert SCHEMAS["PetStatus"]["type"] == "string"
    assert SCHEMAS["PetStatus"]["enum"] == ["available", "pending", "sold"]
    assert (SCHEMAS["Pets"]["type"], SCHEMAS["Pets"]["items"]) == ("array", created["schema"])


def test_an_error_has_code_message_and_status() -> None:
    error = SCHEMAS["Error"]
    types = {name: field["type"] for name, field in error["properties"].items()}
    assert types == {"code": "string", "message": "string", "status": "integer"}
    assert set(error["required"]) == set(types)


@pytest.mark.parametrize("model", ["NewPet", "KeyCreate"])
def test_the_documented_pattern_takes_names_in_any_script_and_no_blank_ones(model: str) -> None:
    schema = SCHEMAS[model]["properties"]["name"]
    is_documented = jsonschema_rs.Draft202012Validator(schema).is_valid
    for name in ("Bella", "K\u00e4the 2", " x ", "\u732b", "\U0001f407", "\u05d1\u05dc\u05d4"):
        assert is_documented(name), name
    for name in ("", " ", "\t\n", "\0", "Bella\0", "\u3000"):
        assert not is_documented(name), name


# What generated clients can take


def schemas_in(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema with a type, wherever it is."""
    if isinstance(part, list):
        for item in part:
            yield from schemas_in(item)
    elif isinstance(part, dict):
        if isinstance(part.get("type"), str):
            yield part
        for name, item in part.items():
            if name not in ("example", "examples"):
                yield from schemas_in(item)


EVERY_SCHEMA = list(schemas_in(RESOLVED))


def test_integers_and_patterns_fit_other_languages() -> None:
    bits = {"int32": 31, "int64": 63}
    for schema in EVERY_SCHEMA:
        if schema["type"] == "integer":
            assert schema.get("maximum", 0) < 2 ** bits[schema["format"]], schema
            assert "-9223372036854775808" not in json.dumps(schema)  # JavaScript rounds it
            assert "9223372036854775807" not in json.dumps(schema)
    for name, field in (
        *(("Rotation", "graceSeconds"), ("SecretRotation", "graceSeconds")),
        *(("UsageWindow", "reset"), ("KeyDeprecatedUse", "keyId"), ("Event", "sequence")),
    ):
        assert SCHEMAS[name]["properties"][field]["format"] == "int64"
    for name in ("Pet", "Category", "Order", "Key", "Person", "Webhook", "Delivery"):
        field = SCHEMAS[name]["properties"]["id"]
        assert field["readOnly"] is True
        assert "JavaScript" in field["description"]
    patterns = [schema["pattern"] for schema in EVERY_SCHEMA if "pattern" in schema]
    assert patterns
    assert not [pattern for pattern in patterns if re.search(r"\\[up]|\(\?[=!<]", pattern)]


def test_only_parameters_have_defaults_and_bodies_describe_theirs_in_text() -> None:
    assert not [name for name, schema in SCHEMAS.items() if '"default"' in json.dumps(schema)]
    fields = SCHEMAS["KeyCreate"]["properties"]
    assert fields["plan"]["description"].endswith("Default: `free`.")
    assert fields["scopes"]["description"].endswith(
        "Default: `orders:read`, `orders:write`, `pets:read`, `pets:write`."
    )
    assert SCHEMAS["KeyCreate"]["required"] == ["name"]


def test_names_and_descriptions_suit_generators() -> None:
    # A member that a response always has is required.
    assert SCHEMAS["Inventory"]["required"] == ["available", "pending", "sold"]
    # No name collides with a constructor in Go, but for the interface's own.
    assert {f"New{name}" for name in SCHEMAS} & set(SCHEMAS) == {"NewPet"}
    # An enumeration is named once.
    choices = [sorted(schema["enum"]) for schema in EVERY_SCHEMA if len(schema.get("enum", ())) > 1]
    named = [sorted(schema["enum"]) for schema in SCHEMAS.values() if "enum" in schema]
    assert sorted(choices) == sorted(named)
    assert SCHEMAS["Order"]["properties"]["status"]["$ref"] == f"{REFERENCES}/OrderStatus"
    # An indented line would be code.
    assert not re.search(r'"description": "[^"]*\\n ', json.dumps(DOCUMENT))


@pytest.mark.parametrize("name", ["rotateKey", "rotateWebhook"])
async def test_an_optional_body_can_be_omitted_but_not_null(shop: Shop, name: str) -> None:
    body = DESCRIBED[name]["requestBody"]
    assert body["required"] is False
    assert "`null` is refused" in body["description"]
    for options, status in (({"content": b"null"}, 400), ({}, 200)):
        response = await REQUESTS[name]._replace(options=options).send(*shop)
        assert response.status_code == status


# Headers of requests


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_headers_media_types_and_links_of_an_operation_are_documented(name: str) -> None:
    row, described = ROWS[name], DESCRIBED[name]
    expected = {"Idempotency-Key"} if row.method == "POST" else set()
    expected |= {"If-Match"} if row.method in {"PATCH", "DELETE"} else set()
    expected |= {"If-None-Match"} if row.reads_one else set()
    documented = parameters(name, "header")
    assert set(documented) == expected
    for header in documented.values():
        assert header["required"] is False
        assert header["schema"]["type"] == "string"
        assert header["description"]
    merge_patch = {"application/merge-patch+json"} if row.method == "PATCH" else set()
    usual = {*(row.media_types or ["application/json"])} if row.body else set()
    assert set(described.get("requestBody", {"content": {}})["content"]) == usual | merge_patch
    for response in described["responses"].values():
        for link in response.get("links", {}).values():
            assert set(link["parameters"]) == set(parameters(link["operationId"], "path"))


def test_the_document_and_the_service_agree_on_bare_idempotency_keys() -> None:
    schema = parameters("createPet", "header")["Idempotency-Key"]["schema"]
    is_documented = jsonschema_rs.Draft202012Validator(schema).is_valid
    for field in (
        *("", "a", '"a"', '"', '""', '"a', 'a"', 'a"b', '"a"b"', "a b", '"a b"', "a,b"),
        *("\t", "a\n"),
        *('"a";', '"a";v', '"a"; v=1', '"a";v="b"', '"a";v="', '"a";V', '"a" ;v', "a;v"),
        *('"a"' + ";v=1" * 9, '"a"' + ";v=1" * 10, '"a";v=1,'),
        *("\x7f", "~", "ä", "\\", '"\\"', '"\\\\"', '"\\""', '"\\a"', '"a\n"', '"a"\n'),
        *("x" * 255, "x" * 256, f'"{"x" * 255}"', f'"{"x" * 256}"', '"' + '\\"' * 255 + '"'),
    ):
        with case(field):
            sent = [(b"idempotency-key", field.encode("latin-1"))]
            try:
                is_taken = bool(idempotency_key(http_request("POST", b"/", sent)))
            except InvalidParameter:
                is_taken = False
            # The description says what may stand in quotes: PHP cannot compile a pattern of that.
            is_bare = not field.startswith('"')
            assert is_documented(field) == (is_taken and is_bare)


# Examples


@pytest.mark.parametrize("row", OPERATIONS, ids=[row.id for row in OPERATIONS])
def test_a_refusal_says_what_was_expected_of_any_field(row: Operation) -> None:
    for kind in {row.query, *(get_args(row.body) or (row.body,))} - {None, FileBody}:
        wrong = dict.fromkeys(kind.__struct_encode_fields__, object())
        with pytest.raises(InvalidParameter) as refused:
            convert(wrong, kind, InvalidParameter)
        messages = [refused.value.message, *refused.value.others]
        assert all(re.search(": expected (?!one of $)", message) for message in messages)


@pytest.mark.parametrize("name", DESCRIBED)
async def test_the_service_takes_the_examples_of_all_parameters_at_once_and_ignores_others(
    shop: Shop, name: str
) -> None:
    """As Postman sends them; the ids are those of the shop."""
    for each in DESCRIBED[name]["parameters"]:
        check(each["schema"], each["example"])
    query = {key: of["example"] for key, of in parameters(name, "query").items()}
    headers = {key: of["example"] for key, of in parameters(name, "header").items()}
    ask = REQUESTS[name]
    sent = ask.options.get("json")
    options = {"params": {**query, "unknown": "1"}, "headers": headers}
    if isinstance(sent, dict):
        options["json"] = {"unknown": [1], **sent}
    response = await ask.send(shop.service, shop.token, **options)
    assert response.is_success, response.text


# Webhooks


def test_the_body_of_a_delivery_is_a_named_schema_with_the_whole_resource() -> None:
    """Generated clients name a class after it, and cannot take what stands beside a reference."""
    assert list(DOCUMENT["webhooks"]) == [*EVENT_TYPES]
    for kind in (kind for kind in EVENT_TYPES if kind.startswith("pet.")):
        content = DOCUMENT["webhooks"][kind]["post"]["requestBody"]["content"]
        assert content["application/json"]["schema"] == {"$ref": f"{REFERENCES}/PetEvent"}
    data = SCHEMAS["PetEvent"]["properties"]["data"]
    assert data == {"$ref": f"{REFERENCES}/PetSnapshot"}
    assert SCHEMAS["PetSnapshot"]["required"] == SCHEMAS["Pet"]["required"]
    # A delivery is a request, in which nothing that is read-only may stand.
    assert "readOnly" not in json.dumps(SCHEMAS["PetSnapshot"])
    hidden = SCHEMAS["Order"]["properties"].keys() - SCHEMAS["OrderSnapshot"]["properties"].keys()
    assert hidden == {"buyer", "note", "cancelReason", "returnReason"}  # personal data


def is_valid(name: str, value: object) -> bool:
    """Return whether a value fits a schema."""
    return validator_of(json.dumps({"$ref": f"#/components/schemas/{name}"})).is_valid(value)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_event_has_any_data_in_the_feed_and_typed_data_in_a_signed_delivery(
    kind: EventType,
) -> None:
    content = DOCUMENT["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    event = example_of_event(kind)
    assert is_valid(name, event)
    assert is_valid("Event", event)
    assert not is_valid(name, event | {"data": {}})
    delivery = RESOLVED["webhooks"][kind]["post"]
    assert delivery["security"] == []
    assert [(each["name"], each["in"], each["required"]) for each in delivery["parameters"]] == [
        ("webhook-id", "header", True),
        ("webhook-timestamp", "header", True),
        ("webhook-signature", "header", True),
    ]
    for parameter in delivery["parameters"]:
        check(parameter["schema"], parameter["example"])
    later = {"type": "parcel.sent", "data": {"id": "P-1"}, "previous": {"parts": [1]}}
    assert is_valid("Event", event | later)


# The document and the service


@pytest.mark.parametrize("name", DESCRIBED)
async def test_every_response_of_an_operation_is_documented(shop: Shop, name: str) -> None:
    for status, code, way in responses_of(name):
        shop.service.clock.advance(61)  # the limit of an address is for a minute
        with case(status, code, way.__name__):
            if way in ALONE or (status, code, way) in WITH_ONE.get(name, []):
                async with opened_shop() as own:
                    response = await way(own, REQUESTS[name])
            else:
                response = await way(shop, REQUESTS[name])
            check_response(name, status, code, response)


@pytest.mark.parametrize(
    "row", [row for row in OPERATIONS if row.method in {"PATCH", "DELETE"}], ids=lambda row: row.id
)
async def test_the_checks_of_a_change_and_of_a_deletion_run_in_order(
    shop: Shop, row: Operation
) -> None:
    """Each request breaks the rule of its response and, if it can, the rules of all below it."""
    here = REQUESTS[row.id]
    lost = here._replace(path=re.sub("/[0-9]+", "/99", here.path))
    other = await shop.with_key(scopes=frozenset(SCOPES) - {row.scope or ""})
    stale = {"If-Match": '"another"'}
    of_text = {"headers": {**stale, "Content-Type": "text/plain"}, "json": TOO_LONG}
    checks: list[tuple[Ask, str | None, dict[str, Any], int, str]] = [
        (lost, None, of_text, 401, "missing_api_key"),
        (lost, other.token, of_text, 403, "missing_scope"),
        (lost, shop.token, of_text, 415, "unsupported_media_type"),
        (lost, shop.token, {"headers": stale, "json": TOO_LONG}, 413, "content_too_large"),
        (lost, shop.token, {"headers": stale, "json": []}, 400, "invalid_body"),
        (lost, shop.token, {"headers": stale}, 404, "not_found"),
        (here, shop.token, {"headers": stale}, 412, "precondition_failed"),
    ]
    for ask, token, options, status, code in checks:
        if row.body or status not in {400, 413, 415}:
            with case(status, code):
                assert_error(await ask.send(shop.service, token, **options), status, code)


def check_response(name: str, status: int, code: str | None, response: httpx.Response) -> None:
    """Check that the document describes a response of an operation as it is."""
    assert response.status_code == status, response.text
    described = DESCRIBED[name]["responses"][str(status)]
    if "content" in described:
        media_type = response.headers["content-type"].partition(";")[0]
        value = response.json() if media_type == "application/json" else response.text
        check(described["content"][media_type]["schema"], value)
    else:
        assert response.content == b""
        assert "content-type" not in response.headers
    if code is not None:
        assert response.json()["code"] == code
    assert code in codes_of(name, status)
    check_headers(described["headers"], response)
    # No shared cache stores it, whatever it is.
    caching = "no-store" if ROWS[name].no_store else "private, no-cache"
    assert response.headers.get_list("Cache-Control") == [caching]
    assert response.headers.get_list("Vary") == ["Authorization"]
    if code == "missing_scope" and (scope := ROWS[name].scope):
        assert scope in response.json()["message"]
        named = f'Bearer realm="petstore", error="insufficient_scope", scope="{scope}"'
        assert response.headers.get_list("WWW-Authenticate") == [named]


IN_TURN = ("GET", "PATCH", "POST", "DELETE")
TABLES = (
    *("pets", "categories", "orders", "api_keys", "api_key_tokens", "people", "invitations"),
    *("webhooks", "webhook_deliveries", "imports"),
)


async def rows(service: Service, select: str) -> list[str]:
    return sorted(map(repr, await service.store.read(Statement(select))))


async def contents(service: Service) -> list[list[str]]:
    """Return the rows of all resources, and how many events there are, in the feed or not yet."""
    # A save of counts notes a deprecated call up to a second later.
    told = "events WHERE type <> 'deprecation.used'"
    outbox = told.replace("events", "events_outbox", 1)
    count = f"SELECT count(*) /*pg + (SELECT count(*) FROM {outbox}) */ FROM {told}"  # noqa: S608
    selects = [*(f"SELECT * FROM {table}" for table in TABLES), count]  # noqa: S608
    return [await rows(service, select) for select in selects]


def secret_of(response: httpx.Response) -> str:
    """Return the token or the secret in a response, empty if it has none."""
    shown = response.json() if response.content else {}
    if not isinstance(shown, dict):
        return ""
    link = shown.get("invitation", {}).get("url", "")
    return str(shown.get("token") or shown.get("secret") or link.rpartition("/")[2])


@pytest.mark.each_database
async def test_every_operation_succeeds_with_only_its_own_scope_and_each_post_once(
    service: Service,
) -> None:
    """One after another, and so on PostgreSQL too."""
    shop = await furnish(service)
    secrets = [shop.token]
    in_turn = sorted(OPERATIONS, key=lambda row: IN_TURN.index(row.method))
    # After its rotation, a token has an end, and gives nobody a longer life.
    for row in sorted(in_turn, key=lambda row: row.id == "rotateCurrentKey"):
        with case(row.id):
            # Who creates or rotates a key needs all that the key may do; webhooks and imports
            # are of their key.
            is_own = row.scope in {None, "keys:admin", "webhooks:write"} or row.tag == "Imports"
            key = shop if is_own else await shop.with_key(scopes=frozenset({row.scope}))
            headers = {"Idempotency-Key": row.id} if row.method == "POST" else {}
            before = await contents(service) if headers else []
            response = await REQUESTS[row.id].send(*key, headers=headers)
            check_response(row.id, row.success.status, None, response)
            if row.method == "POST":
                after = await contents(service)
                assert after != before
                for _ in range(2):
                    assert_same(await REQUESTS[row.id].send(*key, headers=headers), response)
                assert await contents(service) == after
                secrets += filter(None, [secret_of(response)])
    stored = str(
        [*await contents(service), *await rows(service, "SELECT * FROM idempotency_records")]
    )
    if not is_postgres(service.settings.database):
        path = sqlite_path(service.settings.database)
        files = path.parent.glob(f"{path.name}*")
        stored += "".join(file.read_bytes().decode("latin-1") for file in files)
    assert stored.count(GRACE["login"]) >= 2  # what is stored can be found this way
    assert len(secrets) == 8
    for secret in secrets:
        assert secret.removeprefix("ps_live_").removeprefix("whsec_")[:32] not in stored


def assert_same(replay: httpx.Response, first: httpx.Response) -> None:
    """Check that ``replay`` says what ``first`` said, but no secret."""
    assert "Idempotent-Replayed" not in first.headers
    assert replay.headers.get_list("Idempotent-Replayed") == ["true"]
    if secret := secret_of(first):
        message = assert_error(replay, 409, "secret_already_shown")
        assert f" {first.json()['id']} and showed " in message
        assert secret not in message
        return
    assert (replay.status_code, replay.content) == (first.status_code, first.content)
    for name in ("Content-Type", "Location", "ETag", "Cache-Control", "Vary"):
        assert replay.headers.get_list(name) == first.headers.get_list(name)


def check_headers(described: dict[str, Any], response: httpx.Response) -> None:
    """Check that ``response`` has the required headers that are described, and no others."""
    documented = {name.lower(): header["schema"] for name, header in described.items()}
    for name, value in response.headers.items():
        if name not in HTTPS_OWN_HEADERS:
            is_number = documented[name]["type"] == "integer"
            check(documented[name], int(value) if is_number else value)
    required = {name.lower() for name, header in described.items() if header["required"]}
    assert required <= set(response.headers)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("createCategory", asking(json={"name": "DOGS"}, headers=A_KEY)),
        ("placeOrder", asking(json={"petId": 2}, headers=A_KEY)),
        ("rotateKey", after(REVOKED, headers=A_KEY)),
    ],
)
async def test_a_replayed_conflict_is_documented(shop: Shop, name: str, way: Way) -> None:
    first = await way(shop, REQUESTS[name])
    content = {"content": first.request.content}
    again = await REQUESTS[name]._replace(options=content).send(*shop, headers=A_KEY)
    assert again.status_code == 409
    assert again.headers["Idempotent-Replayed"] == "true"
    check_headers(DESCRIBED[name]["responses"]["409"]["headers"], again)


@pytest.mark.parametrize("name", DESCRIBED)
def test_only_actual_responses_of_an_operation_are_documented(name: str) -> None:
    given = {(status, code) for status, code, _ in responses_of(name)}
    # That the database fails wherever it is needed is seen in test_database_failures.py.
    given.add((503, "service_unavailable"))
    if ROWS[name].query is not None:  # seen on a socket, in test_a_target_that_is_too_long…
        given.add((414, "uri_too_long"))
    documented = {
        (int(status), code)
        for status in DESCRIBED[name]["responses"]
        for code in codes_of(name, int(status))
    }
    assert documented == given


async def test_the_document_needs_no_key_and_does_not_reveal_whether_one_is_valid(
    service: Service,
) -> None:
    token = (await service.issue("free")).token
    got = await service.client.get("/v1/openapi.json")
    assert got.status_code == 200
    assert got.headers["content-type"] == "application/json"
    assert got.json() == DOCUMENT
    for method in ("GET", "HEAD"):
        told = []
        for sent in (token, new_token("production"), None):
            got = await service.request(method, "/v1/openapi.json", sent)
            headers = got.headers.multi_items()
            told.append([item for item in headers if item[0] != "x-request-id"])
        assert told[0] == told[1] == told[2]
        # It counts against no limit.
        assert told[0].count(("x-ratelimit-limit", "300")) == 1
        assert told[0].count(("x-ratelimit-remaining", "300")) == 1
    usage = await service.request("GET", "/v1/usage", token)
    assert usage.json()["minute"]["remaining"] == 60


# The page that serves it


async def get(service: Service, **headers: str) -> httpx.Response:
    """Ask for the document, as it is unless ``headers`` say something else."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await service.client.get(
        "/v1/openapi.json", headers={"Accept-Encoding": "identity"} | named
    )


async def test_any_cache_may_store_the_document_and_must_revalidate_it(service: Service) -> None:
    first = await get(service)
    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert first.headers["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in first.headers
    assert not first.headers["ETag"].startswith("W/")
    again = await get(service, If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary"):
        assert again.headers[name] == first.headers[name]


async def test_the_document_names_the_other_environment_if_the_operator_does(
    database: Path,
) -> None:
    settings: dict[str, Any] = {"other_environment_url": "https://shop.example/"}
    async with running_service(database, environment="staging", **settings) as service:
        servers = (await get(service)).json()["servers"]
    assert [(each["url"], each["description"].partition(":")[0]) for each in servers] == [
        ("http://petstore.test/v1", "staging"),
        ("https://shop.example/v1", "production"),
    ]


async def test_the_document_is_compressed_and_the_same_in_every_process_but_for_the_host() -> None:
    page, other = [
        DocumentPage(lambda request: f"http://{request.fields[b'host'].decode()}") for _ in range(2)
    ]
    hosts = ("192.0.2.7:8000", "[2001:db8::7]", "", 250 * "a")
    for number, host in enumerate((*hosts, *(f"{number}.test" for number in range(20)))):
        fields = [(b"host", host.encode("ascii")), (b"accept-encoding", b"gzip, br")]
        request = http_request("GET", b"/v1/openapi.json", fields)
        response = await page(request)
        assert response == await other(request)
        is_compressed = b"content-encoding: gzip" in response.headers
        assert is_compressed == (number < 8)  # a client that invents hosts costs no more time
        whole = gzip.decompress(response.body) if is_compressed else response.body
        assert json.loads(whole) == document(f"http://{host}")
        assert not is_compressed or len(response.body) < len(whole) / 8
