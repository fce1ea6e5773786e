"""Query and path parameters, and the total of a list."""

import re

import pytest

from petstore.interface.operations import OPERATIONS
from petstore.interface.pages import decode_query
from petstore.keys.model import SCOPES
from petstore.pets.model import NewPet
from petstore.pets.operations import ListPetsQuery
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import Service

pytestmark = pytest.mark.anyio

REFUSED = {
    "limit={}: limit: expected an integer from 1 to 100, in plain digits": [
        *("", "0", "101", "-1", "-0", "+5", "%2B5", "%20%35", "5%20", "1_0", "%EF%BC%95"),
        *("%D9%A5", "%C2%B2", "5.0", "5e0", "0x5", "five", "null", "true", "5%00", "5%0A", "%FF"),
        *("9" * 19, "9" * 4_000, "1" + "0" * 4_300),
    ],
    "status={}: status: expected one of 'available', 'pending', 'sold'": [
        *("", "lost", "Available", "available%20", "null", "%FF")
    ],
    **{
        f"{name}={{}}: {name}: expected": [
            *("", "x", "1.0", "%2B1", "9223372036854775808", "-9223372036854775809", "9" * 4_000)
        ]
        for name in ("categoryId", "id")
    },
    "cursor={}: cursor: expected": [
        *("", "x", "AAAAAAAAAA", "AAAAAAAAABR", "AAAAAAAAABQ%3D", "AAAAAAAAABQ%0A"),
        *("%20AAAAAAAAABQ", "AAAAAAAAAB%2B", "%EF%BC%A1AAAAAAAABQ", "A" * 4_000, "%FF", "%00"),
    ],
    **{
        f"{{}}: {name}: expected once, got it twice": queries
        for name, queries in {
            "limit": ["limit=5&limit=5", "limit=5&limit[]=5", "limit=5&%6cimit=5"],
            "status": ["status[0]=sold&status[1]=sold", "status=sold&limit=5&status=sold"],
            "categoryId": ["categoryId=1&categoryId=2"],
            "cursor": [
                "cursor[]=AAAAAAAAABQ&cursor=AAAAAAAAABQ",
                *("cursor=AAAAAAAAABQ&cursor=AAAAAAAAABQ", "cursor=x&cursor=AAAAAAAAABQ"),
                "curs%6Fr=x&cursor=AAAAAAAAABQ",
            ],
        }.items()
    },
    "{}: id: expected up to 100": ["&".join(f"id={n}" for n in range(101))],
    "{}: the query: expected at most 128 parameters": [
        *("&a" * 128, "&" * 128, "id=1&" * 128, "x=1&" * 4_000)
    ],
    "x={}: the query: expected at most 640 percent-encoded bytes": ["%25" * 641],
    "{}: the query: expected at most 16384 bytes": ["id=1&" * 3_277],
}
TAKEN = [
    *("limit=1", "limit=100", "limit=005", "limit=%35"),
    *(f"{name}={value}" for name in ("categoryId", "id") for value in (-(2**63), 2**63 - 1, 0, -1)),
    "&".join(f"id={n}" for n in range(100)),
    *("&a" * 127, "&" * 127, "id=1&" * 99 + "x=1&" * 28, "x=" + "%25" * 640),
    # Parameters that are unknown are ignored.
    *("", "&&", "=", "x=1&x=2", "Limit=0", "limit[x]=0", "limit[0][0]=0", "limit[=0", "limit]=0"),
    *("[]=0", "offset=5", "x=%FF%00%ZZ", "%FF=1", "x=" + "y" * 10_000, "y" * 10_000 + "=1"),
]


@pytest.fixture
async def send(service: Service) -> Send:
    return await sender(service, scopes=frozenset(SCOPES))


@pytest.mark.parametrize("rule", REFUSED)
async def test_an_invalid_parameter_is_refused_by_its_name(send: Send, rule: str) -> None:
    form, _, expected = rule.partition(": ")
    for value in REFUSED[rule]:
        with case(value[:40]):
            response = await send("GET", f"/pets?{form.format(value)}")
            assert assert_error(response, 400, "invalid_parameter").startswith(expected)


async def test_a_valid_or_unknown_parameter_is_taken(send: Send) -> None:
    for query in TAKEN:
        with case(query[:40]):
            response = await send("GET", f"/pets?{query}")
            assert (response.status_code, response.json()) == (200, [])


def test_a_cursor_means_the_same_at_any_position_in_the_query() -> None:
    for query in (
        *("limit=5&cursor=AAAAAAAAABQ", "limit=5&&cursor=AAAAAAAAABQ"),
        *("cursor=AAAAAAAAABQ&limit=5", "limit=5&cursor=AAAAAAAAAB%51"),
        *("x=cursor&limit=5&cursor=AAAAAAAAABQ", "limit=5&cursor=AAAAAAAAABQ&x=" + "y" * 512),
    ):
        wanted = ListPetsQuery(limit=5, cursor="AAAAAAAAABQ")
        assert decode_query(query.encode(), ListPetsQuery).values == wanted, query[:40]
    filtered = b"status=sold&x=1&id=2&id=3&cursor=AAAAAAAAABQ"
    assert decode_query(filtered, ListPetsQuery).filters == "status=sold&id=2&id=3"


