"""The OpenAPI document against its own standard, interface.md, and the responses of the service."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import apsw
import httpx
import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi import definitions

from petstore.api.api_keys import KeyCreate
from petstore.api.idempotency import idempotency_key
from petstore.api.openapi.document import document
from petstore.api.openapi.errors import possible_errors
from petstore.api.operations import OPERATIONS
from petstore.app import secret_file_of
from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Unit
from petstore.domain.api_keys import SCOPES, Environment, new_token
from petstore.domain.categories import CategoryCreate
from petstore.domain.events import EVENT_TYPES, Position
from petstore.domain.orders import OrderCreate
from petstore.domain.pets import NewPet
from petstore.domain.plans import UNLIMITED
from petstore.domain.webhooks import MAX_REPLAY, MAX_WEBHOOKS, WebhookCreate
from petstore.errors import InvalidParameter
from petstore.settings import sqlite_path
from petstore.store.api_keys import ApiKeyChanges, change_key, create_key, unconditional
from petstore.store.orders import place_order
from petstore.store.webhooks import create_webhook
from support.bare_app import fields, http_request
from support.changes import create_category, create_pets
from support.keys import OPERATOR, new_api_key, stored_key
from support.memory_folder import folder_in_memory
from support.service import Service, running_service
from support.stores import do, locked
from support.webhooks import URL, add_deliveries, add_events, add_webhook

pytestmark = pytest.mark.anyio

ORIGIN = "http://petstore.test"
DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(ORIGIN, OPERATIONS)))
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
# In the store of ``some_of_everything`` all animals belong to category 1.
BELLA = {"name": "Bella", "categoryId": 1, "status": "available"}


class Ask(NamedTuple):
    """A request that suits an operation."""

    method: str
    path: str
    options: dict[str, Any]

    async def send(
        self, service: Service, token: str | None = None, **options: Any
    ) -> httpx.Response:
        return await service.request(self.method, self.path, token, **{**self.options, **options})


ONE: dict[str, Any] = {"params": {"limit": 1}}
YEAR_1 = "0001-01-01T00:00:00Z"
REQUESTS = {
    "listPets": Ask("GET", "/v1/pets", ONE),
    "createPet": Ask("POST", "/v1/pets", {"json": BELLA}),
    "getPet": Ask("GET", "/v1/pets/1", {}),
    "updatePet": Ask("PATCH", "/v1/pets/1", {"json": {"name": "Rex"}}),
    "deletePet": Ask("DELETE", "/v1/pets/1", {}),
    "listCategories": Ask("GET", "/v1/categories", ONE),
    "createCategory": Ask("POST", "/v1/categories", {"json": {"name": "Birds"}}),
    "getCategory": Ask("GET", "/v1/categories/2", {}),
    "updateCategory": Ask("PATCH", "/v1/categories/2", {"json": {"description": "Small."}}),
    "deleteCategory": Ask("DELETE", "/v1/categories/2", {}),
    "listOrders": Ask("GET", "/v1/store/orders", ONE),
    "placeOrder": Ask("POST", "/v1/store/orders", {"json": {"petId": 1}}),
    "getOrder": Ask("GET", "/v1/store/orders/1", {}),
    "updateOrder": Ask("PATCH", "/v1/store/orders/1", {"json": {"status": "approved"}}),
    "cancelOrder": Ask("DELETE", "/v1/store/orders/1", {}),
    "getInventory": Ask("GET", "/v1/store/inventory", {}),
    "listEvents": Ask("GET", "/v1/events", ONE),
    "listKeys": Ask("GET", "/v1/keys", ONE),
    "createKey": Ask("POST", "/v1/keys", {"json": {"name": "Till"}}),
    "getKey": Ask("GET", "/v1/keys/2", {}),
    "updateKey": Ask("PATCH", "/v1/keys/2", {"json": {"name": "Till 2"}}),
    "revokeKey": Ask("DELETE", "/v1/keys/2", {}),
    "rotateKey": Ask("POST", "/v1/keys/2/rotate", {"json": {"graceSeconds": 60}}),
    "unbanKey": Ask("POST", "/v1/keys/2/unban", {}),
    "listKeyHistory": Ask("GET", "/v1/keys/2/history", ONE),
    "listDeprecations": Ask("GET", "/v1/deprecations", ONE),
    "getUsage": Ask("GET", "/v1/usage", {}),
    "listWebhooks": Ask("GET", "/v1/webhooks", ONE),
    "createWebhook": Ask("POST", "/v1/webhooks", {"json": {"url": URL}}),
    "getWebhook": Ask("GET", "/v1/webhooks/1", {}),
    "updateWebhook": Ask("PATCH", "/v1/webhooks/1", {"json": {"types": ["pet.created"]}}),
    "deleteWebhook": Ask("DELETE", "/v1/webhooks/1", {}),
    "rotateWebhook": Ask("POST", "/v1/webhooks/1/rotate", {"json": {"graceSeconds": 60}}),
    "testWebhook": Ask("POST", "/v1/webhooks/1/test", {}),
    "listWebhookDeliveries": Ask("GET", "/v1/webhooks/1/deliveries", ONE),
    "replayWebhook": Ask("POST", "/v1/webhooks/1/replay", {"json": {"since": YEAR_1}}),
}


# Ways to get each response of an operation


Way: TypeAlias = Callable[[Service, Ask], Awaitable[httpx.Response]]

Change: TypeAlias = tuple[str, str, dict[str, Any]]
"""Method, path and body."""


def some_of_everything(now: Milliseconds, environment: Environment) -> Unit[str]:
    """Put two and more of everything in the store; return the token of key 1, which may do all.

    Animal 1 is free, orders 1 and 2 hold 2 and 3; no animal is of category 2.
    """
    new = partial(new_api_key, environment=environment)
    issued = yield from create_key(new(plan="enterprise", scopes=frozenset(SCOPES)), OPERATOR, now)
    for name in ("Dogs", "Cats"):
        yield from create_category(CategoryCreate(name))
    yield from create_pets([NewPet("Bella", 1, "available")] * 3)
    for pet_id in (2, 3):
        yield from place_order(OrderCreate(pet_id), now, 1440)
    yield from create_key(new(), OPERATOR, now)
    yield from change_key(2, ApiKeyChanges(name="Till 1"), OPERATOR, now, unconditional)
    for _ in range(2):
        yield from create_webhook(WebhookCreate(URL), 1, now)
    for key_id in (1, 2):
        called = "INSERT INTO deprecated_calls VALUES (?1, 'getPet', ?2, 1, ?3, 'till/1', 'r1')"
        yield from do(called, key_id, now // DAY, now)
    return issued.token


async def furnish(service: Service) -> str:
    secret_file_of(service.settings).create()
    unit = some_of_everything(service.clock(), service.settings.environment)
    token = await service.store.write(unit)
    await add_deliveries(service.store, 1, "succeeded", "pending", "failed")
    return token


async def as_it_should(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service, await furnish(service))


async def without_a_key(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service)


async def with_an_invalid_key(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service, "not-a-key")


async def from_elsewhere(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue(allowed_networks=("192.0.2.0/24",))).token
    return await ask.send(service, token)


async def without_a_scope(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service, (await service.issue(scopes=frozenset())).token)


async def over_the_limit_of_the_key(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue(per_minute=1)).token
    await ask.send(service, token)
    return await ask.send(service, token)


async def over_the_limit_of_the_address(service: Service, ask: Ask) -> httpx.Response:
    for _ in range(service.settings.anonymous_per_minute):
        await ask.send(service)
    return await ask.send(service)


async def while_banned(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue(per_minute=1)).token
    await ask.send(service, token)
    await ask.send(service, token)
    service.clock.advance(2)
    for _ in range(service.settings.ban_strikes):
        await ask.send(service, token)
    return await ask.send(service, token)


async def with_two_hosts(service: Service, ask: Ask) -> httpx.Response:
    hosts = httpx.Headers([("Host", "petstore.test"), ("Host", "petstore.test")])
    return await ask.send(service, headers=hosts)


async def at_a_fault(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue()).token
    with apsw.Connection(str(sqlite_path(service.settings.database))) as connection:
        connection.execute("DROP TABLE rate_limits")
    return await ask.send(service, token)


async def after_the_sunset(service: Service, ask: Ask) -> httpx.Response:
    service.clock.advance(5 * 365 * 86400)
    return await as_it_should(service, ask)


async def while_the_database_is_locked(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue()).token
    with locked(sqlite_path(service.settings.database), service.store):
        return await ask.send(service, token)


async def where_nothing_is(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    path = ask.path.replace("/1", "/99").replace("/2", "/99")
    return await ask._replace(path=path).send(service, token)


async def with_a_version_known(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    tag = (await ask.send(service, token)).headers["ETag"]
    return await ask.send(service, token, headers={"If-None-Match": tag})


async def sent_again(service: Service, ask: Ask) -> httpx.Response:
    token, key = await furnish(service), {"Idempotency-Key": "a"}
    await ask.send(service, token, headers=key)
    response = await ask.send(service, token, headers=key)
    assert response.headers["Idempotent-Replayed"] == "true"
    return response


async def sent_twice_at_once(service: Service, ask: Ask) -> httpx.Response:
    token, key = await furnish(service), {"Idempotency-Key": "a"}
    responses = await asyncio.gather(*(ask.send(service, token, headers=key) for _ in range(2)))
    (refused,) = (response for response in responses if response.is_error)
    return refused


async def with_the_key_of_another_request(service: Service, ask: Ask) -> httpx.Response:
    token, key = await furnish(service), {"Idempotency-Key": "a"}
    await service.request("POST", "/v1/categories", token, json={"name": "Fish"}, headers=key)
    return await ask.send(service, token, headers=key)


async def again_with_another_token(service: Service, ask: Ask) -> httpx.Response:
    token, key = await furnish(service), {"Idempotency-Key": "a"}
    await ask.send(service, token, headers=key)
    rotate = Ask("POST", "/v1/keys/1/rotate", {"json": {"graceSeconds": 60}})
    rotated = await rotate.send(service, token)
    return await ask.send(service, rotated.json()["token"], headers=key)


async def without_the_scope_of_a_type(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue(scopes=frozenset())).token
    return await ask.send(service, token, params={"type": "pet.created"})


async def with_fewer_rights(service: Service, ask: Ask) -> httpx.Response:
    await furnish(service)
    token = (await service.issue("pro", scopes=frozenset({"keys:admin"}))).token
    options = {} if "rotate" in ask.path else {"json": {"name": "Till", "plan": "business"}}
    return await ask.send(service, token, **options)


async def with_a_body_that_breaks_off(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    response = await service.call(
        ask.method,
        ask.path.encode(),
        [
            (b"host", b"x"),
            (b"authorization", f"Bearer {token}".encode()),
            (b"content-length", b"9"),
        ],
        b"{",
        is_cut_off=True,
    )
    return httpx.Response(response.status, headers=fields(response), content=response.body)


async def without_the_secret_file(service: Service, ask: Ask) -> httpx.Response:
    token, path = await furnish(service), service.settings.secret_path
    assert path is not None
    path.unlink()
    return await ask.send(service, token)


async def with_many_webhooks(service: Service, ask: Ask) -> httpx.Response:
    token, key = await furnish(service), await stored_key(service.store, 1)
    for _ in range(MAX_WEBHOOKS - 2):
        await add_webhook(service.store, key)
    return await ask.send(service, token)


async def with_many_events(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    await add_events(service.store, [service.clock()] * (MAX_REPLAY + 1))
    return await ask.send(service, token)


async def with_many_deliveries(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    await add_deliveries(service.store, 1, *["pending"] * MAX_REPLAY)
    return await ask.send(service, token)


def with_options(**options: Any) -> Way:
    async def way(service: Service, ask: Ask) -> httpx.Response:
        return await ask.send(service, await furnish(service), **options)

    return way


def after(*others: Change, **options: Any) -> Way:
    """Return the way on which ``others``, PATCH and DELETE, come first."""

    async def way(service: Service, ask: Ask) -> httpx.Response:
        token = await furnish(service)
        for method, path, body in others:
            response = await service.request(method, path, token, json=body)
            assert response.is_success, response.text
        return await ask.send(service, token, **options)

    return way


def to_path(path: str, **options: Any) -> Way:
    """Return a way that sends the same request to another path."""

    async def way(service: Service, ask: Ask) -> httpx.Response:
        return await ask._replace(path=path).send(service, await furnish(service), **options)

    return way


async def never_ending() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def with_a_body_that_never_ends(service: Service, ask: Ask) -> httpx.Response:
    token = await furnish(service)
    return await service.request(ask.method, ask.path, token, content=never_ending())


TEXT = {"Content-Type": "text/plain"}
ENCODED = {"Content-Encoding": "gzip"}
TOO_LONG = {"name": "B" * 65_536}
OTHER_VERSION = {"If-Match": '"another"'}
TOO_MANY_VERSIONS = {"If-None-Match": '"another", ' * 200}
APPROVED: Change = ("PATCH", "/v1/store/orders/1", {"status": "approved"})
DELIVERED: Change = ("PATCH", "/v1/store/orders/1", {"status": "delivered"})
CANCELLED: Change = ("DELETE", "/v1/store/orders/1", {})
SOLD: Change = ("PATCH", "/v1/pets/1", {"status": "sold"})
REVOKED: Change = ("DELETE", "/v1/keys/2", {})
DISABLED: Change = ("PATCH", "/v1/webhooks/1", {"enabled": False})

Response: TypeAlias = tuple[int, str | None, Way]
"""A status, the code of an error, and how an operation comes to that."""

WITH_EVERY_OPERATION: list[Response] = [
    (400, "invalid_request", with_two_hosts),
    (401, "missing_api_key", without_a_key),
    (401, "invalid_api_key", with_an_invalid_key),
    (403, "network_not_allowed", from_elsewhere),
    (429, "rate_limit_exceeded", over_the_limit_of_the_address),
    (500, "internal_error", at_a_fault),
]
WITH_EVERY_SCOPE: list[Response] = [
    (403, "missing_scope", without_a_scope),
    (429, "rate_limit_exceeded", over_the_limit_of_the_key),
    (429, "api_key_banned", while_banned),
]
WITH_EVERY_BODY: list[Response] = [
    (400, "invalid_body", with_options(json=[])),
    (400, "incomplete_body", with_a_body_that_breaks_off),
    (408, "request_timeout", with_a_body_that_never_ends),
    (413, "content_too_large", with_options(json=TOO_LONG)),
    (415, "unsupported_media_type", with_options(headers=TEXT)),
    (415, "unsupported_media_type", with_options(headers=ENCODED)),
]
WITH_EVERY_QUERY: list[Response] = [
    (400, "invalid_parameter", with_options(params={"limit": 0})),
]
WITH_EVERY_ID: list[Response] = [
    (404, "not_found", where_nothing_is),
]
WITH_EVERY_POST: list[Response] = [
    (400, "invalid_parameter", with_options(headers={"Idempotency-Key": ""})),
    (409, "idempotency_key_in_use", sent_twice_at_once),
    (422, "idempotency_key_reused", with_the_key_of_another_request),
]
WITH_EVERY_VERSION_READ: list[Response] = [
    (304, None, with_a_version_known),
]
WITH_EVERY_CONDITION: list[Response] = [
    (400, "invalid_parameter", with_options(headers=TOO_MANY_VERSIONS)),
    (412, "precondition_failed", with_options(headers=OTHER_VERSION)),
]
WITH_ONE: dict[str, list[Response]] = {
    "createPet": [
        (400, "unknown_category", with_options(json={**BELLA, "categoryId": 99})),
        (503, "service_unavailable", while_the_database_is_locked),
    ],
    "getPet": [(410, "gone", after_the_sunset)],
    "updatePet": [
        (400, "unknown_category", with_options(json={"categoryId": 99})),
        (409, "illegal_transition", after(SOLD, json={"status": "pending"})),
        (409, "pet_reserved", to_path("/v1/pets/2", json={"status": "sold"})),
    ],
    "deletePet": [(409, "pet_reserved", to_path("/v1/pets/2"))],
    "createCategory": [(409, "category_name_taken", with_options(json={"name": "DOGS"}))],
    "updateCategory": [(409, "category_name_taken", with_options(json={"name": "DOGS"}))],
    "deleteCategory": [(409, "category_in_use", to_path("/v1/categories/1"))],
    "placeOrder": [
        (400, "unknown_pet", with_options(json={"petId": 99})),
        (409, "pet_not_available", with_options(json={"petId": 2})),
    ],
    "updateOrder": [
        (409, "illegal_transition", with_options(json={"status": "delivered"})),
        (409, "order_closed", after(CANCELLED, json={"shipDate": None})),
    ],
    "cancelOrder": [(409, "illegal_transition", after(APPROVED, DELIVERED))],
    "listEvents": [
        (403, "missing_scope", without_the_scope_of_a_type),
        (410, "cursor_expired", with_options(params={"cursor": Position(99, b"mark").cursor})),
        (429, "rate_limit_exceeded", over_the_limit_of_the_key),
        (429, "api_key_banned", while_banned),
    ],
    "createKey": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "response_sealed", again_with_another_token),
    ],
    "updateKey": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "last_admin_key", to_path("/v1/keys/1", json={"scopes": ["pets:read"]})),
    ],
    "revokeKey": [(409, "last_admin_key", to_path("/v1/keys/1"))],
    "rotateKey": [
        (403, "beyond_own_rights", with_fewer_rights),
        (409, "api_key_ended", after(REVOKED)),
        (409, "response_sealed", again_with_another_token),
    ],
    "createWebhook": [
        (400, "invalid_webhook_url", with_options(json={"url": "https://127.0.0.1"})),
        (400, "unknown_event_type", with_options(json={"url": URL, "types": ["pet.sold"]})),
        (409, "too_many_webhooks", with_many_webhooks),
        (409, "webhooks_not_configured", without_the_secret_file),
        (409, "response_sealed", again_with_another_token),
    ],
    "updateWebhook": [
        (400, "invalid_webhook_url", with_options(json={"url": "https://127.0.0.1"})),
        (400, "unknown_event_type", with_options(json={"types": ["pet.sold"]})),
    ],
    "rotateWebhook": [
        (409, "webhooks_not_configured", without_the_secret_file),
        (409, "response_sealed", again_with_another_token),
    ],
    "testWebhook": [(409, "webhook_disabled", after(DISABLED))],
    "replayWebhook": [
        (400, "replay_too_large", with_many_events),
        (409, "webhook_disabled", after(DISABLED)),
        (409, "deliveries_pending", with_many_deliveries),
    ],
}


def responses_of(name: str) -> list[Response]:
    """Return every response of an operation, and how to get it."""
    row = ROWS[name]
    kinds: list[tuple[bool, list[Response]]] = [
        (True, [(row.success.status, None, as_it_should)]),
        (True, WITH_EVERY_OPERATION),
        (row.scope is not None, WITH_EVERY_SCOPE),
        (row.body is not None, WITH_EVERY_BODY),
        (row.query is not None, WITH_EVERY_QUERY),
        (row.parameter is not None, WITH_EVERY_ID),
        (row.method == "POST", [(row.success.status, None, sent_again), *WITH_EVERY_POST]),
        (row.tagged and row.method == "GET", WITH_EVERY_VERSION_READ),
        (row.is_conditional, WITH_EVERY_CONDITION),
        (True, WITH_ONE.get(name, [])),
    ]
    return [response for holds, responses in kinds if holds for response in responses]


def codes_of(name: str, status: int) -> set[str | None]:
    """Return the documented codes of errors; ``None`` stands for a success."""
    described = DESCRIBED[name]["responses"][str(status)]
    content = described.get("content", {}).get("application/json", {})
    return set(content.get("examples", [None]))


@pytest.fixture
async def short_timeout_service() -> AsyncIterator[Service]:
    """A service with strict categories that waits for no body for long."""
    with folder_in_memory() as folder:
        async with running_service(
            folder / "petstore.db",
            body_timeout=0.1,
            limits_save_seconds=60,  # or its own writing could stand in the way of ``locked``
            anonymous_per_minute=2,
            strict_categories=True,
        ) as service:
            yield service


def check(schema: dict[str, Any], value: object) -> None:
    """Check ``value`` against a schema of the document."""
    jsonschema_rs.Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, validate_formats=True
    ).validate(value)


def parameters(name: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of an operation that are in ``place``, by name."""
    return {each["name"]: each for each in DESCRIBED[name]["parameters"] if each["in"] == place}


