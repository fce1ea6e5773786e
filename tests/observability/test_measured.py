"""Requests, decisions and queries as ``/metrics`` has them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import pytest

from petstore import __version__
from petstore.backends import create_limiter
from petstore.databases.backups import note_backup
from petstore.databases.contract import Statement, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import database_bytes
from petstore.errors import NotFound, Unavailable
from petstore.events.model import NewEvent
from petstore.events.store import record
from petstore.limits.decide import RateLimiter
from petstore.observability.hooks import observed_store
from petstore.observability.measured import Metrics, report_limiter
from petstore.settings import Settings
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.observed import (
    ObservedService,
    observed_service,
    port_of,
    read_from,
    read_metrics,
    registry_of_test,
)
from support.postgres import PostgresServer, database_name
from support.redis_server import RedisServer, redis_server
from support.stores import do, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BAN_SOON: dict[str, Any] = {"ban_strikes": 1, "ban_grace_seconds": 0}


async def get_banned(service: ObservedService, headers: dict[str, str]) -> None:
    """Send three requests with a key of one a minute: admitted, limited, banned."""
    for status in (200, 429, 429):
        service.clock.advance(1)
        assert (await service.client.get("/v1/pets", headers=headers)).status_code == status


async def test_requests_are_counted_by_operation_method_and_status(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        headers = await service.issue()
        for method, path in (
            ("GET", "/v1/pets"),
            ("GET", "/v1/pets"),
            ("HEAD", "/v1/pets"),
            ("GET", "/v1/pets?limit=0"),
        ):
            await service.client.request(method, path, headers=headers)
        samples = await service.metrics()
    name = 'petstore_requests_total{method="%s",operation="listPets",status="%d"}'
    assert samples[name % ("GET", 200)] == 2
    assert samples[name % ("HEAD", 200)] == 1
    assert samples[name % ("GET", 400)] == 1
    assert samples['petstore_request_duration_seconds_count{operation="listPets"}'] == 4
    assert samples['petstore_request_duration_seconds_bucket{le="+Inf",operation="listPets"}'] == 4
    assert samples['petstore_request_duration_seconds_sum{operation="listPets"}'] > 0


async def test_the_running_version_is_reported(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service:
        assert (await service.metrics())[f'petstore_build_info{{version="{__version__}"}}'] == 1


async def test_arbitrary_requests_do_not_create_new_labels(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        for n in range(5):
            await service.client.request(f"METHOD{n}", f"/v1/nothing/{n}")
        samples = await service.metrics()
    requests = {name: value for name, value in samples.items() if "requests_total" in name}
    assert requests == {
        'petstore_requests_total{method="other",operation="none",status="401"}': 5,
    }


async def test_bans_are_counted(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock, anonymous_per_minute=1, **BAN_SOON) as service:
        await get_banned(service, await service.issue(per_minute=1))
        assert (await service.metrics())["petstore_bans_total"] == 1


async def test_queries_are_timed_by_name_and_transactions_until_their_commit(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        headers = await service.issue()
        pet = {"name": "Bella", "categoryId": 1}
        added = await service.client.post("/v1/pets", headers=headers, json=pet)
        for _ in range(2):
            await service.client.get(added.headers["location"], headers=headers)
        samples = await service.metrics()
    queries = 'petstore_query_duration_seconds_%s{query="%s"}'
    assert samples[queries % ("count", "insert_pet")] == 1
    assert samples[queries % ("count", "select_pet")] == 2
    assert 0 < samples[queries % ("sum", "select_pet")] < 60  # seconds
    assert samples["petstore_transaction_duration_seconds_count"] >= 1
    assert samples["petstore_database_errors_total"] == 0


async def test_database_failures_are_counted(database: Path) -> None:
    async with open_store(database) as store:
        with registry_of_test() as registry:
            timed = observed_store(store, [Metrics(registry, Settings())])
            away = database.with_suffix(".away")
            database.rename(away)
            with pytest.raises(Unavailable):
                await timed.write(do("SELECT 1"))
            away.rename(database)
            await store.close()
            with pytest.raises(Unavailable):
                await timed.read(Statement("SELECT 1"))
            await store.open()
            async with read_from(registry) as samples:
                assert samples["petstore_database_errors_total"] == 2


async def test_the_disk_and_the_last_backup_are_reported(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        samples = await service.metrics()
        assert samples["petstore_last_backup_timestamp_seconds"] == 0
        assert samples["petstore_database_bytes"] > 10_000
        assert 0 < samples["petstore_disk_free_bytes"] < samples["petstore_disk_size_bytes"]
        note_backup(database, 1234.5)
        assert (await service.metrics())["petstore_last_backup_timestamp_seconds"] == 1234.5
        away = database.with_suffix(".away")
        database.rename(away)
        samples = await service.metrics()
    assert "petstore_database_bytes" not in samples
    assert samples["petstore_workers"] == samples["petstore_workers_configured"] == 1


def test_the_size_of_a_database_without_a_wal_is_reported(database: Path) -> None:
    database.write_bytes(b"123")
    assert database_bytes(database) == 3
    database.with_name(f"{database.name}-wal").write_bytes(b"45")
    assert database_bytes(database) == 5


ReadSample: TypeAlias = Callable[[str], Awaitable[float]]


@asynccontextmanager
async def measured_limiter(
    database: Path, redis: RedisServer, clock: ManualClock
) -> AsyncIterator[tuple[RateLimiter, SqliteStore, ReadSample]]:
    settings = Settings(redis=redis.url, ban_strikes=1, ban_grace_seconds=0)
    with registry_of_test() as registry:

        async def sample(name: str) -> float:
            samples = await asyncio.to_thread(read_metrics, port_of(registry))
            return samples[f"petstore_{name}"]

        async with open_store(database) as store, registry.running():
            limiter = create_limiter(settings, store, clock)
            report_limiter(registry, limiter)
            try:
                yield limiter, store, sample
            finally:
                await limiter.close()


async def test_a_ban_in_redis_is_counted_once(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, sample):
            for bans in (1, 2, 3):
                key = await issue_stored(store, clock, plan="enterprise", per_minute=1)
                is_banned = False
                while not is_banned:
                    # Several within one millisecond, so that one brings the ban and others meet it.
                    burst = await asyncio.gather(*(limiter.take(key) for _ in range(50)))
                    is_banned = burst[-1].verdict == "banned"
                for _ in range(200):  # which takes longer than a millisecond
                    await limiter.take(key)
                assert await sample("bans_total") == bans


async def test_a_fallback_without_redis_is_reported_and_counted(
    database: Path, clock: ManualClock
) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, sample):
            key = await issue_stored(store, clock)
            await limiter.take(key)
            assert await sample("limiter_fallback_workers") == 0
            redis.kill()
            await limiter.take(key)
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 1
            assert await sample("limiter_fallbacks_total") == 1
            redis.start()
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 0
            assert await sample("limiter_fallbacks_total") == 1


async def test_a_failed_heartbeat_counts_as_a_fallback(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, _, sample):
            redis.kill()
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 1


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
