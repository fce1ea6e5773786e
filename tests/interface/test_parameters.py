"""Query and path parameters."""

import pytest

from petstore.interface.pages import decode_query
from petstore.pets.operations import ListPetsQuery
from support.error_body import assert_error
from support.sending import Send, sender
from support.service import Service

pytestmark = pytest.mark.anyio


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


@pytest.mark.parametrize(
    "limit",
    [
        "",
        "0",
        "101",
        "-1",
        "-0",
        "+5",
        "%2B5",
        "%20%35",
        "5%20",
        "1_0",
        "%EF%BC%95",
        "%D9%A5",
        "%C2%B2",
        "5.0",
        "5e0",
        "0x5",
        "five",
        "null",
        "true",
        "5%00",
        "5%0A",
        "%FF",
        "9" * 19,
        "9" * 4_000,
        "1" + "0" * 4_300,
    ],
    ids=lambda limit: repr(limit[:20]),
)
async def test_a_limit_that_is_not_an_integer_from_1_to_100_is_refused(
    send: Send, limit: str
) -> None:
    response = await send("GET", f"/pets?limit={limit}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "limit: expected an integer from 1 to 100, in plain digits"


@pytest.mark.parametrize("limit", ["1", "100", "005", "%35"])
async def test_a_limit_from_1_to_100_is_accepted(send: Send, limit: str) -> None:
    response = await send("GET", f"/pets?limit={limit}")
    assert response.status_code == 200


@pytest.mark.parametrize("status", ["", "lost", "Available", "available%20", "null", "%FF"])
async def test_an_unknown_status_is_refused(send: Send, status: str) -> None:
    response = await send("GET", f"/pets?status={status}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "status: expected one of 'available', 'pending', 'sold'"


@pytest.mark.parametrize("name", ["categoryId", "id"])
@pytest.mark.parametrize(
    "value", ["", "x", "1.0", "%2B1", "9223372036854775808", "-9223372036854775809", "9" * 4_000]
)
async def test_an_id_that_is_not_an_int64_is_refused(send: Send, name: str, value: str) -> None:
    response = await send("GET", f"/pets?{name}={value}")
    assert assert_error(response, 400, "invalid_parameter").startswith(f"{name}: expected")


@pytest.mark.parametrize("name", ["categoryId", "id"])
@pytest.mark.parametrize("value", ["-9223372036854775808", "9223372036854775807", "0", "-1"])
async def test_an_id_may_be_any_int64(send: Send, name: str, value: str) -> None:
    response = await send("GET", f"/pets?{name}={value}")
    assert response.status_code == 200
    assert response.json() == []


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "AAAAAAAAAA",
        "AAAAAAAAABR",
        "AAAAAAAAABQ%3D",
        "AAAAAAAAABQ%0A",
        "%20AAAAAAAAABQ",
        "AAAAAAAAAB%2B",
        "%EF%BC%A1AAAAAAAABQ",
        "A" * 4_000,
        "%FF",
        "%00",
    ],
    ids=lambda cursor: repr(cursor[:20]),
)
async def test_a_broken_cursor_is_refused(send: Send, cursor: str) -> None:
    response = await send("GET", f"/pets?cursor={cursor}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message.startswith("cursor: expected")


@pytest.mark.parametrize(
    "query",
    [
        "limit=5&cursor=AAAAAAAAABQ",
        "limit=5&&cursor=AAAAAAAAABQ",
        "cursor=AAAAAAAAABQ&limit=5",
        "limit=5&cursor=AAAAAAAAAB%51",
        "x=cursor&limit=5&cursor=AAAAAAAAABQ",
        "limit=5&cursor=AAAAAAAAABQ&x=" + "y" * 512,
    ],
    ids=lambda query: query[:40],
)
def test_a_cursor_means_the_same_at_any_position_in_the_query(query: str) -> None:
    wanted = ListPetsQuery(limit=5, cursor="AAAAAAAAABQ")
    assert decode_query(query.encode(), ListPetsQuery).values == wanted


def test_a_parsed_query_is_cached_without_its_cursor() -> None:
    query = b"status=sold&x=1&id=2&id=3&cursor=AAAAAAAAABQ"
    assert decode_query(query, ListPetsQuery).filters == "status=sold&id=2&id=3"


@pytest.mark.parametrize(
    "query",
    [
        "id[]=7&id[]=9&limit[]=5&status[]=sold",
        "id[0]=7&id[1]=9&limit[0]=5&status[0]=sold",
        "id%5B%5D=7&id%5B10%5D=9&limit%5b%5d=5&status%5B%5D=sold",
        "id=7&id[]=9&limit=5&status=sold",
    ],
)
def test_a_parameter_name_with_brackets_is_recognized(query: str) -> None:
    decoded = decode_query(query.encode(), ListPetsQuery)
    assert decoded.values == ListPetsQuery(id=[7, 9], limit=5, status="sold")


async def test_the_next_page_of_a_list_with_brackets_is_filtered_too(service: Service) -> None:
    key = await service.issue()
    for name in ("Bella", "Max", "Luna"):
        await service.request("POST", "/v1/pets", key.token, json={"name": name, "categoryId": 1})
    path = "/v1/pets?id[]=1&id[]=3&limit=1"
    first = await service.request("GET", path, key.token)
    assert [pet["id"] for pet in first.json()] == [1]
    second = await service.request("GET", first.links["next"]["url"], key.token)
    assert [pet["id"] for pet in second.json()] == [3]
    assert "next" not in second.links


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("limit=5&limit=5", "limit"),
        ("limit=5&limit[]=5", "limit"),
        ("cursor[]=AAAAAAAAABQ&cursor=AAAAAAAAABQ", "cursor"),
        ("status[0]=sold&status[1]=sold", "status"),
        ("status=sold&limit=5&status=sold", "status"),
        ("categoryId=1&categoryId=2", "categoryId"),
        ("cursor=AAAAAAAAABQ&cursor=AAAAAAAAABQ", "cursor"),
        ("cursor=x&cursor=AAAAAAAAABQ", "cursor"),
        ("curs%6Fr=x&cursor=AAAAAAAAABQ", "cursor"),
        ("limit=5&%6cimit=5", "limit"),
    ],
)
async def test_a_parameter_given_twice_is_refused(send: Send, query: str, name: str) -> None:
    response = await send("GET", f"/pets?{query}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == f"{name}: expected once, got it twice"


async def test_more_than_100_ids_are_refused(send: Send) -> None:
    query = "&".join(f"id={n}" for n in range(101))
    response = await send("GET", f"/pets?{query}")
    assert "up to 100" in assert_error(response, 400, "invalid_parameter")


async def test_100_ids_are_accepted(send: Send) -> None:
    query = "&".join(f"id={n}" for n in range(100))
    response = await send("GET", f"/pets?{query}")
    assert response.status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "",
        "&&",
        "=",
        "x=1&x=2",
        "Limit=0",
        "limit[x]=0",
        "limit[0][0]=0",
        "limit[=0",
        "limit]=0",
        "[]=0",
        "offset=5",
        "x=%FF%00%ZZ",
        "%FF=1",
        "x=" + "y" * 10_000,
        "y" * 10_000 + "=1",
        "x=%25" * 100,
    ],
    ids=lambda query: repr(query[:20]),
)
async def test_unknown_parameters_are_ignored(send: Send, query: str) -> None:
    response = await send("GET", f"/pets?{query}")
    assert response.status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/pets/1?limit=0", "/v1/usage?status=lost", "/v1/usage?cursor=AAAAAAAAABQ"]
)
async def test_a_parameter_of_another_operation_is_ignored(service: Service, path: str) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json={"name": "Bella", "categoryId": 1})
    assert (await service.request("GET", path, key.token)).status_code == 200


