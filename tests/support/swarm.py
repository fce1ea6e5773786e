"""Many requests at once over raw sockets, one connection each, so that every process gets some."""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from support.process import ServerProcess
from support.waiting import eventually

_ATTEMPTS = 5
_CONNECTING_AT_ONCE = 200


class Response(NamedTuple):
    """The response, and after how many seconds it arrived."""

    status: int
    fields: dict[str, str]
    body: Any
    seconds: float


async def request_at_once(
    port: int, token: str, requests: int, path: str = "/v1/x"
) -> list[Response]:
    """Connect so many times, and when all have, send a request on each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, requests + 500)), hard))
    ready = asyncio.Barrier(requests)
    turns = asyncio.Semaphore(_CONNECTING_AT_ONCE)
    return await asyncio.gather(*(_ask(port, token, path, turns, ready) for _ in range(requests)))


async def undisturbed(attempt: Callable[[], Awaitable[None]], *servers: ServerProcess) -> None:
    """Make an attempt at what takes Redis to respond in time; repeat it if Redis was late.

    On a busy machine it may be late at any moment. Then each process has a share of the limits, and
    what fails proves nothing.
    """

    def count(what: str) -> int:
        logs = (server.log_path.read_text() for server in servers)
        return sum(log.count(f'"event":"Redis is {what}') for log in logs)

    for _ in range(_ATTEMPTS):
        await eventually(lambda: count("back") == count("unavailable"))
        before = count("unavailable")
        try:
            await attempt()
        except AssertionError:
            with suppress(TimeoutError):  # the line is written a moment later
                await eventually(lambda before=before: count("unavailable") > before, 1)  # type: ignore[misc]
            if count("unavailable") == before:
                raise
        else:
            return
    raise AssertionError(f"Redis was late in each of {_ATTEMPTS} attempts")


async def ask(port: int, token: str, path: str = "/v1/x") -> Response:
    (response,) = await request_at_once(port, token, 1, path)
    return response


async def _ask(
    port: int, token: str, path: str, turns: asyncio.Semaphore, ready: asyncio.Barrier
) -> Response:
    async with turns:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await ready.wait()
        started = time.monotonic()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: petstore\r\nConnection: close\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        seconds = time.monotonic() - started
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    status, *lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines)
    return Response(int(status.split(" ")[1]), fields, json.loads(body), seconds)
