"""List, add, get, change and delete categories.

Which names are valid and which are the same is tested in ``test_model.py``.
"""

import asyncio
import re

import pytest

from support.cases import case
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

DOGS = {"id": 1, "name": "Dogs", "description": "Great and small."}


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


# What is refused


async def test_an_unknown_category_is_not_found(send: Send) -> None:
    await add_dogs(send)
    for method in ("GET", "PATCH", "DELETE"):
        for category_id in ("2", "x", "9223372036854775808"):
            with case(method, category_id):
                response = await send(method, f"/categories/{category_id}", json={"name": "Cats"})
                message = assert_error(response, 404, "not_found")
                assert category_id != "2" or message == "there is no category 2"


async def test_an_invalid_parameter_is_refused(send: Send) -> None:
    for query in ("limit=101", "limit=1&limit=2", "cursor=1"):
        with case(query):
            response = await send("GET", f"/categories?{query}")
            assert query.partition("=")[0] in assert_error(response, 400, "invalid_parameter")


@pytest.mark.each_database
async def test_a_name_conflicts_whatever_its_case_and_normalization(send: Send) -> None:
    taken = ["Dogs", "Großtiere", "VO\u0308GEL", "İguanalar", "ΨΑΡΙΑΣ"]
    free = ["Vogel", "Iguanalar", "Dogs ", "Großtier"]
    await add(send, "Cats", *taken, *free)
    others = ["dOGS", "GROSSTIERE", "vögel", "i\u0307guanalar", "ψαριας"]
    for category_id, (name, other) in enumerate(zip(taken, others, strict=True), 2):
        for method, path in (("POST", "/categories"), ("PATCH", "/categories/1")):
            with case(method, other):
                response = await send(method, path, json={"name": other, "description": "All."})
                message = assert_error(response, 409, "category_name_taken")
                assert message == f"name: category {category_id} already has the name {name!r}"
    assert await names(send) == ["Cats", *taken, *free]


@pytest.mark.each_database
async def test_if_many_clients_request_a_name_only_one_succeeds(send: Send) -> None:
    wanted = ["dogs", "Dogs", "DOGS", "dogS", "doGs"]
    responses = await asyncio.gather(
        *(send("POST", "/categories", json={"name": name}) for name in wanted)
    )
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409, 409]
    assert len(await names(send)) == 1


# What is done


@pytest.mark.each_database
async def test_a_category_is_returned_as_it_was_given(send: Send) -> None:
    for number, body in enumerate(
        (
            {"name": "x"},
            {"name": "\N{DOG FACE}" * 100, "description": "\N{DOG FACE}" * 1000},
            {"name": " Dogs\n", "description": ""},
            {"name": "Robert'); DROP TABLE categories; --", "description": " \n"},
        ),
        1,
    ):
        with case(body):
            created = await send("POST", "/categories", json=body)
            assert created.status_code == 201
            assert created.json() == {"id": number, **body}
            url = f"{SERVICE_URL}/v1/categories/{number}"
            assert created.headers.get_list("Location") == [url]
            shown = await send("GET", f"/categories/{number}")
            assert (shown.status_code, shown.content) == (200, created.content)
            assert (await send("GET", "/categories")).json()[-1] == created.json()


async def test_a_page_has_20_categories_by_default(send: Send) -> None:
    empty = await send("GET", "/categories")
    assert (empty.status_code, empty.json()) == (200, [])
    assert "Link" not in empty.headers
    await add(send, *map(str, range(21)))
    response = await send("GET", "/categories?unknown=x")
    assert [category["id"] for category in response.json()] == list(range(1, 21))
    target = rf"<{SERVICE_URL}/v1/categories\?cursor=[\w-]{{11}}>"
    assert re.fullmatch(rf'{target}; rel="next"', response.headers["Link"])


async def test_only_the_named_fields_change(send: Send) -> None:
    await add_dogs(send)
    await add(send, "Birds")
    expected = DOGS
    for body, changed in (
        ({}, {}),
        ({"id": 9, "owner": None}, {}),
        ({"name": "dOGS"}, {"name": "dOGS"}),
        ({"description": ""}, {"description": ""}),
        ({"name": "Cats", "description": "All."}, {"name": "Cats", "description": "All."}),
    ):
        with case(body):
            expected = expected | changed
            response = await send("PATCH", "/categories/1", json=body)
            assert (response.status_code, response.json()) == (200, expected)
            assert (await send("GET", "/categories/1")).json() == expected
    response = await send("PATCH", "/categories/1", json={"description": None})
    assert response.json() == {"id": 1, "name": "Cats"}
    birds = {"id": 2, "name": "Birds"}
    assert (await send("GET", "/categories")).json() == [response.json(), birds]


@pytest.mark.each_database
async def test_a_category_can_be_deleted_once_it_has_no_pets(send: Send) -> None:
    await add(send, "Dogs", "Cats")
    for _ in range(2):
        await send("POST", "/pets", json={"name": "Bella", "categoryId": 1})
    message = assert_error(await send("DELETE", "/categories/1"), 409, "category_in_use")
    assert message == "category 1 is not empty (for example, pet 1)"
    await send("PATCH", "/pets/1", json={"categoryId": 2})
    assert_error(await send("DELETE", "/categories/1"), 409, "category_in_use")
    await send("DELETE", "/pets/2")
    assert (await send("DELETE", "/categories/1")).status_code == 204
    assert await names(send) == ["Cats"]


# By number and by name


@pytest.mark.each_database
async def test_categories_are_listed_by_number_and_by_beginning_of_name(send: Send) -> None:
    await add(send, "dogs", "Cats", "Dog food", "DOGMA", "Élans", "Do")

    async def listed(query: str) -> list[str]:
        return [each["name"] for each in (await send("GET", f"/categories?{query}")).json()]

    assert await listed("id=2&id=1&id=99&id=-1") == ["dogs", "Cats"]
    assert await listed("name=dog") == ["Dog food", "DOGMA", "dogs"]
    assert await listed("name=E%CC%81LANS") == ["Élans"]
    assert await listed("name=ogs") == []
    assert await listed("name=%F4%8F%BF%BF") == []
    first = await send("GET", "/categories?name=do&limit=2")
    assert [each["name"] for each in first.json()] == ["Do", "Dog food"]
    following = first.links["next"]["url"].removeprefix(f"{SERVICE_URL}/v1")
    rest = await send("GET", following)
    assert [each["name"] for each in rest.json()] == ["DOGMA", "dogs"]
    assert "next" not in rest.links
    for query in ("name=", f"name={'x' * 101}", "id=1&name=dog", "id=x"):
        refused = assert_error(await send("GET", f"/categories?{query}"), 400, "invalid_parameter")
        assert refused.startswith(query[: query.index("=")])