def is_name(name: str, model: type[NewPet | KeyCreate]) -> bool:
    try:
        msgspec.convert({**BELLA, "name": name}, model)
    except msgspec.ValidationError:
        return False
    return True


# The document and its standard


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    definitions.OPENAPI_31_VALIDATOR.validate(DOCUMENT)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_valid_json_schema(name: str) -> None:
    jsonschema_rs.meta.validate(SCHEMAS[name])


@pytest.mark.parametrize("kind", sorted(set(COMPONENTS) - {"securitySchemes"}))
def test_every_reference_leads_to_a_component_and_every_component_is_referred_to(kind: str) -> None:
    text = json.dumps(DOCUMENT)
    named = {part.split('"')[0] for part in text.split(f"#/components/{kind}/")[1:]}
    assert named == set(COMPONENTS[kind])


def test_the_document_is_the_same_each_time() -> None:
    assert json.dumps(document(ORIGIN, OPERATIONS)) == json.dumps(document(ORIGIN, OPERATIONS))


def test_what_operations_share_is_described_once() -> None:
    assert len(json.dumps(DOCUMENT, separators=(",", ":"))) < 230_000


# The document and interface.md


def test_every_operation_of_the_table_is_documented() -> None:
    documented = {
        (operation["operationId"], method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method, operation in operations.items()
    }
    assert documented == {(row.id, row.method, row.path) for row in OPERATIONS}


def test_the_version_is_1_0_0_and_the_base_path_v1() -> None:
    assert DOCUMENT["info"]["version"] == "1.0.0"
    assert DOCUMENT["servers"] == [{"url": f"{ORIGIN}/v1", "description": "This store."}]


def test_the_document_names_a_contact_and_the_documentation() -> None:
    assert DOCUMENT["info"]["contact"]["url"] == f"{ORIGIN}/docs/"
    assert DOCUMENT["externalDocs"]["url"] == f"{ORIGIN}/docs/"


def test_every_operation_is_secured_by_an_http_bearer_scheme() -> None:
    (name,) = DOCUMENT["components"]["securitySchemes"]
    scheme = DOCUMENT["components"]["securitySchemes"][name]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert DOCUMENT["security"] == [{name: []}]


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_operation_names_the_scope_that_it_needs(name: str) -> None:
    scope = ROWS[name].scope
    assert DESCRIBED[name]["security"] == [{"bearer": [scope] if scope else []}]


def test_only_getting_an_animal_is_deprecated() -> None:
    deprecated = {name for name, described in DESCRIBED.items() if described.get("deprecated")}
    assert deprecated == {"getPet"}
    assert "5 December 2030" in DESCRIBED["getPet"]["description"]
    assert DESCRIBED["getPet"]["x-sunset"] == "2030-12-05"


def test_a_limit_is_1_to_100_and_20_by_default() -> None:
    limit = parameters("listPets", "query")["limit"]
    assert limit["required"] is False
    assert limit["schema"] == {
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "maximum": 100,
        "default": 20,
    }


def test_the_list_is_filtered_by_a_status() -> None:
    status = parameters("listPets", "query")["status"]
    assert status["required"] is False
    assert status["schema"] == {"$ref": "#/components/schemas/PetStatus"}


def test_an_animal_is_named_in_the_path_by_an_int64() -> None:
    pet_id = parameters("getPet", "path")["petId"]
    assert pet_id["required"] is True
    assert (pet_id["schema"]["type"], pet_id["schema"]["format"]) == ("integer", "int64")


def test_parameters_and_fields_have_the_words_of_the_interface() -> None:
    query = parameters("listPets", "query")
    assert query["limit"]["description"] == "Maximum number of animals returned."
    assert query["status"]["description"] == "Filters by availability status."
    pet_id = parameters("getPet", "path")["petId"]
    assert pet_id["description"] == "Identifier of the animal to retrieve."
    for name, words in {
        "id": "Unique identifier, assigned by the service on creation.",
        "name": "The animal's name.",
        "categoryId": "Identifier of the category the animal belongs to.",
        "status": "Availability status.",
    }.items():
        assert SCHEMAS["Pet"]["properties"][name]["description"].startswith(words)


def test_adding_an_animal_takes_a_new_pet_and_returns_a_pet() -> None:
    body = DESCRIBED["createPet"]["requestBody"]
    assert body["required"] is True
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/NewPet"}
    created = DESCRIBED["createPet"]["responses"]["201"]["content"]["application/json"]
    assert created["schema"] == {"$ref": "#/components/schemas/Pet"}


def test_a_pet_has_the_fields_of_a_new_pet_and_an_id() -> None:
    assert set(SCHEMAS["NewPet"]["properties"]) == {"name", "categoryId", "status"}
    assert set(SCHEMAS["NewPet"]["required"]) == {"name", "categoryId"}
    assert set(SCHEMAS["Pet"]["properties"]) == {"id", "name", "categoryId", "status"}
    assert set(SCHEMAS["Pet"]["required"]) == {"id", "name", "categoryId"}


@pytest.mark.parametrize(
    ("schema", "field"), [("NewPet", "categoryId"), ("Pet", "categoryId"), ("Pet", "id")]
)
def test_numbers_of_animals_and_categories_are_int64(schema: str, field: str) -> None:
    described = SCHEMAS[schema]["properties"][field]
    assert (described["type"], described["format"]) == ("integer", "int64")


@pytest.mark.parametrize("schema", ["NewPet", "Pet"])
def test_a_status_is_one_of_the_enumeration_and_has_no_default(schema: str) -> None:
    status = SCHEMAS[schema]["properties"]["status"]
    assert status["$ref"] == "#/components/schemas/PetStatus"
    assert "default" not in status
    assert SCHEMAS["PetStatus"]["type"] == "string"
    assert SCHEMAS["PetStatus"]["enum"] == ["available", "pending", "sold"]


def test_pets_are_an_array_of_pets() -> None:
    assert SCHEMAS["Pets"]["type"] == "array"
    assert SCHEMAS["Pets"]["items"] == {"$ref": "#/components/schemas/Pet"}


def test_an_error_has_code_message_and_status() -> None:
    error = SCHEMAS["Error"]
    types = {name: field["type"] for name, field in error["properties"].items()}
    assert types == {"code": "string", "message": "string", "status": "integer"}
    assert set(error["required"]) == set(types)


@pytest.mark.parametrize(
    ("model", "also_refused"),
    [
        # Not even alone in a name: U+0000, and what Python alone takes for white space.
        (NewPet, {0x00, *range(0x1C, 0x20), 0x85}),
        # Controls, and what changes the direction of text.
        (
            KeyCreate,
            {
                *(*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0xA0)),
                *(0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
            },
        ),
    ],
)
def test_the_document_and_the_service_differ_on_few_names_of_one_character(
    model: type[NewPet | KeyCreate], also_refused: set[int]
) -> None:
    schema = SCHEMAS[model.__name__]["properties"]["name"]
    assert schema["pattern"] == r"\S"
    is_documented = jsonschema_rs.Draft202012Validator(schema).is_valid
    characters = [code for code in range(0x11_0000) if not 0xD800 <= code < 0xE000]
    documented = {code for code in characters if is_documented(chr(code))}
    taken = {code for code in characters if is_name(chr(code), model)}
    assert documented - taken == also_refused
    assert taken - documented <= {0xFEFF}  # white space to JavaScript


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


def test_every_integer_has_a_format_that_its_bounds_fit() -> None:
    bits = {"int32": 31, "int64": 63}
    for schema in EVERY_SCHEMA:
        if schema["type"] == "integer":
            assert schema.get("maximum", 0) < 2 ** bits[schema["format"]], schema
            assert "-9223372036854775808" not in json.dumps(schema)  # JavaScript rounds it
            assert "9223372036854775807" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        *(("Rotation", "graceSeconds"), ("SecretRotation", "graceSeconds")),
        *(("UsageWindow", "reset"), ("KeyDeprecatedUse", "keyId"), ("Event", "sequence")),
    ],
)
def test_seconds_and_timestamps_have_64_bits(schema: str, field: str) -> None:
    assert SCHEMAS[schema]["properties"][field]["format"] == "int64"


