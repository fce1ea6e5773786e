"""However many threads and tasks share a client, its key is never banned and nothing done twice."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from petstore.databases.contract import Statement
from petstore_client import AsyncClient, Client, PetstoreError, RateLimited
from support.client_faces import by_the_time_of
from support.client_transports import SlowService, TaskTransport, ThreadTransport
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.virtual_time import VirtualTime

pytestmark = pytest.mark.anyio

WORKERS = 50
PER_MINUTE = 30
EACH = 3


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(tmp_path / "petstore.db", ManualClock()) as service:
        yield service


def name_of(worker: int, number: int) -> str:
    return f"pet {worker}-{number}"


async def names_in(service: Service) -> list[str]:
    rows = await service.store.read(Statement("SELECT name FROM pets", name="select_names"))
    return sorted(name for (name,) in rows)


ALL = sorted(name_of(worker, number) for worker in range(WORKERS) for number in range(EACH))


async def create(service: Service, workers: str, seconds: float) -> SlowService:
    """Let 50 tasks or threads create pets by one client; return what the service responded."""
    time = VirtualTime(WORKERS, service.clock.advance)
    slow, token = (
        SlowService(service, time, seconds),
        (await service.issue(per_minute=PER_MINUTE)).token,
    )
    settings: dict[str, Any] = {"max_wait": 10_000, "max_retries": 20}
    tasks = AsyncClient(token, transport=TaskTransport(slow), **settings)
    threads = Client(token, transport=ThreadTransport(slow), **settings)

    async def work(worker: int) -> None:
        for number in range(EACH):
            await tasks.pets.create(name=name_of(worker, number), category_id=1)

    def work_in_thread(worker: int) -> None:
        for number in range(EACH):
            threads.pets.create(name=name_of(worker, number), category_id=1)

    with by_the_time_of(time):
        if workers == "tasks":
            await time.run_tasks(work)
        else:
            await anyio.to_thread.run_sync(time.run_threads, work_in_thread)
    return slow


@pytest.mark.parametrize(("workers", "seconds"), [("tasks", 0.01), ("tasks", 4), ("threads", 4)])
async def test_fifty_workers_on_a_key_of_30_per_minute_do_each_task_once(
    service: Service, workers: str, seconds: float
) -> None:
    slow = await create(service, workers, seconds)
    assert await names_in(service) == ALL
    assert "api_key_banned" not in slow.outcomes
    # A full window is waited out without a refusal, and the service never sees a burst.
    assert slow.outcomes["rate_limit_exceeded"] <= PER_MINUTE / 2


async def test_a_program_that_does_not_wait_is_not_banned(service: Service) -> None:
    time = VirtualTime(WORKERS, service.clock.advance)
    slow = SlowService(service, time, 1)
    client = AsyncClient(
        (await service.issue(per_minute=PER_MINUTE)).token,
        transport=TaskTransport(slow),
        max_wait=0,
    )
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
        await time.run_tasks(work)
    assert refused > 1000
    assert slow.outcomes["ok"] > 2 * PER_MINUTE
    assert slow.outcomes["rate_limit_exceeded"] < 200
    assert "api_key_banned" not in slow.outcomes
