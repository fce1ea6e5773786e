"""The OpenAPI document against its own standard, interface.md, and what the service answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw
import httpx
import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi import definitions

from petstore.api.openapi import document
from petstore.api.table import BASE, OPERATIONS
from petstore.domain.pets import NewPet
from support.service import Service, running_service
from support.stores import locked

pytestmark = pytest.mark.anyio

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(BASE, OPERATIONS)))
DESCRIBED: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation
    for path in DOCUMENT["paths"].values()
    for operation in path.values()
}
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
HTTPS_OWN_HEADERS = {"content-type", "content-length", "x-content-type-options", "connection"}
BELLA = {"name": "Bella", "categoryId": 1}


class Ask(NamedTuple):
    """A request that suits an operation."""

    method: str
    path: str
    options: dict[str, Any]

    async def send(
        self, service: Service, token: str | None = None, **options: Any
    ) -> httpx.Response:
        return await service.request(self.method, self.path, token, **{**self.options, **options})


REQUESTS = {
    "listPets": Ask("GET", "/v1/pets", {"params": {"limit": 1}}),
    "createPet": Ask("POST", "/v1/pets", {"json": BELLA}),
    "getPet": Ask("GET", "/v1/pets/1", {}),
    "getUsage": Ask("GET", "/v1/usage", {}),
}


# Ways to the answers of an operation


Way: TypeAlias = Callable[[Service, Ask], Awaitable[httpx.Response]]


async def as_it_should(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue()).token
    for _ in range(2):
        await service.request("POST", "/v1/pets", token, json=BELLA)
    return await ask.send(service, token)


async def without_a_key(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service)


async def with_an_invalid_key(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service, "not-a-key")


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
    with apsw.Connection(str(service.settings.sqlite_path)) as connection:
        connection.execute("DROP TABLE rate_limits")
    return await ask.send(service, (await service.issue()).token)


async def after_the_sunset(service: Service, ask: Ask) -> httpx.Response:
    service.clock.advance(5 * 365 * 86400)
    return await as_it_should(service, ask)


async def for_an_animal_that_is_not_there(service: Service, ask: Ask) -> httpx.Response:
    return await ask.send(service, (await service.issue()).token)


async def while_the_database_is_locked(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue()).token
    with locked(service.settings.sqlite_path):
        return await ask.send(service, token)


def with_options(**options: Any) -> Way:
    async def way(service: Service, ask: Ask) -> httpx.Response:
        return await ask.send(service, (await service.issue()).token, **options)

    return way


async def never_ending() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def with_a_body_that_never_ends(service: Service, ask: Ask) -> httpx.Response:
    token = (await service.issue()).token
    return await service.request(ask.method, ask.path, token, content=never_ending())


TEXT = {"Content-Type": "text/plain"}
TOO_LONG = {**BELLA, "name": "B" * 65_536}
WITH_EVERY_OPERATION: list[tuple[int | None, Way]] = [
    (None, as_it_should),
    (400, with_two_hosts),
    (401, without_a_key),
    (401, with_an_invalid_key),
    (429, over_the_limit_of_the_address),
    (500, at_a_fault),
]
WITH_EVERY_SCOPE: list[tuple[int, Way]] = [
    (403, without_a_scope),
    (429, over_the_limit_of_the_key),
    (429, while_banned),
]
WITH_ONE: list[tuple[str, int, Way]] = [
    ("listPets", 400, with_options(params={"limit": 0})),
    ("createPet", 400, with_options(json={"name": "Bella"})),
    ("createPet", 408, with_a_body_that_never_ends),
    ("createPet", 413, with_options(json=TOO_LONG)),
    ("createPet", 415, with_options(headers=TEXT)),
    ("createPet", 503, while_the_database_is_locked),
    ("getPet", 404, for_an_animal_that_is_not_there),
    ("getPet", 410, after_the_sunset),
]


def answers() -> Iterator[tuple[str, int, Way]]:
    """Tell of every operation what it can answer, and how it comes to that."""
    for operation in OPERATIONS:
        for status, way in WITH_EVERY_OPERATION:
            yield operation.id, status or operation.success.status, way
        if operation.scope is not None:
            for status, way in WITH_EVERY_SCOPE:
                yield operation.id, status, way
    yield from WITH_ONE


@pytest.fixture
async def hasty(database: Path) -> AsyncIterator[Service]:
    """A service that waits for nothing longer than a tenth of a second."""
    async with running_service(database, body_seconds=0.1, database_seconds=0.5) as service:
        yield service


def check(schema: dict[str, Any], value: object) -> None:
    """Check ``value`` against a schema of the document."""
    jsonschema_rs.Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, validate_formats=True
    ).validate(value)


def is_name(name: str) -> bool:
    try:
        msgspec.convert({**BELLA, "name": name}, NewPet)
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


def test_every_reference_leads_to_a_schema_and_every_schema_is_referred_to() -> None:
    text = json.dumps(DOCUMENT)
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named == set(SCHEMAS)


def test_the_document_is_the_same_each_time() -> None:
    assert json.dumps(document(BASE, OPERATIONS)) == json.dumps(document(BASE, OPERATIONS))


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
    assert DOCUMENT["servers"] == [{"url": "/v1"}]


def test_every_operation_is_secured_by_an_http_bearer_scheme() -> None:
    (name,) = DOCUMENT["components"]["securitySchemes"]
    scheme = DOCUMENT["components"]["securitySchemes"][name]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert DOCUMENT["security"] == [{name: []}]
    assert not any("security" in operation for operation in DESCRIBED.values())


def test_only_getting_an_animal_is_deprecated() -> None:
    deprecated = {name for name, described in DESCRIBED.items() if described.get("deprecated")}
    assert deprecated == {"getPet"}
    assert "5 December 2030" in DESCRIBED["getPet"]["description"]
    assert DESCRIBED["getPet"]["x-sunset"] == "2030-12-05"


def test_a_limit_is_1_to_100_and_20_by_default() -> None:
    (limit,) = (each for each in DESCRIBED["listPets"]["parameters"] if each["name"] == "limit")
    assert limit["in"] == "query"
    assert limit["required"] is False
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}


def test_the_list_is_filtered_by_a_status() -> None:
    (status,) = (each for each in DESCRIBED["listPets"]["parameters"] if each["name"] == "status")
    assert status["required"] is False
    assert status["schema"] == {"$ref": "#/components/schemas/PetStatus"}


def test_an_animal_is_named_in_the_path_by_an_int64() -> None:
    (pet_id,) = DESCRIBED["getPet"]["parameters"]
    assert (pet_id["name"], pet_id["in"], pet_id["required"]) == ("petId", "path", True)
    assert (pet_id["schema"]["type"], pet_id["schema"]["format"]) == ("integer", "int64")


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


@pytest.mark.parametrize("start", range(0, 0x11_0000, 0x1_1000))
def test_the_document_and_the_service_agree_on_every_name_of_one_character(start: int) -> None:
    is_documented = jsonschema_rs.Draft202012Validator(SCHEMAS["NewPet"]["properties"]["name"])
    for code in range(start, start + 0x1_1000):
        name = chr(code)
        if not 0xD800 <= code < 0xE000:
            assert is_documented.is_valid(name) == is_name(name), hex(code)


# Examples


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every body the document describes, with where it is."""
    for name, operation in DESCRIBED.items():
        if "requestBody" in operation:
            yield f"{name}-body", operation["requestBody"]["content"]["application/json"]
        for status, response in operation["responses"].items():
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