def test_every_list_has_bounds() -> None:
    for schema in EVERY_SCHEMA:
        if schema["type"] == "array":
            assert 0 <= schema["minItems"] < schema["maxItems"]


def test_no_pattern_has_what_other_languages_cannot_compile() -> None:
    patterns = [schema["pattern"] for schema in EVERY_SCHEMA if "pattern" in schema]
    assert patterns
    for pattern in patterns:
        assert not re.search(r"\\u|\\x00|\(\?[=!<]", pattern), pattern


def test_only_parameters_have_defaults_and_bodies_say_theirs_in_words() -> None:
    assert not [name for name, schema in SCHEMAS.items() if '"default"' in json.dumps(schema)]
    fields = SCHEMAS["KeyCreate"]["properties"]
    assert fields["plan"]["description"].endswith("Default: `free`.")
    assert fields["scopes"]["description"].endswith(
        "Default: `orders:read`, `orders:write`, `pets:read`, `pets:write`."
    )
    assert SCHEMAS["KeyCreate"]["required"] == ["name"]


def test_a_member_that_a_response_always_has_is_required() -> None:
    assert SCHEMAS["Inventory"]["required"] == ["available", "pending", "sold"]


@pytest.mark.parametrize("name", ["Pet", "Category", "Order", "Key", "Webhook", "Delivery"])
def test_an_id_is_read_only_and_exact_in_javascript(name: str) -> None:
    field = SCHEMAS[name]["properties"]["id"]
    assert field["readOnly"] is True
    assert "JavaScript" in field["description"]


