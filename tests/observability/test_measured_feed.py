"""Events, their feed and its long polls, as ``/metrics`` has them."""

import asyncio
import json
from pathlib import Path
from time import perf_counter

import pytest

from petstore.databases.contract import Statement, Unit
from petstore.errors import NotFound
from petstore.events.model import NewEvent
from petstore.events.store import record
from petstore.observability.hooks import observed_store
from petstore.observability.measured import Metrics
from petstore.settings import Settings
from support.manual_clock import ManualClock
from support.observed import ObservedService, observed_service, read_from, registry_of_test
from support.postgres import PostgresServer, database_name
from support.stores import open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

WRITTEN = 'petstore_events_written_total{type="%s"}'
LAG = "petstore_feed_lag_seconds"
PET = {"name": "Bella", "categoryId": 1, "status": "available"}
PUBLISHER_LOCK = 0x45564E54


def told(event: Statement, error: Exception | None = None) -> Unit[None]:
    """Record an event, and then perhaps fail."""
    yield event
    if error is not None:
        raise error


async def add_pet(service: ObservedService, headers: dict[str, str]) -> None:
    response = await service.client.post("/v1/pets", headers=headers, json=PET)
    assert response.status_code == 201


async def test_committed_events_are_counted_by_type(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service:
        headers = await service.issue()
        for _ in range(2):
            await add_pet(service, headers)
        for status in (201, 409):
            order = {"petId": 1}
            placed = await service.client.post("/v1/store/orders", headers=headers, json=order)
            assert placed.status_code == status
        samples = await service.metrics()
    counted = {name: value for name, value in samples.items() if "events_written" in name}
    assert counted == {
        WRITTEN % "key.created": 1,
        WRITTEN % "pet.created": 2,
        WRITTEN % "order.placed": 1,
        WRITTEN % "pet.updated": 1,
    }


async def test_an_event_that_was_rolled_back_is_not_counted(database: Path) -> None:
    event = record(0, NewEvent("pet.created", "pet/1", {}))
    async with open_store(database) as store:
        with registry_of_test() as registry:
            measured = observed_store(store, [Metrics(registry, Settings())])
            with pytest.raises(NotFound):
                await measured.write(told(event, NotFound("no such pet")))
            await measured.write(told(event))
            async with read_from(registry) as samples:
                assert samples[WRITTEN % "pet.created"] == 1


async def test_a_waiting_long_poll_is_counted_but_not_timed(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        headers = await service.issue()
        began = perf_counter()
        polling = asyncio.create_task(service.client.get("/v1/events?wait=2", headers=headers))

        async def is_waiting() -> bool:
            return (await service.metrics())["petstore_long_polls"] == 1

        await eventually(is_waiting)
        assert (await polling).json() == []
        seconds = perf_counter() - began
        samples = await service.metrics()
    line = json.loads(service.log.getvalue())
    assert line["operation"] == "listEvents"
    # On a busy machine the work before the wait takes a part of the two seconds.
    assert 0 < line["milliseconds"] / 1000 < seconds - 0.5
    assert samples["petstore_long_polls"] == 0
    assert samples['petstore_request_duration_seconds_count{operation="listEvents"}'] == 1
    assert samples['petstore_request_duration_seconds_sum{operation="listEvents"}'] < seconds - 0.5


async def test_events_in_sqlite_have_no_publication_lag(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service:
        await add_pet(service, await service.issue())
        assert (await service.metrics())[LAG] == 0


async def test_the_feed_lag_is_the_age_of_the_oldest_unpublished_event(
    postgres: PostgresServer, postgres_url: str, clock: ManualClock
) -> None:
    async with observed_service(postgres_url, clock) as service:

        async def is_late() -> bool:
            return (await service.metrics())[LAG] == 15

        async def is_on_time() -> bool:
            return (await service.metrics())[LAG] == 0

        headers = await service.issue()
        lock = f"SELECT pg_advisory_xact_lock({PUBLISHER_LOCK})"
        with postgres.transaction(database_name(postgres_url), lock):
            await add_pet(service, headers)
            clock.advance(12)
            await add_pet(service, headers)
            clock.advance(3)
            await eventually(is_late)
        await eventually(is_on_time)
