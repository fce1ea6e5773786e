"""However many threads and tasks share a client, its key is never banned and nothing done twice."""

import asyncio
import heapq
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import CapacityLimiter, to_thread

from petstore.databases.contract import Statement
from petstore_client import AsyncClient, Client, PetstoreError, RateLimited
from support.client_faces import by_the_time_of
from support.manual_clock import ManualClock
from support.service import Service, fields, running_service

pytestmark = pytest.mark.anyio

WORKERS = 50
PER_MINUTE = 30
EACH = 3


class VirtualTime:
    """Moves on to the end of the next sleep when all workers sleep: tasks or threads."""

    def __init__(self, moved: Callable[[float], object]) -> None:
        self.moment = 0.0
        self._moved = moved
        self._workers = WORKERS
        self._sleeping: list[tuple[float, int, asyncio.Event]] = []
        self._numbers = count()
        self._loop = asyncio.get_running_loop()

    def now(self) -> float:
        return self.moment

    def random(self) -> float:
        return random.random()  # noqa: S311 - it spreads retries

    def sleep(self, seconds: float) -> None:
        asyncio.run_coroutine_threadsafe(self.pause(seconds), self._loop).result()

    async def pause(self, seconds: float) -> None:
        over = asyncio.Event()
        heapq.heappush(self._sleeping, (self.moment + seconds, next(self._numbers), over))
        self._move_if_all_sleep()
        await over.wait()

    async def run(self, work: Callable[[int], Awaitable[None]]) -> None:
        async def run(worker: int) -> None:
            try:
                await work(worker)
            finally:
                self._workers -= 1
                self._move_if_all_sleep()

        await asyncio.gather(*(run(worker) for worker in range(WORKERS)))

    def _move_if_all_sleep(self) -> None:
        if not self._sleeping or len(self._sleeping) < self._workers:
            return
        moment = self._sleeping[0][0]
        self._moved(moment - self.moment)
        self.moment = moment
        while self._sleeping and self._sleeping[0][0] <= moment:
            heapq.heappop(self._sleeping)[2].set()


class SlowService(httpx2.AsyncBaseTransport, httpx2.BaseTransport):
    """Hands requests to a service, each on its way for up to ``seconds``, and back.

    Of 20 requests it loses one, and of as many the response. ``outcomes`` counts the responses by
    their code, ``ok`` for successes.
    """

    def __init__(self, service: Service, time: VirtualTime, seconds: float) -> None:
        self.outcomes: Counter[str] = Counter()
        self._service = service
        self._time = time
        self._seconds = seconds
        self._random = random.Random(7)  # noqa: S311 - the same at each run
        self._loop = asyncio.get_running_loop()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._travel(httpx2.ConnectError)
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        response = await self._service.call(
            request.method, request.url.raw_path, headers, request.content, b""
        )
        is_success = response.status < httpx2.codes.BAD_REQUEST
        self.outcomes["ok" if is_success else json.loads(response.body)["code"]] += 1
        await self._travel(httpx2.ReadError)
        return httpx2.Response(response.status, headers=fields(response), content=response.body)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        handling = self.handle_async_request(request)
        return asyncio.run_coroutine_threadsafe(handling, self._loop).result()

    async def _travel(self, error: type[httpx2.NetworkError]) -> None:
        await self._time.pause(self._random.random() * self._seconds)
        if self._random.random() < 1 / 20:
            msg = "lost"
            raise error(msg)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(tmp_path / "petstore.db", ManualClock()) as service:
        yield service


@pytest.mark.parametrize(("workers", "seconds"), [("tasks", 0.01), ("tasks", 4), ("threads", 4)])
async def test_fifty_workers_on_a_key_of_30_per_minute_do_each_task_once(
    service: Service, workers: str, seconds: float
) -> None:
    time = VirtualTime(service.clock.advance)
    slow = SlowService(service, time, seconds)
    token = (await service.issue(per_minute=PER_MINUTE)).token
    settings: dict[str, Any] = {"transport": slow, "max_wait": 10_000, "max_retries": 20}
    tasks, threads = AsyncClient(token, **settings), Client(token, **settings)
    all_at_once = CapacityLimiter(WORKERS)

    async def work(worker: int) -> None:
        for number in range(EACH):
            pet: dict[str, Any] = {"name": f"pet {worker}-{number}", "category_id": 1}
            if workers == "tasks":
                await tasks.pets.create(**pet)
            else:
                create = partial(threads.pets.create, **pet)
                await to_thread.run_sync(create, limiter=all_at_once)

    with by_the_time_of(time):
        await time.run(work)
    rows = await service.store.read(Statement("SELECT name FROM pets", name="select_names"))
    each_once = {(f"pet {worker}-{number}",) for worker in range(WORKERS) for number in range(EACH)}
    assert Counter(rows) == Counter(each_once)
    assert "api_key_banned" not in slow.outcomes
    # A full window is waited out without a refusal, and the service never sees a burst.
    assert slow.outcomes["rate_limit_exceeded"] <= PER_MINUTE / 2


async def test_a_program_that_does_not_wait_is_not_banned(service: Service) -> None:
    time = VirtualTime(service.clock.advance)
    slow = SlowService(service, time, 1)
    token = (await service.issue(per_minute=PER_MINUTE)).token
    client = AsyncClient(token, transport=slow, max_wait=0)
    refused = 0

    async def work(_worker: int) -> None:
        nonlocal refused
        while time.now() < 3 * 60:
            try:
                await client.pets.get(1)
            except RateLimited:
                refused += 1
            except PetstoreError:
                continue
            await time.pause(1)

    with by_the_time_of(time):
        await time.run(work)
    assert refused > 1000
    assert slow.outcomes["ok"] > 2 * PER_MINUTE
    assert slow.outcomes["rate_limit_exceeded"] < 200
    assert "api_key_banned" not in slow.outcomes