def test_no_schema_is_named_like_a_constructor_of_another_in_go() -> None:
    constructors = {f"New{name}" for name in SCHEMAS}
    assert constructors & set(SCHEMAS) == {"NewPet"}  # the interface's own name


def test_no_tag_has_operations_of_its_own_and_deliveries_too() -> None:
    tagged = {tag for operation in DESCRIBED.values() for tag in operation["tags"]}
    delivered = {tag for kind in DOCUMENT["webhooks"].values() for tag in kind["post"]["tags"]}
    assert not tagged & delivered
    assert tagged | delivered == {tag["name"] for tag in DOCUMENT["tags"]}


@pytest.mark.parametrize("name", ["rotateKey", "rotateWebhook"])
async def test_an_optional_body_may_be_left_out_but_not_be_null(
    short_timeout_service: Service, name: str
) -> None:
    body = DESCRIBED[name]["requestBody"]
    assert body["required"] is False
    assert "`null` is refused" in body["description"]
    token, ask = await furnish(short_timeout_service), REQUESTS[name]
    for options, status in (({"content": b"null"}, 400), ({}, 200)):
        response = await ask._replace(options=options).send(short_timeout_service, token)
        assert response.status_code == status


# Headers of requests


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_headers_that_an_operation_looks_at_are_documented(name: str) -> None:
    row = ROWS[name]
    expected = {"Idempotency-Key"} if row.method == "POST" else set()
    if row.tagged if row.method == "GET" else row.parameter:
        expected |= {"If-Match", "If-None-Match"}
    documented = parameters(name, "header")
    assert set(documented) == expected
    for header in documented.values():
        assert header["required"] is False
        assert header["schema"]["type"] == "string"
        assert header["description"]