# The document and the service


@pytest.mark.parametrize(("operation", "status", "way"), list(answers()))
async def test_what_an_operation_answers_is_documented(
    hasty: Service, operation: str, status: int, way: Way
) -> None:
    answer = await way(hasty, REQUESTS[operation])
    assert answer.status_code == status, answer.text
    described = DESCRIBED[operation]["responses"][str(status)]
    assert answer.headers["content-type"] in described["content"]
    check(described["content"]["application/json"]["schema"], answer.json())
    documented = {name.lower(): header["schema"] for name, header in described["headers"].items()}
    for name, value in answer.headers.items():
        if name not in HTTPS_OWN_HEADERS:
            is_number = documented[name]["type"] == "integer"
            check(documented[name], int(value) if is_number else value)
    assert set(documented) <= set(answer.headers)


@pytest.mark.parametrize("operation", DESCRIBED)
def test_no_status_is_documented_that_an_operation_never_answers(operation: str) -> None:
    given = {str(status) for name, status, _ in answers() if name == operation}
    # That the database fails wherever it is needed is seen in test_database_failures.py.
    assert set(DESCRIBED[operation]["responses"]) == given | {"503"}


async def test_the_document_takes_no_key_and_costs_nothing(service: Service) -> None:
    got = await service.client.get("/v1/openapi.json")
    assert got.status_code == 200
    assert got.headers["content-type"] == "application/json"
    assert got.json() == DOCUMENT
    assert got.headers["X-RateLimit-Remaining"] == got.headers["X-RateLimit-Limit"]


async def test_the_document_costs_a_key_nothing_either(service: Service) -> None:
    token = (await service.issue("free")).token
    for _ in range(3):
        got = await service.request("GET", "/v1/openapi.json", token)
        assert got.headers["X-RateLimit-Limit"] == "60"
        assert got.headers["X-RateLimit-Remaining"] == "60"


async def test_the_head_of_the_document_comes_without_its_body(service: Service) -> None:
    head = await service.client.head("/v1/openapi.json")
    assert head.status_code == 200
    assert head.content == b""
    assert int(head.headers["content-length"]) > 0
