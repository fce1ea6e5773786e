"""A client that behaves: lists and gets at a steady rate, each timed from when it was due.

A response that is late does not delay the requests behind it, and so is not counted once for all
of them (an open loop).
"""

import asyncio
from contextlib import closing, suppress
from typing import NamedTuple

from proof.wire import Lost, Wire
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
        with closing(Wire(ADDRESS)) as wire:
            while True:
                since, request = await due.get()
                is_success = False  # others count while this waits
                with suppress(OSError, Lost):
                    if not wire.is_connected or not keeps_alive:
                        await wire.connect(port)
                    is_success = (await wire.ask(request, seconds + timeout)).status == 200
                failed += not is_success
                times.append(loop.time() - since)
                unanswered.remove(since)
                due.task_done()

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