@pytest.mark.parametrize(
    "field",
    [
        *(
            "",
            "a",
            '"a"',
            '"',
            '""',
            '"a',
            'a"',
            'a"b',
            '"a"b"',
            "a b",
            '"a b"',
            "a,b",
            "\t",
            "a\n",
        ),
        *(
            '"a";',
            '"a";v',
            '"a"; v=1',
            '"a";v="b"',
            '"a";v="',
            '"a";V',
            '"a" ;v',
            '"a";v=1,',
            "a;v",
        ),
        *('"a"' + ";v=1" * 9, '"a"' + ";v=1" * 10),
        *("\x7f", "~", "ä", "\\", '"\\"', '"\\\\"', '"\\""', '"\\a"', '"a\n"', '"a"\n'),
        *("x" * 255, "x" * 256, f'"{"x" * 255}"', f'"{"x" * 256}"', '"' + '\\"' * 255 + '"'),
    ],
)
def test_the_document_and_the_service_agree_on_what_a_bare_idempotency_key_is(field: str) -> None:
    schema = parameters("createPet", "header")["Idempotency-Key"]["schema"]
    request = http_request("POST", b"/", [(b"idempotency-key", field.encode("latin-1"))])
    try:
        is_taken = bool(idempotency_key(request))
    except InvalidParameter:
        is_taken = False
    # The description says what may stand in quotes: PHP cannot compile a pattern of that.
    is_bare = not field.startswith('"')
    is_documented = jsonschema_rs.Draft202012Validator(schema).is_valid(field)
    assert is_documented == (is_taken and is_bare)


