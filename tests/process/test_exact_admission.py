"""However many requests come at once, a key is admitted exactly as often as its limit says."""

import asyncio
from collections import Counter

import pytest

from support.process import ServerProcess

pytestmark = pytest.mark.anyio


async def status_of(port: int, request: bytes, ready: asyncio.Barrier) -> int:
    """Connect, wait until everybody has, send the request and return the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await ready.wait()
    writer.write(request)
    response = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(response.split(b" ")[1])


async def test_a_limit_of_50_admits_50_of_200_concurrent_requests(server: ServerProcess) -> None:
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "50")
    request = (
        "GET /v1/pets HTTP/1.1\r\nHost: petstore\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    ).encode()
    ready = asyncio.Barrier(200)
    statuses = await asyncio.gather(*(status_of(server.port, request, ready) for _ in range(200)))
    assert Counter(statuses) == {200: 50, 429: 150}
