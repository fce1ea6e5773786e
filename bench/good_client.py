"""A client that behaves: lists and gets at a steady rate, each timed from when it was due.

A response that is late does not delay the requests behind it, and so is not counted once for all
of them (an open loop).
"""

import asyncio
from contextlib import closing, suppress
from typing import NamedTuple

from works import get, page_path

ADDRESS = "127.0.0.2"
"""Where it calls from; attackers have other addresses."""

_PER_SECOND = 100
_CONNECTIONS = 8
_TIMEOUT = 30  # s, for the responses that are still to come when the last request was due


class Requests(NamedTuple):
    """The requests of a client: their times in ms, how many failed, and how long all took in s."""

    times: list[float]
    failed: int
    seconds: float

    def percentile(self, share: float) -> float:
        """Return the time within which this share of the requests had their responses."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def request_steadily(
    port: int,
    token: str,
    seconds: float,
    *,
    keeps_alive: bool = True,
    timeout: float = _TIMEOUT,  # noqa: ASYNC109 - what is late is counted
) -> Requests:
    """Ask for ``seconds``, on a few connections, or on a new one for each request.

    A request fails if its connection ends, if its status is not 200 or if it has no response
    ``timeout`` seconds after the last one was due.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    requests = [get(page_path("available"), token), get("/v1/pets/7", token)]
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    unanswered: set[float] = set()
    times: list[float] = []
    failed = 0

    async def connection() -> None:
        nonlocal failed
        with closing(Wire(port)) as wire:
            while True:
                since, request = await due.get()
                has_response = await wire.ask(request)  # others count while this waits
                failed += not has_response
                times.append(loop.time() - since)
                unanswered.remove(since)
                due.task_done()
                if not keeps_alive:
                    wire.close()

    connections = [loop.create_task(connection()) for _ in range(_CONNECTIONS)]
    for number in range(round(seconds * _PER_SECOND)):
        since = started + number / _PER_SECOND
        await asyncio.sleep(since - loop.time())
        unanswered.add(since)
        due.put_nowait((since, requests[number % len(requests)]))
    with suppress(TimeoutError):
        await asyncio.wait_for(due.join(), timeout)
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
    ended = loop.time()
    times += [ended - since for since in unanswered]
    return Requests([time * 1e3 for time in times], failed + len(unanswered), ended - started)


class Wire:
    """A connection to the service, which is opened when a request needs it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> bool:
        """Send a request; return whether it got a complete response with status 200."""
        try:
            reader, writer = self._streams = await self._open()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        except (OSError, EOFError, ValueError):
            self.close()
            return False
        return head[9:12] == b"200"

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the streams of a connection that the service has not closed."""
        if self._streams and not self.was_closed():
            return self._streams
        self.close()
        return await asyncio.open_connection("127.0.0.1", self._port, local_addr=(ADDRESS, 0))

    def was_closed(self) -> bool:
        """Return whether there is a connection that the service has closed."""
        return self._streams is not None and self._streams[0].at_eof()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams:
            self._streams[1].close()
            self._streams = None