# Examples


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every body the document describes, with where it is."""
    for name, operation in DESCRIBED.items():
        if "requestBody" in operation:
            yield f"{name}-body", operation["requestBody"]["content"]["application/json"]
        for status, response in operation["responses"].items():
            if "content" in response:
                yield f"{name}-{status}", response["content"]["application/json"]


@pytest.mark.parametrize(("place", "content"), list(contents()))
def test_every_body_has_examples_that_fit_its_schema(place: str, content: dict[str, Any]) -> None:
    examples = [example["value"] for example in content.get("examples", {}).values()]
    if "example" in content:
        examples.append(content["example"])
    assert examples, place
    for example in examples:
        check(content["schema"], example)


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_examples_of_headers_and_parameters_fit_their_schemas(name: str) -> None:
    described = DESCRIBED[name]
    for response in described["responses"].values():
        for header in response["headers"].values():
            check(header["schema"], header["example"])
    for parameter in described["parameters"]:
        if "example" in parameter:
            check(parameter["schema"], parameter["example"])


# Webhooks


def test_every_type_of_events_is_documented() -> None:
    assert list(DOCUMENT["webhooks"]) == [*EVENT_TYPES]


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_type_has_an_example_that_fits_its_schema(kind: str) -> None:
    delivery = DOCUMENT["webhooks"][kind]["post"]
    content = delivery["requestBody"]["content"]["application/json"]
    check(content["schema"], content["example"])
    assert content["example"]["type"] == kind


@pytest.mark.parametrize("kind", [kind for kind in EVENT_TYPES if kind.startswith("pet.")])
def test_the_body_of_a_delivery_is_a_named_schema_with_the_whole_resource(kind: str) -> None:
    """Generated clients name a class after it, and cannot take what stands beside a reference."""
    content = DOCUMENT["webhooks"][kind]["post"]["requestBody"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/PetEvent"}
    data = SCHEMAS["PetEvent"]["properties"]["data"]
    assert data == {"$ref": "#/components/schemas/PetSnapshot"}
    assert SCHEMAS["PetSnapshot"]["required"] == SCHEMAS["Pet"]["required"]
    # A delivery is a request, in which nothing that is read-only may stand.
    assert "readOnly" not in json.dumps(SCHEMAS["PetSnapshot"])


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_a_delivery_is_signed_and_takes_no_key(kind: str) -> None:
    delivery = RESOLVED["webhooks"][kind]["post"]
    assert delivery["security"] == []
    assert [(each["name"], each["in"], each["required"]) for each in delivery["parameters"]] == [
        ("webhook-id", "header", True),
        ("webhook-timestamp", "header", True),
        ("webhook-signature", "header", True),
    ]
    for parameter in delivery["parameters"]:
        check(parameter["schema"], parameter["example"])


# The document and the service


@pytest.mark.parametrize(
    ("name", "status", "code", "way"),
    [(name, *response) for name in DESCRIBED for response in responses_of(name)],
)
async def test_every_response_of_an_operation_is_documented(
    short_timeout_service: Service, name: str, status: int, code: str | None, way: Way
) -> None:
    response = await way(short_timeout_service, REQUESTS[name])
    assert response.status_code == status, response.text
    described = DESCRIBED[name]["responses"][str(status)]
    if "content" in described:
        assert response.headers["content-type"] in described["content"]
        check(described["content"]["application/json"]["schema"], response.json())
    else:
        assert response.content == b""
        assert "content-type" not in response.headers
    if code is not None:
        assert response.json()["code"] == code
        if code not in SEVERAL_MESSAGES:
            assert masked(response.json()["message"]) == masked(example_of(name, code))
    assert code in codes_of(name, status)
    check_headers(described["headers"], response, OPTIONAL.get(code))


# Of what is forbidden only a missing scope is a matter of the token; a body has either a media type
# or an encoding that is not taken.
OPTIONAL: dict[str | None, set[str]] = {
    "beyond_own_rights": {"www-authenticate"},
    "network_not_allowed": {"www-authenticate"},
    "unsupported_media_type": {"accept-encoding", "accept-patch"},
}


def check_headers(
    described: dict[str, Any], response: httpx.Response, optional: set[str] | None = None
) -> None:
    """Check that ``response`` has the described headers, except optional ones, and no others."""
    documented = {name.lower(): header["schema"] for name, header in described.items()}
    for name, value in response.headers.items():
        if name not in HTTPS_OWN_HEADERS:
            is_number = documented[name]["type"] == "integer"
            check(documented[name], int(value) if is_number else value)
    missing = set(documented) - set(response.headers)
    if response.headers["X-RateLimit-Limit"] == str(UNLIMITED):
        missing -= {"ratelimit", "ratelimit-policy"}
    assert missing <= {"idempotent-replayed", *(optional or ())}
    required = {name.lower() for name, header in described.items() if header["required"]}
    assert not missing & required


# The message depends on what the client did: the table has one, which other tests get.
SEVERAL_MESSAGES = {
    "beyond_own_rights",
    "incomplete_body",
    "invalid_body",
    "invalid_parameter",
    "rate_limit_exceeded",
    "unsupported_media_type",
}


def masked(message: str) -> str:
    """Return ``message`` without the numbers in it, and the address."""
    return re.sub(r"[0-9]+(?:\.[0-9]+)*", "0", message)


def example_of(name: str, code: str) -> str:
    """Return the documented message of an error."""
    (message,) = (
        response["content"]["application/json"]["examples"][code]["value"]["message"]
        for response in DESCRIBED[name]["responses"].values()
        if code in response.get("content", {}).get("application/json", {}).get("examples", {})
    )
    return str(message)


@pytest.mark.parametrize(
    ("name", "code", "way"),
    [
        ("listPets", "rate_limit_exceeded", over_the_limit_of_the_key),
        ("listPets", "invalid_parameter", with_options(params={"limit": 0})),
        ("createPet", "invalid_parameter", with_options(headers={"Idempotency-Key": ""})),
        ("getPet", "invalid_parameter", with_options(headers=TOO_MANY_VERSIONS)),
        *((name, "invalid_body", with_options(json={})) for name in ("createPet", "placeOrder")),
        ("updatePet", "invalid_body", with_options(json=[])),
        ("createPet", "unsupported_media_type", with_options(headers=TEXT)),
        ("updateKey", "beyond_own_rights", with_fewer_rights),
    ],
)
async def test_the_documented_message_is_one_of_several(
    short_timeout_service: Service, name: str, code: str, way: Way
) -> None:
    response = await way(short_timeout_service, REQUESTS[name])
    assert response.json()["code"] == code
    assert masked(response.json()["message"]) == masked(example_of(name, code))


def test_a_429_shows_that_no_requests_remain() -> None:
    headers = DESCRIBED["listPets"]["responses"]["429"]["headers"]
    assert headers["X-RateLimit-Remaining"]["example"] == 0
    assert '"minute";r=0' in headers["RateLimit"]["example"]


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_errors_of_an_operation_can_be_had_without_the_document(name: str) -> None:
    errors = {(error.status, error.code): error.message for error in possible_errors(ROWS[name])}
    assert set(errors) == {
        (int(status), code)
        for status in DESCRIBED[name]["responses"]
        for code in codes_of(name, int(status))
        if code is not None
    }
    assert all(message == example_of(name, code) for (_, code), message in errors.items())


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("createCategory", with_options(json={"name": "DOGS"}, headers={"Idempotency-Key": "a"})),
        ("placeOrder", with_options(json={"petId": 2}, headers={"Idempotency-Key": "a"})),
        ("rotateKey", after(REVOKED, headers={"Idempotency-Key": "a"})),
    ],
)
async def test_a_replayed_conflict_is_documented(
    short_timeout_service: Service, name: str, way: Way
) -> None:
    ask = REQUESTS[name]
    first = await way(short_timeout_service, ask)
    token = first.request.headers["Authorization"].removeprefix("Bearer ")
    content = {"content": first.request.content}
    again = await ask._replace(options=content).send(
        short_timeout_service, token, headers={"Idempotency-Key": "a"}
    )
    assert again.status_code == 409
    assert again.headers["Idempotent-Replayed"] == "true"
    check_headers(DESCRIBED[name]["responses"]["409"]["headers"], again)


@pytest.mark.parametrize("name", DESCRIBED)
def test_only_actual_responses_of_an_operation_are_documented(name: str) -> None:
    given = {(status, code) for status, code, _ in responses_of(name)}
    # That the database fails wherever it is needed is seen in test_database_failures.py.
    given.add((503, "service_unavailable"))
    documented = {
        (int(status), code)
        for status in DESCRIBED[name]["responses"]
        for code in codes_of(name, int(status))
    }
    assert documented == given


@pytest.mark.parametrize("name", DESCRIBED)
def test_links_lead_to_operations_and_their_parameters(name: str) -> None:
    for response in DESCRIBED[name]["responses"].values():
        for link in response.get("links", {}).values():
            assert set(link["parameters"]) == set(parameters(link["operationId"], "path"))


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_change_may_be_a_merge_patch_and_nothing_else(name: str) -> None:
    body = DESCRIBED[name].get("requestBody", {"content": {}})["content"]
    merge_patch = {"application/merge-patch+json"} if ROWS[name].method == "PATCH" else set()
    assert set(body) == ({"application/json"} if ROWS[name].body else set()) | merge_patch


async def test_the_document_takes_no_key_and_costs_nothing(service: Service) -> None:
    got = await service.client.get("/v1/openapi.json")
    assert got.status_code == 200
    assert got.headers["content-type"] == "application/json"
    assert got.json() == DOCUMENT
    assert got.headers["X-RateLimit-Remaining"] == got.headers["X-RateLimit-Limit"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_document_does_not_tell_whether_a_key_is_valid(
    service: Service, method: str
) -> None:
    token = (await service.issue("free")).token
    told = []
    for sent in (token, new_token("production"), None):
        got = await service.request(method, "/v1/openapi.json", sent)
        headers = got.headers.multi_items()
        told.append([item for item in headers if item[0] != "x-request-id"])
    assert told[0] == told[1] == told[2]
    assert ("x-ratelimit-limit", "300") in told[0]
    usage = await service.request("GET", "/v1/usage", token)
    assert usage.json()["minute"]["remaining"] == 60


async def test_the_head_of_the_document_comes_without_its_body(service: Service) -> None:
    head = await service.client.head("/v1/openapi.json")
    assert head.status_code == 200
    assert head.content == b""
    assert int(head.headers["content-length"]) > 0