@pytest.mark.parametrize(
    "pet_id",
    [
        "0",
        "2",
        "-1",
        "+1",
        "1.0",
        "1e0",
        "1_0",
        "%31",
        "%EF%BC%91",
        "1%20",
        "1%0A",
        "1%00",
        "01",
        "001",
        "00",
        "x",
        "null",
        "9223372036854775807",
        "9223372036854775808",
        "9" * 4_000,
    ],
    ids=lambda pet_id: repr(pet_id[:20]),
)
async def test_the_id_of_no_pet_is_not_found(send: Send, pet_id: str) -> None:
    await send("POST", "/pets", json={"name": "Bella", "categoryId": 1})
    response = await send("GET", f"/pets/{pet_id}")
    assert_error(response, 404, "not_found")


@pytest.mark.parametrize("query", ["&a" * 127, "&" * 127, "id=1&" * 99 + "x=1&" * 28])
async def test_128_parameters_are_accepted(send: Send, query: str) -> None:
    response = await send("GET", f"/pets?{query}")
    assert response.status_code == 200


@pytest.mark.parametrize("query", ["&a" * 128, "&" * 128, "id=1&" * 128, "x=1&" * 4_000])
async def test_more_than_128_parameters_are_refused(send: Send, query: str) -> None:
    response = await send("GET", f"/pets?{query}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "the query: expected at most 128 parameters"


async def test_640_bytes_may_be_percent_encoded(send: Send) -> None:
    response = await send("GET", "/pets?x=" + "%25" * 640)
    assert response.status_code == 200
    response = await send("GET", "/pets?x=" + "%25" * 641)
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "the query: expected at most 640 percent-encoded bytes"


async def test_a_query_that_is_too_long_is_refused(send: Send) -> None:
    query = "id=1&" * 3_277
    response = await send("GET", f"/pets?{query}")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "the query: expected at most 16384 bytes"
