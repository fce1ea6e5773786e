"""Requests, decisions, queries and deliveries as ``/metrics`` has them."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from petstore import __version__
from petstore.backends import create_limiter
from petstore.clock import SECOND
from petstore.databases.backups import note_backup
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import database_bytes
from petstore.errors import NotFound, Unavailable
from petstore.observability import metrics
from petstore.observability.hooks import End, observed_store, watch
from petstore.observability.measured import (
    Metrics,
    lag_meter,
    report_attempts,
    report_backlog,
    report_limiter,
)
from petstore.observability.registry import Registry, SharedMetrics
from petstore.settings import Settings
from petstore.webhooks.deliveries import make_deliveries
from petstore.webhooks.store import active_webhooks, take_leases
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.observed import observed_service, port_of, read_from, read_metrics, registry_of_test
from support.postgres import PostgresServer, database_name
from support.redis_server import redis_server
from support.stores import do, open_store
from support.waiting import eventually
from support.webhooks import add_events, add_webhook, issue_key

pytestmark = pytest.mark.anyio

LAG = "petstore_feed_lag_seconds"
PET = {"name": "Bella", "categoryId": 1, "status": "available"}


async def test_requests_queries_and_events_are_counted_by_name(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        client, headers = service.client, await service.issue()
        for method, path in (
            ("GET", "/v1/pets"),
            ("GET", "/v1/pets"),
            ("HEAD", "/v1/pets"),
            ("GET", "/v1/pets?limit=0"),
        ):
            await client.request(method, path, headers=headers)
        for number in range(5):
            await client.request(f"METHOD{number}", f"/v1/nothing/{number}")
        for _ in range(2):
            added = await client.post("/v1/pets", headers=headers, json=PET)
            await client.get(added.headers["location"], headers=headers)
        for status in (201, 409):
            placed = await client.post("/v1/store/orders", headers=headers, json={"petId": 1})
            assert placed.status_code == status
        samples = await service.metrics()
    assert samples[f'petstore_build_info{{version="{__version__}"}}'] == 1
    name = 'petstore_requests_total{method="%s",operation="%s",status="%d"}'
    assert samples[name % ("GET", "listPets", 200)] == 2
    assert samples[name % ("HEAD", "listPets", 200)] == 1
    assert samples[name % ("GET", "listPets", 400)] == 1
    # Requests of any kind do not make new labels.
    none = {each: count for each, count in samples.items() if 'operation="none",status' in each}
    assert none == {name % ("other", "none", 401): 5}
    assert samples['petstore_request_duration_seconds_count{operation="listPets"}'] == 4
    assert samples['petstore_request_duration_seconds_bucket{le="+Inf",operation="listPets"}'] == 4
    assert samples['petstore_request_duration_seconds_sum{operation="listPets"}'] > 0
    queries = 'petstore_query_duration_seconds_%s{query="%s"}'
    assert samples[queries % ("count", "insert_pet")] == 2
    assert samples[queries % ("count", "select_pet")] == 2
    assert 0 < samples[queries % ("sum", "select_pet")] < 60  # seconds
    assert samples["petstore_transaction_duration_seconds_count"] >= 1
    assert samples["petstore_database_errors_total"] == 0
    assert samples[LAG] == 0


def test_each_statement_of_a_unit_is_noted(database: Path) -> None:
    seen: list[str] = []

    def begin(statement: Statement) -> End:
        seen.append(statement.sql)
        return lambda _: seen.append("done")

    def unit() -> Unit[str]:
        rows = yield Statement("one")
        rows += yield Statement("two")
        return str(rows)

    running = watch(unit(), begin)
    assert next(running).sql == "one"
    assert running.send([(1,)]).sql == "two"
    with pytest.raises(StopIteration, match=r"\[\(1,\), \(3,\)\]"):
        running.send([(3,)])
    assert seen == ["one", "done", "two", "done"]
    store = SqliteStore(database)
    assert observed_store(store, ()) is store  # without observers nothing is in between


async def test_failures_of_the_database_are_counted_and_refusals_are_not(database: Path) -> None:
    def refused() -> Unit[None]:
        yield Statement("SELECT 1")
        raise NotFound("no such pet")

    async with open_store(database) as store:
        with registry_of_test() as registry:
            measured = observed_store(store, [Metrics(registry)])
            with pytest.raises(NotFound):
                await measured.write(refused())
            away = database.with_suffix(".away")
            database.rename(away)
            with pytest.raises(Unavailable):
                await measured.write(do("SELECT 1"))
            away.rename(database)
            await store.close()
            with pytest.raises(Unavailable):
                await measured.read(Statement("SELECT 1"))
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
        database.rename(database.with_suffix(".away"))
        samples = await service.metrics()
    assert "petstore_database_bytes" not in samples
    database.write_bytes(b"123")
    assert database_bytes(database) == 3  # without a WAL too
    assert samples["petstore_workers"] == samples["petstore_workers_configured"] == 1


# Decisions about limits


async def test_bans_are_counted(database: Path, clock: ManualClock) -> None:
    async with observed_service(
        database, clock, anonymous_per_minute=1, ban_strikes=1, ban_grace_seconds=0
    ) as service:
        headers = await service.issue(per_minute=1)
        for status in (200, 429, 429):  # admitted, limited, banned
            clock.advance(1)
            assert (await service.client.get("/v1/pets", headers=headers)).status_code == status
        assert (await service.metrics())["petstore_bans_total"] == 1


async def test_with_redis_each_ban_and_each_fallback_is_counted_once(
    database: Path, clock: ManualClock
) -> None:
    """Whether a request or the heartbeat of the connection notices a fallback first."""
    with redis_server() as redis, registry_of_test() as registry:
        settings = Settings(redis=redis.url, ban_strikes=1, ban_grace_seconds=0)

        async def sample(name: str) -> float:
            samples = await asyncio.to_thread(read_metrics, port_of(registry))
            return samples[f"petstore_{name}"]

        async with open_store(database) as store, registry.running():
            limiter = create_limiter(settings, store, clock)
            report_limiter(registry, limiter)
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
            key = await issue_stored(store, clock)
            await limiter.take(key)
            assert await sample("limiter_fallback_workers") == 0
            for fallbacks in (1, 2):
                redis.kill()
                if fallbacks == 1:
                    await limiter.take(key)
                await limiter.heartbeat()
                assert await sample("limiter_fallback_workers") == 1
                assert await sample("limiter_fallbacks_total") == fallbacks
                redis.start()
                await limiter.heartbeat()
                assert await sample("limiter_fallback_workers") == 0
                assert await sample("limiter_fallbacks_total") == fallbacks
            await limiter.close()


# The feed


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


async def test_the_feed_lag_is_the_age_of_the_oldest_unpublished_event(
    postgres: PostgresServer, postgres_url: str, clock: ManualClock
) -> None:
    async with observed_service(postgres_url, clock) as service:

        async def is_late() -> bool:
            return (await service.metrics())[LAG] == 15

        async def is_on_time() -> bool:
            return (await service.metrics())[LAG] == 0

        headers = await service.issue()
        publisher_lock = f"SELECT pg_advisory_xact_lock({0x45564E54})"
        with postgres.transaction(database_name(postgres_url), publisher_lock):
            for seconds in (12, 3):
                added = await service.client.post("/v1/pets", headers=headers, json=PET)
                assert added.status_code == 201
                clock.advance(seconds)
            await eventually(is_late)
        await eventually(is_on_time)
        samples = await service.metrics()
    most = Settings().database_connections
    assert 0 <= samples["petstore_pool_connections_in_use"] <= most
    assert samples["petstore_pool_connections_max"] == most


# Deliveries


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Registry(SharedMetrics(listener, tmp_path), "1.2.3", serves=False)


async def lines(registry: Registry) -> list[str]:
    return (await registry.exposition())[1].decode().splitlines()


async def test_attempts_are_counted_by_outcome(registry: Registry) -> None:
    note_attempt = report_attempts(registry)
    for state in ("succeeded", "succeeded", "pending", "failed"):
        note_attempt(state, 0.02)
    assert {
        'petstore_deliveries_total{outcome="succeeded"} 2.0',
        'petstore_deliveries_total{outcome="failed"} 1.0',
        'petstore_deliveries_total{outcome="abandoned"} 1.0',
        'petstore_delivery_duration_seconds_bucket{le="0.01"} 0.0',
        'petstore_delivery_duration_seconds_bucket{le="0.025"} 4.0',
        "petstore_workers 0.0",
    } <= {*await lines(registry)}


@pytest.mark.each_database
async def test_the_age_of_the_oldest_undelivered_event_and_disabled_webhooks_are_reported(
    registry: Registry, store: Store, clock: ManualClock
) -> None:
    report_backlog(registry, store, "production", clock)
    (measure,) = registry.periodic_tasks
    await measure.action()
    assert "petstore_oldest_delivery_seconds 0.0" in await lines(registry)
    await store.close()
    clock.advance(60)
    with pytest.raises(Unavailable):
        await measure.action()
    assert "petstore_oldest_delivery_seconds 60.0" in await lines(registry)  # it grew meanwhile
    await store.open()

    await add_webhook(store, await issue_key(store))
    await add_events(store, [clock() - 90 * SECOND, clock() - 80 * SECOND])
    await measure.action()
    assert "petstore_oldest_delivery_seconds 0.0" in await lines(registry)
    await store.write(do("UPDATE webhooks SET position = 0"))  # as if no process had seen them
    await measure.action()
    assert "petstore_oldest_delivery_seconds 90.0" in await lines(registry)

    webhooks = await active_webhooks(store, "production", clock())
    await store.write(take_leases("me", webhooks, clock()))
    await store.write(make_deliveries("me", webhooks, 2, clock()))
    clock.advance(70)
    await measure.action()
    assert "petstore_oldest_delivery_seconds 70.0" in await lines(registry)
    assert "petstore_webhooks_disabled 0.0" in await lines(registry)

    await store.write(do("UPDATE webhooks SET enabled = 0, disabled_reason = 'failing'"))
    await measure.action()
    assert "petstore_webhooks_disabled 1.0" in await lines(registry)


# How metrics are called, and the process


DASHBOARD = json.loads((Path(__file__).parents[2] / "deploy/grafana-dashboard.json").read_text())
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def test_the_dashboard_queries_every_metric_and_no_other_and_its_panels_fit_the_grid() -> None:
    exposed = {f"{metric.name}{end}" for metric in metrics.METRICS for end in ENDINGS[metric.kind]}
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries += [
        variable["query"]["query"]
        for variable in DASHBOARD["templating"]["list"]
        if variable["type"] == "query"
    ]
    queried = {name for query in queries for name in re.findall(r"(?:petstore|process)_\w+", query)}
    assert queried - exposed == set()
    assert {name for name in exposed if not re.search(r"_(bucket|count|sum)$", name)} <= queried
    labels = {name for query in queries for name in re.findall(r"(\w+)=~?\"", query)}
    for names in re.findall(r"(?:by|on|group_left) \(([\w, ]+)\)", " ".join(queries)):
        labels |= set(names.split(", "))
    assert labels <= {"job", "instance", "le"}.union(*(metric.labels for metric in metrics.METRICS))
    for query in queries:
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in DASHBOARD["panels"]:
        position = panel["gridPos"]
        assert 0 <= position["x"] < position["x"] + position["w"] <= 24, panel["title"]


async def test_a_slow_iteration_of_the_event_loop_is_counted_in_the_bucket_of_its_upper_bound() -> (
    None
):
    sample = metrics.LAG.zero()
    for value in (0.001, 0.002, 0.25, 1000):
        metrics.observe(sample, metrics.LAG, value)
    assert sample == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1000.253]
    sample, moments = metrics.LAG.zero(), iter((0.0, 0.1, 0.5))
    measure_lag = lag_meter(sample, lambda: next(moments))
    for _ in range(3):
        await measure_lag()
    assert sample == [2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, pytest.approx(0.3)]


async def test_the_process_metrics_have_the_standard_prometheus_names() -> None:
    with registry_of_test(worker_id=3) as registry:
        async with read_from(registry) as samples:
            labels = '{worker="3"}'
            assert time.time() - 20 < samples[f"process_start_time_seconds{labels}"] < time.time()
            assert 0 < samples[f"process_cpu_seconds_total{labels}"] <= time.process_time()
            assert 10**6 < samples[f"process_resident_memory_bytes{labels}"] < 10**10
            assert 3 < samples[f"process_open_fds{labels}"] < samples[f"process_max_fds{labels}"]
            assert samples['petstore_event_loop_lag_seconds_bucket{le="+Inf"}'] >= 0
