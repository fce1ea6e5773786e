"""List, add, get, change and delete categories."""

import asyncio
from typing import Any

import pytest

from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.databases.contract import Row
from petstore.domain.cursors import BY_ID
from support.cases import case
from support.changes import create_category, update_category
from support.error_body import assert_error
from support.races import by_hand
from support.sending import Send
from support.service import SERVICE_URL

pytestmark = pytest.mark.anyio


async def add(send: Send, *names: str) -> None:
    for name in names:
        created = await send("POST", "/categories", json={"name": name})
        assert created.status_code == 201


async def names(send: Send) -> list[str]:
    return [category["name"] for category in (await send("GET", "/categories?limit=100")).json()]


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        (
            *("name", (None, "", " \t\u3000\n", "x" * 101, "\0", "Dogs\0", 5, True, ["Dogs"])),
            "1 to 100 characters, not only spaces",
        ),
        (
            *("description", ("x" * 1001, "\0", "a\n\0", "\0\n", 5, False, ["a"])),
            "up to 1000 characters",
        ),
    ],
)
async def test_an_invalid_value_is_refused_naming_the_field(
    send: Send, field: str, values: tuple[Any, ...], expected: str
) -> None:
    await add(send, "Dogs")
    for value in values:
        for method, path in (("POST", "/categories"), ("PATCH", "/categories/1")):
            with case(method, value):
                response = await send(method, path, json={"name": "Cats", field: value})
                message = assert_error(response, 400, "invalid_body")
                assert message == f"{field}: expected {expected}"
    for body, begins in (
        ({}, "name: required; expected 1 to 100"),
        ({"name": "Cats", "description": None}, "description: expected up to 1000"),
    ):
        response = await send("POST", "/categories", json=body)
        assert assert_error(response, 400, "invalid_body").startswith(begins)


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
    wanted = ["pigs", "Pigs", "PIGS", "pigS", "piGs"]
    at_once = [send("POST", "/categories", json={"name": name}) for name in wanted]
    statuses = [response.status_code for response in await asyncio.gather(*at_once)]
    assert sorted(statuses) == [201, 409, 409, 409, 409]


@pytest.mark.each_database
async def test_a_category_is_returned_as_it_was_added_and_changed(send: Send) -> None:
    first: dict[str, Any] = {"id": 1}
    for number, body in enumerate(
        (
            {"name": "x", "description": "\N{DOG FACE}" * 1000},
            {"name": "\N{DOG FACE}" * 100},
            {"name": " Dogs\n", "description": ""},
            {"name": "Robert'); DROP TABLE categories; --", "description": " \n"},
        ),
        1,
    ):
        with case(body):
            created = await send("POST", "/categories", json=body)
            assert created.status_code == 201
            assert created.json() == {"id": number, **body}
            assert created.headers.get_list("Location") == [f"{SERVICE_URL}/v1/categories/{number}"]
            shown = await send("GET", f"/categories/{number}")
            assert (shown.status_code, shown.content) == (200, created.content)
            assert (await send("GET", "/categories")).json()[-1] == created.json()
            first |= body | {"name": f"{body['name'][:9]} 1"}
            changed = await send("PATCH", "/categories/1", json={**first, "id": 9})
            assert (changed.status_code, changed.json()) == (200, first)
    for fields in ({}, {"name": "DROP"}, {"name": "dROP"}, {"description": "All."}):
        first |= fields
        assert (await send("PATCH", "/categories/1", json=fields)).json() == first
    del first["description"]
    assert (await send("PATCH", "/categories/1", json={"description": None})).json() == first
    assert (await send("GET", "/categories")).json()[0] == first


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


@pytest.mark.each_database
async def test_categories_are_listed_by_number_or_found_by_name(send: Send) -> None:
    await add(send, "dogs", "Cats", "Dog food", "Élans", *map(str, range(17)))
    for query, expected in (
        ("id=2&id=1&id=99&id=-1", ["dogs", "Cats"]),
        *(("name=DOGS", ["dogs"]), ("name=E%CC%81LANS", ["Élans"]), ("name=dog", [])),
        *(("name=Dogs&id=1&id=2", ["dogs"]), ("name=Dogs&id=2", [])),
        *((f"name=Dogs&cursor={BY_ID.encode(n)}", found) for n, found in ((0, ["dogs"]), (1, []))),
    ):
        page = await send("GET", f"/categories?{query}")
        assert [each["name"] for each in page.json()] == expected
        assert "Link" not in page.headers
    for query in ("name=", f"name={'x' * 101}", "name=%00", "id=x"):
        refused = assert_error(await send("GET", f"/categories?{query}"), 400, "invalid_parameter")
        assert refused.startswith(query[: query.index("=")])
    page = await send("GET", "/categories")
    following = page.links["next"]["url"].removeprefix(f"{SERVICE_URL}/v1")
    assert (len(page.json()), len((await send("GET", following)).json())) == (20, 1)


# By hand: what others do between two statements, which SQLite does not let happen

DOGS: Row = (1, "Dogs", None)


def test_a_name_that_is_taken_during_the_change_is_refused_and_a_freed_one_is_accepted() -> None:
    unit = update_category(1, CategoryPatch("Cats"))
    next(unit)
    unit.send([DOGS])
    make_error = unit.send([]).if_taken
    assert make_error is not None
    assert str(make_error()) == "name: another category has just got the name 'Cats'"
    added = create_category(CategoryCreate("Dogs"))
    assert by_hand(added, [], [], [(1,)], []) == Category(1, "Dogs")


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (CategoryPatch(), CategoryPatch("Dogs", None)):
        assert by_hand(update_category(1, patch), [DOGS]) == Category(1, "Dogs")
