"""One request at a time on a raw connection: a complete response, or an unknown outcome."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proof.wire import Lost, Response, Wire, request

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(response: bytes, *, closes: bool = False) -> AsyncIterator[Wire]:
    """Connect to a server that always sends the same bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(response)
        if not closes:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        wire = Wire()
        await wire.connect(server.sockets[0].getsockname()[1])
        try:
            yield wire
        finally:
            wire.close()
            await asyncio.sleep(0)


async def test_a_response_has_status_head_and_body() -> None:
    head = b"HTTP/1.1 201 Created\r\ncontent-length: 8\r\n\r\n"
    async with connected(head + b'{"id":7}') as wire:
        response = await wire.ask(b"x")
        assert response == Response(201, head, b'{"id":7}')
        assert response.content == {"id": 7}
        assert wire.is_connected


async def test_after_a_last_response_the_connection_is_closed() -> None:
    async with connected(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n") as wire:
        assert (await wire.ask(b"x")).status == 204
        assert not wire.is_connected


@pytest.mark.parametrize("response", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal"])
@pytest.mark.parametrize("closes", [True, False])
async def test_without_a_whole_response_nobody_knows(response: bytes, *, closes: bool) -> None:
    async with connected(response, closes=closes) as wire:
        with pytest.raises(Lost):
            await wire.ask(b"x", seconds=10 if closes else 0.05)
        assert not wire.is_connected


async def test_a_request_has_its_key_its_field_and_the_length_of_its_body() -> None:
    assert request("POST", "/v1/pets", "token", {"a": 1}, "Idempotency-Key: k") == (
        b"POST /v1/pets HTTP/1.1\r\nHost: proof\r\nAuthorization: Bearer token\r\n"
        b'Idempotency-Key: k\r\nContent-Length: 7\r\n\r\n{"a":1}'
    )
    assert request("GET", "/", "token").endswith(b"Bearer token\r\n\r\n")
