"""Request bodies: what is taken, and in which size and time."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from petstore.api.bodies import BodyReader
from petstore.errors import (
    ContentTooLarge,
    RequestTimeout,
    Unavailable,
    UnsupportedMediaType,
)
from petstore.http.messages import Request
from support.bare_app import http_request
from support.error_body import assert_error
from support.full_disk import full_disk
from support.keys import change
from support.service import Service, running_service
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = b'{"name":"Bella","categoryId":1}'
LARGEST = 65536


def padded(size: int) -> bytes:
    """Return a valid animal in exactly ``size`` bytes."""
    return BELLA + b" " * (size - len(BELLA))


def whole_request(size: int, *headers: tuple[bytes, bytes]) -> Request:
    """Return a request whose body arrived together with its head."""
    length = (b"content-length", b"%d" % size)
    request = http_request("POST", b"/v1/pets", [length, *headers])
    request.content, request.body = b" " * size, "read"
    return request


async def never() -> bytes:
    raise AssertionError


async def forever() -> bytes:
    return await asyncio.Future()


async def in_pieces(content: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.parametrize(
    "media_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/problem+json",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
        "application",
        "application/json, application/json",
        "*/*",
    ],
)
async def test_another_media_type_is_refused(service: Service, media_type: str) -> None:
    key = await service.issue()
    response = await service.request(
        "POST", "/v1/pets", key.token, headers={"Content-Type": media_type}, content=BELLA
    )
    message = assert_error(response, 415, "unsupported_media_type")
    assert "Content-Type: expected application/json" in message
    assert not {"Accept-Encoding", "Accept-Patch"} & set(response.headers)


async def test_two_media_types_are_refused(service: Service) -> None:
    key = await service.issue()
    headers = [("Content-Type", "application/json"), ("Content-Type", "application/json")]
    response = await service.request("POST", "/v1/pets", key.token, headers=headers, content=BELLA)
    assert_error(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity", ""])
async def test_an_encoded_body_is_refused(service: Service, encoding: str) -> None:
    key = await service.issue()
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    response = await service.request("POST", "/v1/pets", key.token, headers=headers, content=BELLA)
    assert "Content-Encoding" in assert_error(response, 415, "unsupported_media_type")
    assert response.headers["Accept-Encoding"] == "identity"


async def test_a_body_one_byte_too_large_is_refused(service: Service) -> None:
    key = await service.issue()
    response = await service.request("POST", "/v1/pets", key.token, content=padded(LARGEST + 1))
    assert "65536" in assert_error(response, 413, "content_too_large")


async def test_a_body_without_a_length_is_refused_once_it_is_too_large(service: Service) -> None:
    key = await service.issue()
    sent = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            sent.append(1000)
            yield b" " * 1000

    response = await service.request("POST", "/v1/pets", key.token, content=endless())
    assert_error(response, 413, "content_too_large")
    assert sum(sent) <= LARGEST + 1000


@pytest.mark.parametrize("length", ["65537", "9" * 18, "9" * 30, "0" * 30 + "65537"])
async def test_a_length_over_the_limit_is_refused_whatever_comes(
    service: Service, length: str
) -> None:
    key = await service.issue()
    response = await service.request(
        "POST", "/v1/pets", key.token, headers={"Content-Length": length}, content=padded(65537)
    )
    assert_error(response, 413, "content_too_large")


async def test_a_smaller_limit_can_be_set(database: Path) -> None:
    async with running_service(database, body_bytes=1024) as service:
        key = await service.issue()
        response = await service.request("POST", "/v1/pets", key.token, content=padded(1025))
        assert "1024" in assert_error(response, 413, "content_too_large")
        response = await service.request("POST", "/v1/pets", key.token, content=padded(1024))
        assert response.status_code == 201


async def test_a_body_that_does_not_arrive_in_time_is_refused(database: Path) -> None:
    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    async with running_service(database, body_timeout=0.05) as service:
        key = await service.issue()
        response = await service.request("POST", "/v1/pets", key.token, content=stalled())
        message = assert_error(response, 408, "request_timeout")
        assert "0.05 seconds" in message


async def test_a_body_that_drips_does_not_outlast_its_time(database: Path) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    async with running_service(database, body_timeout=0.05) as service:
        key = await service.issue()
        response = await service.request("POST", "/v1/pets", key.token, content=dripping())
        assert_error(response, 408, "request_timeout")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"expires_at": 0}, 401, "invalid_api_key"),
        ({"allowed_networks": ("192.0.2.0/24",)}, 403, "network_not_allowed"),
        ({"scopes": frozenset({"pets:read"})}, 403, "missing_scope"),
    ],
    ids=["ended", "elsewhere", "fewer scopes"],
)
async def test_the_key_is_checked_again_once_a_late_body_is_here(
    database: Path, changes: dict[str, Any], status: int, code: str
) -> None:
    async with running_service(database, key_refresh_seconds=60) as service:
        issued = await service.issue()

        async def late() -> AsyncIterator[bytes]:
            yield BELLA[:5]
            await change(service.store, service.clock, issued.key.id, **changes)
            await service.app.services.keys.refresh()
            yield BELLA[5:]

        response = await service.request("POST", "/v1/pets", issued.token, content=late())
        assert_error(response, status, code)


async def test_a_large_body_has_more_time_as_it_arrives() -> None:
    arriving = asyncio.Queue[bytes]()
    reader = BodyReader(LARGEST, 0)
    request = http_request("POST", b"/console/import", [])
    reading = asyncio.create_task(reader.read_file(request, arriving.get, LARGEST, 1_000))
    arriving.put_nowait(b" " * 6_554)  # 100 s
    await eventually(arriving.empty)
    await asyncio.sleep(0)
    await reader.end_late()
    assert not reading.done()
    arriving.put_nowait(b"")
    with await reading as file:
        assert file.read() == b" " * 6_554


async def test_a_large_body_that_does_not_arrive_is_refused_with_the_pace_it_needs() -> None:
    reader = BodyReader(LARGEST, 0)
    request = http_request("POST", b"/console/import", [])
    reading = asyncio.create_task(reader.read_file(request, forever, LARGEST, 16))
    await asyncio.sleep(0)
    await reader.end_late()
    with pytest.raises(RequestTimeout, match="at least 4,096 bytes a second"):
        await reading


async def test_a_body_still_in_time_is_waited_for_until_its_caller_gives_up() -> None:
    reader = BodyReader(LARGEST, 60)
    request = http_request("POST", b"/v1/pets", [])
    reading = asyncio.create_task(reader.read(request, forever))
    await asyncio.sleep(0)
    await reader.end_late()
    await asyncio.sleep(0)
    assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


@pytest.mark.parametrize("size", [0, LARGEST])
async def test_a_body_that_arrived_whole_is_accepted(size: int) -> None:
    request = whole_request(size)
    assert await BodyReader(LARGEST, 60).read(request, never) == b" " * size


async def test_a_body_that_arrived_whole_and_is_too_large_is_refused() -> None:
    with pytest.raises(ContentTooLarge, match=f"at most {LARGEST} bytes"):
        await BodyReader(LARGEST, 60).read(whole_request(LARGEST + 1), never)


async def test_a_body_that_arrived_whole_must_be_json() -> None:
    request = whole_request(2, (b"content-type", b"text/plain"))
    with pytest.raises(UnsupportedMediaType):
        await BodyReader(LARGEST, 60).read(request, never)


async def test_a_large_body_is_received_into_a_file() -> None:
    pieces = in_pieces(b"abc" * 10_000)
    request = http_request("POST", b"/console/import", [(b"content-length", b"30000")])
    reader = BodyReader(LARGEST, 60)
    with await reader.read_file(request, lambda: anext(pieces, b""), 30_000) as file:
        assert file.read() == b"abc" * 10_000
    assert (request.body, request.keeps_body) == ("read", False)


async def test_a_body_that_arrived_with_its_head_is_put_into_a_file() -> None:
    with await BodyReader(1, 60).read_file(whole_request(9), never, 9) as file:
        assert file.read() == b" " * 9


async def test_a_body_that_is_too_large_for_its_file_is_refused() -> None:
    reader = BodyReader(LARGEST, 60)
    with pytest.raises(ContentTooLarge, match="at most 8 bytes"):
        await reader.read_file(whole_request(9), never, 8)
    pieces = in_pieces(b" " * 30_001)
    with pytest.raises(ContentTooLarge, match="at most 30000 bytes"):
        await reader.read_file(
            http_request("POST", b"/console/import", []), lambda: anext(pieces, b""), 30_000
        )


async def test_a_body_without_room_on_the_disk_is_refused_for_now() -> None:
    pieces = in_pieces(b" " * 200_000)
    request = http_request("POST", b"/console/import", [])
    with full_disk(), pytest.raises(Unavailable, match="a body to a file") as caught:
        await BodyReader(1, 60).read_file(request, lambda: anext(pieces, b""), 200_000)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})
    assert caught.value.message == "there is no room for the body now; try again"


async def test_a_body_that_nobody_asked_for_is_not_kept() -> None:
    pieces = in_pieces(b" " * 30_000)
    request = http_request("POST", b"/v1/pets", [(b"content-length", b"30000")])
    await BodyReader(LARGEST, 60).discard(request, lambda: anext(pieces, b""))
    assert (request.body, request.keeps_body) == ("read", False)


@pytest.mark.parametrize("size", [LARGEST - 1, LARGEST])
async def test_a_body_up_to_the_limit_is_taken(service: Service, size: int) -> None:
    key = await service.issue()
    whole = await service.request("POST", "/v1/pets", key.token, content=padded(size))
    assert whole.status_code == 201
    pieces = await service.request("POST", "/v1/pets", key.token, content=in_pieces(padded(size)))
    assert pieces.status_code == 201


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "APPLICATION/JSON; charset=utf-8",
        "application/json;charset=latin-1",
        "application/json ; a=b; c",
        " application/json",
    ],
)
async def test_json_is_taken_whatever_its_case_and_parameters(
    service: Service, media_type: str
) -> None:
    key = await service.issue()
    response = await service.request(
        "POST", "/v1/pets", key.token, headers={"Content-Type": media_type}, content=BELLA
    )
    assert response.status_code == 201


async def test_a_body_without_a_media_type_is_taken_as_json(service: Service) -> None:
    key = await service.issue()
    response = await service.request("POST", "/v1/pets", key.token, content=BELLA)
    assert "Content-Type" not in response.request.headers
    assert response.status_code == 201


# JSON


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"null",
        b"1",
        b'"a"',
        b"[]",
        b"[" + BELLA + b"]",
        b"{",
        BELLA[:-1],
        BELLA + b"x",
        BELLA + b"\0",
        BELLA + BELLA,
        b"\xef\xbb\xbf" + BELLA,
        BELLA.decode().encode("utf-16"),
        BELLA.replace(b'"', b"'"),
        BELLA.replace(b"}", b",}"),
        BELLA.replace(b"}", b',"x":NaN}'),
        BELLA.replace(b"}", b',"x":Infinity}'),
        BELLA.replace(b"}", b',"x":\xff}'),
        BELLA.replace(b"}", b',"x":"\xff"}'),
        BELLA.replace(b"}", b',"x":"\xc0\x80"}'),
        BELLA.replace(b"}", b',"x":"\xed\xa0\x80"}'),
        BELLA.replace(b"}", b',"\xff":1}'),
        BELLA.replace(b"}", b',"x":"\\ud800"}'),
        BELLA.replace(b"}", b',"x":"\n"}'),
        BELLA.replace(b"}", b',"x":"\\x"}'),
        BELLA.replace(b"}", b',"x":01}'),
        BELLA.replace(b"}", b',"x":1.}'),
        BELLA.replace(b"Bella", b"\xff"),
        BELLA.replace(b"}", b"} // comment"),
        b'{"name":"Bella" "categoryId":1}',
    ],
    ids=repr,
)
async def test_only_a_json_object_is_accepted(service: Service, text: bytes) -> None:
    key = await service.issue()
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert "the body: expected" in assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("depth", [2_000, 10_000])
async def test_absurd_nesting_is_refused(service: Service, opening: bytes, depth: int) -> None:
    key = await service.issue()
    nested = (opening * depth)[: LARGEST - 100]
    for text in (nested, BELLA[:-1] + b',"x":' + nested):
        response = await service.request("POST", "/v1/pets", key.token, content=text)
        assert_error(response, 400, "invalid_body")


async def test_a_whole_body_of_brackets_is_refused(service: Service) -> None:
    key = await service.issue()
    response = await service.request("POST", "/v1/pets", key.token, content=b"[" * LARGEST)
    assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize("count", [19, 20, 400, 4_000, 5_000, 60_000])
@pytest.mark.parametrize("sign", [b"", b"-"])
async def test_a_number_outside_int64_is_refused(service: Service, count: int, sign: bytes) -> None:
    key = await service.issue()
    text = b'{"name":"Bella","categoryId":%s}' % (sign + b"9" * count)
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize(
    "more",
    [
        '"x":null',
        '"x":[1,{"y":true}]',
        '"id":99',
        '"Name":"other"',
        '"x":1.5',
        '"x":1e400',
        '"x":-' + "9" * 4_000,
        '"x":' + "9" * 60_000,
        '"x":' + "1." + "0" * 60_000,
    ],
    ids=lambda more: str(more)[:20],
)
async def test_unknown_members_are_ignored(service: Service, more: str) -> None:
    key = await service.issue()
    text = BELLA[:-1] + f",{more}}}".encode()
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert response.status_code == 201
    assert response.json() == {"id": 1, "name": "Bella", "categoryId": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"Luna","name":"Bella","categoryId":1}',
        '{"name":5,"name":"Bella","categoryId":"x","categoryId":1}',
        '{"status":null,"name":"Bella","status":"sold","categoryId":1}',
    ],
)
async def test_the_last_of_duplicate_members_counts(service: Service, text: str) -> None:
    key = await service.issue()
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert response.status_code == 201
    assert response.json()["name"] == "Bella"


async def test_an_invalid_last_duplicate_member_is_refused(service: Service) -> None:
    key = await service.issue()
    text = '{"name":"Bella","categoryId":1,"name":5}'
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert "name" in assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize("ascii_only", [True, False])
async def test_every_way_of_writing_a_string_means_the_same(
    service: Service, *, ascii_only: bool
) -> None:
    key = await service.issue()
    body = {"name": "Zo\u00eb \U0001f436", "categoryId": 1}
    text = json.dumps(body, ensure_ascii=ascii_only)
    response = await service.request("POST", "/v1/pets", key.token, content=text)
    assert response.json() == {"id": 1, **body}
