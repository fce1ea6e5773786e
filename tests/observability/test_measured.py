"""Requests, decisions and queries as ``/metrics`` has them."""

from pathlib import Path
from typing import Any

import pytest

from petstore import __version__
from petstore.databases.backups import note_backup
from petstore.databases.contract import Statement
from petstore.databases.sqlite_files import database_bytes
from petstore.errors import Unavailable
from petstore.observability.hooks import observed_store
from petstore.observability.measured import Metrics
from petstore.settings import Settings
from support.manual_clock import ManualClock
from support.observed import ObservedService, observed_service, read_from, registry_of_test
from support.stores import do, open_store

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
