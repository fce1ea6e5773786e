"""List, add, get, change and delete categories."""

import asyncio
import re
from typing import Any

import pytest

from support.error_body import assert_error
from support.sending import TEXT, Send, sender
from support.service import SERVICE_URL, Service, running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

DOGS = {"id": 1, "name": "Dogs", "description": "Great and small."}
OPERATIONS = [
    ("GET", "/categories"),
    ("POST", "/categories"),
    ("GET", "/categories/1"),
    ("PATCH", "/categories/1"),
    ("DELETE", "/categories/1"),
]


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


async def add(send: Send, *names: str) -> None:
    """Add categories of these names."""
    for name in names:
        created = await send("POST", "/categories", json={"name": name})
        assert created.status_code == 201


async def add_dogs(send: Send) -> None:
    """Add ``DOGS``, as the first category."""
    assert (await send("POST", "/categories", json=DOGS)).json() == DOGS


async def names(send: Send) -> list[str]:
    """Return the names of all categories."""
    return [category["name"] for category in (await send("GET", "/categories?limit=100")).json()]


# Keys and the order of checks


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_key_needs_a_scope_of_animals(service: Service, method: str, path: str) -> None:
    assert_error(await service.request(method, f"/v1{path}"), 401, "missing_api_key")
    missing = {"orders:read", "orders:write", "keys:admin"}
    missing |= {"pets:write"} if method == "GET" else {"pets:read"}
    key = await service.issue(scopes=frozenset(missing))
    response = await service.request(method, f"/v1{path}", key.token, headers=TEXT, content=b"x")
    assert_error(response, 403, "missing_scope")


async def test_a_key_needs_no_other_scope(service: Service) -> None:
    writer = await service.issue(scopes=frozenset({"pets:write"}))
    reader = await service.issue(scopes=frozenset({"pets:read"}))
    for method, path, body, token, status in [
        ("POST", "/categories", DOGS, writer.token, 201),
        ("GET", "/categories", None, reader.token, 200),
        ("GET", "/categories/1", None, reader.token, 200),
        ("PATCH", "/categories/1", {}, writer.token, 200),
        ("DELETE", "/categories/1", None, writer.token, 204),
    ]:
        response = await service.request(method, f"/v1{path}", token, json=body)
        assert response.status_code == status


@pytest.mark.parametrize(("method", "path"), [("PUT", "/categories/1"), ("DELETE", "/categories")])
async def test_other_methods_are_not_there(send: Send, method: str, path: str) -> None:
    response = await send(method, path)
    assert_error(response, 405, "method_not_allowed")
    allowed = "GET, HEAD, POST" if path == "/categories" else "DELETE, GET, HEAD, PATCH"
    assert response.headers["Allow"] == allowed


# createCategory and updateCategory: values


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", value) for value in (None, "", " \t\u3000\n", "x" * 101, "Do\0gs", 5, ["Dogs"])),
        *(("description", value) for value in ("x" * 1001, "\0", 5, False, ["All."])),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_an_invalid_value_is_refused_naming_the_field(
    send: Send, field: str, value: Any
) -> None:
    await add_dogs(send)
    body = {"name": "Cats", field: value}
    for method, path in (("POST", "/categories"), ("PATCH", "/categories/1")):
        message = assert_error(await send(method, path, json=body), 400, "invalid_body")
        assert message.startswith(f"{field}: expected a string of ")
    assert (await send("GET", "/categories")).json() == [DOGS]


@pytest.mark.parametrize("body", [{}, {"description": "All."}, {"Name": "Dogs"}])
async def test_a_new_category_needs_a_name(send: Send, body: dict[str, str]) -> None:
    response = await send("POST", "/categories", json=body)
    assert assert_error(response, 400, "invalid_body").startswith("name: required; expected ")


