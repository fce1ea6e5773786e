"""Request bodies: the media type, the size and the time; JSON is tested in domain."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from petstore.errors import ContentTooLarge, RequestTimeout, Unavailable
from petstore.interface.bodies import BodyReader
from support.cases import case
from support.error_body import assert_error
from support.keys import change
from support.permissions import full_disk
from support.sending import Send, sender
from support.service import Service, http_request, running_service
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = b'{"name":"Bella","categoryId":1}'
LARGEST = 65536
LATE = {"/v1/pets": BELLA, "/v1/pets/batch": b"[%b]" % BELLA, "/v1/imports": b"name\nBella\n"}


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


def padded(size: int) -> bytes:
    """Return a valid pet in exactly ``size`` bytes."""
    return BELLA + b" " * (size - len(BELLA))


async def forever() -> bytes:
    return await asyncio.Future()


async def in_pieces(content: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def test_the_media_type_is_json_in_any_case_with_any_parameters_and_no_encoding(
    send: Send,
) -> None:
    for media_type in (
        *("application/json", "APPLICATION/JSON; charset=utf-8"),
        *("application/json;charset=latin-1", "application/json ; a=b; c", " application/json"),
    ):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("POST", "/pets", headers=headers, content=BELLA)
            assert response.status_code == 201
    for media_type in (
        *("", "text/plain", "text/json", "application/jsonx", "application/problem+json"),
        *("application/merge-patch+json", "application/x-www-form-urlencoded", "application"),
        *("application/json, application/json", "*/*"),
    ):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("POST", "/pets", headers=headers, content=BELLA)
            message = assert_error(response, 415, "unsupported_media_type")
            assert "Content-Type: expected application/json" in message
            assert "Accept-Encoding" not in response.headers
    for path, media_type, encoding in (
        *(("/pets", "application/json", each) for each in ("gzip", "br", "identity", "")),
        ("/imports", "text/csv", "gzip"),
    ):
        with case(f"{path} {encoding}"):
            headers = {"Content-Type": media_type, "Content-Encoding": encoding}
            response = await send("POST", path, headers=headers, content=BELLA)
            assert "Content-Encoding" in assert_error(response, 415, "unsupported_media_type")
            assert response.headers["Accept-Encoding"] == "identity"


async def test_a_body_over_the_limit_is_refused_as_soon_as_that_is_known(send: Send) -> None:
    sent = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            sent.append(1000)
            yield b" " * 1000

    assert_error(await send("POST", "/pets", content=endless()), 413, "content_too_large")
    assert sum(sent) <= LARGEST + 1000
    for length in ("65537", "9" * 18, "9" * 30, "0" * 30 + "65537"):
        with case(length):
            headers = {"Content-Length": length}
            response = await send("POST", "/pets", headers=headers, content=padded(65537))
            assert_error(response, 413, "content_too_large")


async def test_a_body_up_to_the_limit_is_accepted(send: Send, database: Path) -> None:
    for size in (LARGEST - 1, LARGEST):
        for content in (padded(size), in_pieces(padded(size))):
            assert (await send("POST", "/pets", content=content)).status_code == 201
    async with running_service(database, max_body_bytes=1024) as service:
        smaller = await sender(service)
        response = await smaller("POST", "/pets", content=padded(1025))
        assert "1024" in assert_error(response, 413, "content_too_large")
        assert (await smaller("POST", "/pets", content=padded(1024))).status_code == 201


async def test_the_key_is_checked_again_once_a_late_body_has_arrived(database: Path) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"expires_at": 0}, 401, "invalid_api_key"),
        ({"allowed_networks": ("192.0.2.0/24",)}, 403, "network_not_allowed"),
        ({"scopes": frozenset({"pets:read"})}, 403, "missing_scope"),
    ]
    async with running_service(database, key_refresh_seconds=60) as service:

        async def late(body: bytes, key_id: int, changes: dict[str, Any]) -> AsyncIterator[bytes]:
            yield body[:5]
            await change(service.store, service.clock, key_id, **changes)
            await service.app.services.keys.refresh()
            yield body[5:]

        for (path, body), (changes, status, code) in product(LATE.items(), cases):
            with case(path, changes):
                key = await service.issue()
                sent: dict[str, Any] = {"content": late(body, key.id, changes)}
                if path == "/v1/imports":
                    sent["headers"] = {"Content-Type": "text/csv"}
                assert_error(await service.request("POST", path, key.token, **sent), status, code)


async def test_a_large_body_has_more_time_as_it_arrives() -> None:
    reader = BodyReader(LARGEST, 0)
    request = http_request("POST", b"/console/import", [])
    arriving = asyncio.Queue[bytes]()
    reading = asyncio.create_task(reader.read_file(request, arriving.get, LARGEST, 1_000))
    arriving.put_nowait(b" " * 6_554)  # 100 s
    await eventually(arriving.empty)
    await asyncio.sleep(0)
    await reader.end_late()
    assert not reading.done()
    arriving.put_nowait(b"")
    with await reading as file:
        assert file.read() == b" " * 6_554
    reading = asyncio.create_task(reader.read_file(request, forever, LARGEST, 16))
    await asyncio.sleep(0)
    await reader.end_late()
    with pytest.raises(RequestTimeout, match="at least 4,096 bytes a second"):
        await reading


async def test_a_body_is_awaited_within_its_timeout_until_the_caller_cancels() -> None:
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


async def test_a_large_body_is_written_to_a_file_unless_it_is_too_large() -> None:
    pieces = in_pieces(b"abc" * 10_000)
    request = http_request("POST", b"/console/import", [(b"content-length", b"30000")])
    reader = BodyReader(LARGEST, 60)
    with await reader.read_file(request, lambda: anext(pieces, b""), 30_000) as file:
        assert file.read() == b"abc" * 10_000
    assert (request.body, request.keeps_body) == ("read", False)
    request = http_request("POST", b"/console/import", [(b"content-length", b"9")])
    request.content, request.body = b" " * 9, "read"  # it arrived together with its head
    with pytest.raises(ContentTooLarge, match="at most 8 bytes"):
        await reader.read_file(request, forever, 8)
    pieces = in_pieces(b" " * 30_001)
    request = http_request("POST", b"/console/import", [])
    with pytest.raises(ContentTooLarge, match="at most 30000 bytes"):
        await reader.read_file(request, lambda: anext(pieces, b""), 30_000)


async def test_a_body_is_refused_with_503_while_the_disk_is_full() -> None:
    pieces = in_pieces(b" " * 200_000)
    request = http_request("POST", b"/console/import", [])
    with full_disk(), pytest.raises(Unavailable, match="cannot write a file") as caught:
        await BodyReader(1, 60).read_file(request, lambda: anext(pieces, b""), 200_000)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})
    assert caught.value.message == "there is no room for the file now; try again"


async def test_a_discarded_body_is_not_kept_in_memory() -> None:
    pieces = in_pieces(b" " * 30_000)
    request = http_request("POST", b"/v1/pets", [(b"content-length", b"30000")])
    await BodyReader(LARGEST, 60).discard(request, lambda: anext(pieces, b""))
    assert (request.body, request.keeps_body) == ("read", False)