def test_a_parameter_name_with_brackets_is_recognized() -> None:
    for query in (
        "id[]=7&id[]=9&limit[]=5&status[]=sold",
        "id[0]=7&id[1]=9&limit[0]=5&status[0]=sold",
        "id%5B%5D=7&id%5B10%5D=9&limit%5b%5d=5&status%5B%5D=sold",
        "id=7&id[]=9&limit=5&status=sold",
    ):
        decoded = decode_query(query.encode(), ListPetsQuery)
        assert decoded.values == ListPetsQuery(id=[7, 9], limit=5, status="sold"), query


async def test_the_next_page_of_a_list_with_brackets_is_filtered_too(send: Send) -> None:
    for name in ("Bella", "Max", "Luna"):
        await send("POST", "/pets", json={"name": name, "categoryId": 1})
    first = await send("GET", "/pets?id[]=1&id[]=3&limit=1")
    assert [pet["id"] for pet in first.json()] == [1]
    second = await send("GET", first.links["next"]["url"].partition("/v1")[2])
    assert [pet["id"] for pet in second.json()] == [3]
    assert "next" not in second.links


async def test_only_plain_digits_are_an_id(send: Send) -> None:
    await send("POST", "/pets", json={"name": "Bella", "categoryId": 1})
    # A parameter of another operation is ignored.
    assert (await send("GET", "/pets/1?limit=0")).status_code == 200
    for pet_id in (
        *("0", "2", "-1", "+1", "1.0", "1e0", "1_0", "%31", "%EF%BC%91", "1%20", "1%0A", "1%00"),
        *("01", "001", "00", "x", "null", f"{2**63 - 1}", f"{2**63}", "9" * 4_000),
    ):
        with case(pet_id[:20]):
            assert_error(await send("GET", f"/pets/{pet_id}"), 404, "not_found")
    for row in OPERATIONS:
        for pet_id in ("01", "x", str(2**63)) if row.parameters else ():
            with case(row.id, pet_id):
                path = re.sub(r"{\w+}", pet_id, row.path)
                # A body that is checked first, where one is required.
                options = {"json": row.body_example} if row.body else {}
                response = await send(row.method, path, **options)
                assert_error(response, 404, "not_found")


async def test_every_list_checks_its_limit_and_its_cursor(send: Send) -> None:
    for row in OPERATIONS:
        path = re.sub(r"{\w+}", "1", row.path)
        for query in ("limit=0", "limit=101", "limit=x", "limit=1&limit=1", "cursor=x", "cursor="):
            if row.is_list:
                with case(row.id, query):
                    refused = await send("GET", f"{path}?{query}")
                    message = assert_error(refused, 400, "invalid_parameter")
                    assert message.startswith(f"{query.partition('=')[0]}: expected")


# How many records match, in a header of the lists that are asked for it


@pytest.mark.each_database
async def test_a_list_is_counted_with_its_filters_on_each_page(
    service: Service, send: Send
) -> None:
    news = [NewPet("Bella", n % 3, "available") for n in range(7)] + [NewPet("Rex", 1)]
    await service.store.write(create_pets(news))
    for pet_id in (1, 2, 3):
        await send("POST", "/store/orders", json={"petId": pet_id})
    for path, total in (
        ("/pets?count=true&limit=2", "8"),
        ("/pets?count=true&limit=2&sort=-id&status=available", "4"),
        ("/pets?count=true&status=pending&categoryId=1", "1"),
        ("/pets?count=true&hasStatus=false", "1"),
        ("/pets?count=true&id=2&id=8&id=99", "2"),
        ("/store/orders?count=true&limit=1", "3"),
        ("/store/orders?count=true&status=placed&petId=2", "1"),
        ("/store/orders?count=true&placedBefore=2020-01-01T00:00:00Z", "0"),
        ("/store/orders?count=true&placedBefore=2027-01-01T00:00:00Z&status=placed", "3"),
    ):
        page = await send("GET", path)
        assert page.headers["x-total-count"] == total, path
    first = await send("GET", "/pets?count=true&limit=6")
    following = first.links["next"]["url"].partition("/v1")[2]
    assert (await send("GET", following)).headers["x-total-count"] == "8"
    await send("DELETE", "/pets/8")  # which no page that is kept shows
    assert (await send("GET", "/pets?count=true&limit=6")).headers["x-total-count"] == "7"
    for path in ("/pets?limit=2", "/pets?count=false", "/pets?count=false&name=Bella"):
        assert "x-total-count" not in (await send("GET", path)).headers


async def test_a_list_is_counted_no_further_than_10_000_and_a_search_not_at_all(
    service: Service, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.pets.operations.MAX_COUNTED", 3)
    await service.store.write(create_pets([NewPet("Bella", 1)] * 6))
    assert (await send("GET", "/pets?count=true")).headers["x-total-count"] == "4"
    for path in ("/pets?name=Bella", "/store/orders?buyer=Jane"):
        refused = await send("GET", f"{path}&count=true")
        assert assert_error(refused, 400, "invalid_parameter").startswith("count: ")