async def test_a_new_category_has_no_description_of_null(send: Send) -> None:
    response = await send("POST", "/categories", json={"name": "Dogs", "description": None})
    assert assert_error(response, 400, "invalid_body").startswith("description: expected ")


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"name":"\\udc00"}', b'{"a":"\xff"}'])
async def test_only_a_json_object_is_accepted(send: Send, body: bytes) -> None:
    await add_dogs(send)
    for method, path in (("POST", "/categories"), ("PATCH", "/categories/1")):
        assert_error(await send(method, path, content=body), 400, "invalid_body")


# Added and read


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "\N{DOG FACE}" * 100, "description": "\N{DOG FACE}" * 1000},
        {"name": " Dogs\n", "description": ""},
        {"name": "Robert'); DROP TABLE categories; --", "description": " \n"},
    ],
    ids=lambda body: repr(body)[:30],
)
async def test_a_category_is_returned_as_it_was_given(send: Send, body: dict[str, str]) -> None:
    created = await send("POST", "/categories", json=body)
    assert created.status_code == 201
    assert created.json() == {"id": 1, **body}
    assert created.headers.get_list("Location") == [f"{SERVICE_URL}/v1/categories/1"]
    shown = await send("GET", "/categories/1")
    assert (shown.status_code, shown.content) == (200, created.content)
    assert (await send("GET", "/categories")).json() == [created.json()]
    head = await send("HEAD", "/categories/1")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("category_id", ["2", "0", "-1", "x", "1.0", "9223372036854775808"])
async def test_a_category_that_is_not_there_is_not_found(
    send: Send, method: str, category_id: str
) -> None:
    await add_dogs(send)
    response = await send(method, f"/categories/{category_id}", json={"name": "Cats"})
    message = assert_error(response, 404, "not_found")
    assert category_id != "2" or message == "there is no category 2"


async def test_a_category_outlives_the_service(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue()
        await service.request("POST", "/v1/categories", key.token, json=DOGS)
    async with running_service(address) as service:
        assert (await service.request("GET", "/v1/categories", key.token)).json() == [DOGS]


# Listed


@pytest.mark.parametrize("limit", [1, 2, 6, 7, 8, 100])
async def test_pages_walk_every_category_once(send: Send, limit: int) -> None:
    await add(send, *"gfedcba")
    sizes, seen = [], []
    path = f"/categories?limit={limit}"
    while path:
        response = await send("GET", path)
        page = response.json()
        sizes.append(len(page))
        seen += [category["id"] for category in page]
        path = response.links.get("next", {}).get("url", "").removeprefix(f"{SERVICE_URL}/v1")
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert all(size == limit for size in sizes[:-1])
    assert sizes[-1] in range(1, limit + 1)


async def test_a_page_has_20_categories_by_default(send: Send) -> None:
    await add(send, *map(str, range(21)))
    response = await send("GET", "/categories?unknown=x")
    assert [category["id"] for category in response.json()] == list(range(1, 21))
    target = rf"<{SERVICE_URL}/v1/categories\?cursor=[\w-]{{11}}>"
    assert re.fullmatch(rf'{target}; rel="next"', response.headers["Link"])


async def test_a_list_of_nothing_is_an_empty_array(send: Send) -> None:
    response = await send("GET", "/categories")
    assert (response.status_code, response.json()) == (200, [])
    assert "Link" not in response.headers


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=1&limit=2", "cursor=", "cursor=1"]
)
async def test_an_invalid_parameter_is_refused(send: Send, query: str) -> None:
    response = await send("GET", f"/categories?{query}")
    assert query.partition("=")[0] in assert_error(response, 400, "invalid_parameter")


# Names that are taken


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Dogs", "Dogs"),
        ("Dogs", "dOGS"),
        ("Großtiere", "GROSSTIERE"),
        ("GROẞTIERE", "grosstiere"),
        ("Vögel", "VO\u0308GEL"),
        ("VO\u0308GEL", "vögel"),
        ("İguanalar", "i\u0307guanalar"),
        ("I\u0307guanalar", "İGUANALAR"),
        ("ΨΑΡΙΑΣ", "ψαριας"),
    ],
)
async def test_a_name_is_taken_whatever_its_case_and_composition(
    send: Send, name: str, other: str
) -> None:
    await add(send, name, "Cats")
    taken = f"name: category 1 already has the name {name!r}"
    for method, path in (("POST", "/categories"), ("PATCH", "/categories/2")):
        response = await send(method, path, json={"name": other, "description": "All."})
        assert assert_error(response, 409, "category_name_taken") == taken
    assert await names(send) == [name, "Cats"]
    assert (await send("GET", "/categories/2")).json() == {"id": 2, "name": "Cats"}


@pytest.mark.parametrize(
    ("name", "other"),
    [("Vögel", "Vogel"), ("İguanalar", "Iguanalar"), ("Dogs", "Dogs "), ("Groß", "Gros")],
)
async def test_a_name_that_differs_otherwise_is_free(send: Send, name: str, other: str) -> None:
    await add(send, name, other)
    assert await names(send) == [name, other]


async def test_if_many_clients_want_a_name_one_gets_it(send: Send) -> None:
    wanted = ["dogs", "Dogs", "DOGS", "dogS", "doGs"]
    responses = await asyncio.gather(
        *(send("POST", "/categories", json={"name": name}) for name in wanted)
    )
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409, 409]
    assert len(await names(send)) == 1


# Changed


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, DOGS),
        ({"id": 9, "owner": None}, DOGS),
        ({"name": "Cats"}, DOGS | {"name": "Cats"}),
        ({"name": "Dogs"}, DOGS),
        ({"name": "dOGS"}, DOGS | {"name": "dOGS"}),
        ({"description": ""}, DOGS | {"description": ""}),
        ({"description": None}, {"id": 1, "name": "Dogs"}),
        (
            {"name": "Cats", "description": "x" * 1000},
            {"id": 1, "name": "Cats", "description": "x" * 1000},
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_only_what_is_named_changes(
    send: Send, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    await add_dogs(send)
    await add(send, "Birds")
    response = await send("PATCH", "/categories/1", json=body)
    assert (response.status_code, response.json()) == (200, expected)
    assert (await send("GET", "/categories/1")).json() == expected
    birds = {"id": 2, "name": "Birds"}
    assert (await send("GET", "/categories")).json() == [expected, birds]


async def test_a_name_that_was_given_up_is_free(send: Send) -> None:
    await add(send, "Dogs")
    await send("PATCH", "/categories/1", json={"name": "Hounds"})
    await add(send, "DOGS")
    response = await send("PATCH", "/categories/1", json={"name": "dogs"})
    assert_error(response, 409, "category_name_taken")


# Deleted


async def test_a_deleted_category_is_gone_and_its_name_free(send: Send) -> None:
    await add_dogs(send)
    response = await send("DELETE", "/categories/1")
    assert (response.status_code, response.content) == (204, b"")
    for method in ("GET", "PATCH", "DELETE"):
        response = await send(method, "/categories/1", json={})
        assert_error(response, 404, "not_found")
    created = await send("POST", "/categories", json={"name": "DOGS"})
    assert created.headers["Location"] == f"{SERVICE_URL}/v1/categories/2"


async def test_a_category_in_use_stays(send: Send) -> None:
    await add(send, "Dogs", "Cats")
    for _ in range(2):
        await send("POST", "/pets", json={"name": "Bella", "categoryId": 1})
    message = assert_error(await send("DELETE", "/categories/1"), 409, "category_in_use")
    assert message == "pet 1, and perhaps others, belong to category 1"
    assert await names(send) == ["Dogs", "Cats"]
    assert (await send("DELETE", "/categories/2")).status_code == 204


async def test_a_category_is_no_longer_used_once_its_animals_are_elsewhere(send: Send) -> None:
    await add(send, "Dogs", "Cats")
    for _ in range(2):
        await send("POST", "/pets", json={"name": "Bella", "categoryId": 1})
    await send("PATCH", "/pets/1", json={"categoryId": 2})
    assert_error(await send("DELETE", "/categories/1"), 409, "category_in_use")
    await send("DELETE", "/pets/2")
    assert (await send("DELETE", "/categories/1")).status_code == 204
