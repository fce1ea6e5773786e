"""What the service tells Prometheus of itself."""

import asyncio
import os
import re
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from petstore import __version__
from petstore.app import create_limiter, metrics_at
from petstore.clock import MINUTE
from petstore.databases.contract import Duplicate, Statement, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import database_bytes, note_backup
from petstore.errors import Unavailable
from petstore.observability.board import Board
from petstore.observability.counted_trips import CountedTrips
from petstore.observability.event_loop import LoopLag
from petstore.observability.figures import (
    BANS,
    BUILD,
    COMMITS,
    COUNTERS,
    GAUGES,
    HISTOGRAMS,
    LAG,
    Figures,
    Metric,
    empty_spread,
    spread_of,
)
from petstore.observability.metrics import NO_METRICS, Metrics
from petstore.observability.observed_units import observed
from petstore.observability.place import open_place
from petstore.rate_limits.contract import RateLimiter
from petstore.rate_limits.trips import OutOfReach, connect
from petstore.settings import Settings
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.observed import ObservedService, Samples, observed_service, read_metrics
from support.patience import eventually
from support.redis_server import RedisServer, redis_server
from support.stores import do, open_store

pytestmark = pytest.mark.anyio

Told: TypeAlias = Callable[[str], Awaitable[float]]

BAN_SOON: dict[str, Any] = {
    "ban_strikes": 1,
    "ban_strikes_divisor": 10**9,
    "ban_grace_seconds": 0,
}
HTTP = "GET /metrics HTTP/1.1\r\nHost: petstore\r\n"


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
        told = await service.metrics()
    name = 'petstore_requests_total{method="%s",operation="listPets",status="%d"}'
    assert told[name % ("GET", 200)] == 2
    assert told[name % ("HEAD", 200)] == 1
    assert told[name % ("GET", 400)] == 1
    assert told['petstore_request_duration_seconds_count{operation="listPets"}'] == 4
    assert told['petstore_request_duration_seconds_bucket{le="+Inf",operation="listPets"}'] == 4
    assert told['petstore_request_duration_seconds_sum{operation="listPets"}'] > 0


async def test_the_version_that_runs_is_told(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service:
        assert (await service.metrics())[f'petstore_build_info{{version="{__version__}"}}'] == 1


async def test_whatever_callers_send_the_labels_stay_few(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        for n in range(5):
            await service.client.request(f"METHOD{n}", f"/v1/nothing/{n}")
        told = await service.metrics()
    requests = {name: value for name, value in told.items() if "requests_total" in name}
    assert requests == {
        'petstore_requests_total{method="other",operation="none",status="401"}': 5,
    }


async def test_decisions_and_bans_are_counted(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock, anonymous_per_minute=1, **BAN_SOON) as service:
        await get_banned(service, await service.issue(per_minute=1))
        await service.client.get("/v1/pets")
        await service.client.get("/v1/pets")
        told = await service.metrics()
    decisions = 'petstore_limiter_decisions_total{verdict="%s"}'
    assert told[decisions % "admitted"] == 2
    assert told[decisions % "limited"] == 2
    assert told[decisions % "banned"] == 1
    assert told["petstore_bans_total"] == 1


async def test_a_request_while_banned_is_no_other_ban(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock, **BAN_SOON) as service:
        headers = await service.issue(per_minute=1)
        await get_banned(service, headers)
        await service.client.get("/v1/pets", headers=headers)
        assert (await service.metrics())["petstore_bans_total"] == 1


async def test_replays_lapsed_reservations_and_commits_are_counted(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock, reservation_minutes=1) as service:
        headers = await service.issue()
        before = await service.metrics()
        pet = {"name": "Bella", "categoryId": 1, "status": "available"}
        retried = {**headers, "Idempotency-Key": "first"}
        for _ in range(2):
            added = await service.client.post("/v1/pets", headers=retried, json=pet)
        order = {"petId": added.json()["id"]}
        placed = await service.client.post("/v1/store/orders", headers=headers, json=order)
        assert placed.status_code == 201
        clock.advance(2 * MINUTE)
        await service.client.get("/v1/pets", headers=headers)
        told = await service.metrics()
    assert told["petstore_replays_total"] == 1
    assert told["petstore_reservations_lapsed_total"] == 1
    commits = "petstore_commit_changes_count"
    # Two requests to add, an order, its lapse, and counts that are saved meanwhile.
    assert told[commits] - before.get(commits, 0) >= 4


async def test_queries_are_timed_by_name_and_transactions_to_their_commit(
    database: Path, clock: ManualClock
) -> None:
    async with observed_service(database, clock) as service:
        headers = await service.issue()
        pet = {"name": "Bella", "categoryId": 1}
        added = await service.client.post("/v1/pets", headers=headers, json=pet)
        for _ in range(2):
            await service.client.get(added.headers["location"], headers=headers)
        told = await service.metrics()
    queries = 'petstore_query_duration_seconds_%s{database="primary",query="%s"}'
    assert told[queries % ("count", "insert_pet")] == 1
    assert told[queries % ("count", "select_pet")] == 2
    assert 0 < told[queries % ("sum", "select_pet")] < 1
    assert told['petstore_transaction_duration_seconds_count{database="primary"}'] >= 1
    assert told['petstore_database_errors_total{database="primary"}'] == 0


async def test_what_the_database_does_not_do_is_counted(database: Path) -> None:
    async with open_store(database) as store:
        with metrics_of_test() as metrics:
            timed = metrics.of_store(store, "primary")
            away = database.with_suffix(".away")
            database.rename(away)
            for failing in (timed.check(), timed.write(do("SELECT 1"))):
                with pytest.raises(Unavailable):
                    await failing
            away.rename(database)
            await store.close()
            with pytest.raises(Unavailable):
                await timed.read(Statement("SELECT 1"))
            await store.open()
            async with told_of(metrics) as told:
                assert told['petstore_database_errors_total{database="primary"}'] == 3


def test_a_unit_of_work_is_looked_at_statement_by_statement() -> None:
    seen: list[str] = []

    def begin(statement: Statement) -> Callable[[], None]:
        seen.append(statement.sql)
        return lambda: seen.append("done")

    def unit() -> Unit[str]:
        rows = yield Statement("one")
        try:
            yield Statement("two")
        except Duplicate:
            rows += yield Statement("three")
        return str(rows)

    running = observed(unit(), begin)
    assert next(running).sql == "one"
    assert running.send([(1,)]).sql == "two"
    assert running.throw(Duplicate()).sql == "three"
    with pytest.raises(StopIteration, match=r"\[\(1,\), \(3,\)\]"):
        running.send([(3,)])
    assert seen == ["one", "done", "two", "done", "three", "done"]


async def test_a_slow_turn_of_the_event_loop_is_told() -> None:
    spread, moments = empty_spread(LAG), iter((0.0, 0.1, 0.5))
    lag = LoopLag(spread, lambda: next(moments))
    for _ in range(3):
        await lag.sample()
    assert spread.buckets == [2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert spread.sum == pytest.approx(0.3)


async def test_the_process_is_told_by_the_names_that_prometheus_has_for_it() -> None:
    with metrics_of_test(seat=3) as metrics:
        async with told_of(metrics) as told:
            of = '{worker="3"}'
            assert time.time() - 20 < told[f"process_start_time_seconds{of}"] < time.time()
            assert 0 < told[f"process_cpu_seconds_total{of}"] <= time.process_time()
            assert 10**6 < told[f"process_resident_memory_bytes{of}"] < 10**10
            assert 3 < told[f"process_open_fds{of}"] < told[f"process_max_fds{of}"]
            assert told['petstore_event_loop_lag_seconds_bucket{le="+Inf"}'] >= 0


async def test_the_disk_and_the_last_backup_are_told(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service:
        told = await service.metrics()
        assert told["petstore_last_backup_timestamp_seconds"] == 0
        assert told["petstore_database_bytes"] > 10_000
        assert 0 < told["petstore_disk_free_bytes"] < told["petstore_disk_size_bytes"]
        note_backup(database, 1234.5)
        assert (await service.metrics())["petstore_last_backup_timestamp_seconds"] == 1234.5
        away = database.with_suffix(".away")
        database.rename(away)
        told = await service.metrics()
        away.rename(database)
    assert "petstore_database_bytes" not in told
    assert told["petstore_workers"] == told["petstore_workers_configured"] == 1


def test_a_file_without_a_log_has_a_size_too(database: Path) -> None:
    database.write_bytes(b"123")
    assert database_bytes(database) == 3
    database.with_name(f"{database.name}-wal").write_bytes(b"45")
    assert database_bytes(database) == 5


def test_values_are_spread_over_buckets_by_their_upper_ends() -> None:
    spread = spread_of(COMMITS, {1: 5, 2: 1, 3: 1, 1000: 2})
    assert spread.buckets == [5, 1, 1, 0, 0, 0, 0, 0, 0, 2]
    assert spread.sum == 2010


async def test_without_metrics_nothing_comes_between(database: Path, clock: ManualClock) -> None:
    async with open_store(database) as store:
        limiter = create_limiter(Settings(), store, clock)
        assert NO_METRICS.of_limiter(limiter) is limiter
        redis = Settings(redis="redis://127.0.0.1:1")
        assert type(vars(create_limiter(redis, store, clock))["_trips"]) is not CountedTrips


async def test_anything_but_metrics_is_not_found(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service, httpx.AsyncClient() as other:
        place = f"http://127.0.0.1:{service.metrics_port}"
        assert (await other.get(f"{place}/")).status_code == 404
        assert (await other.post(f"{place}/metrics")).status_code == 404
        answer = await other.get(f"{place}/metrics?name=x")
        assert answer.headers["content-type"].startswith("text/plain; version=")


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ("", b""),
        ("GET /metr", b""),
        (HTTP, b""),
        (f"{HTTP}X: {'x' * 9000}\r\n\r\n", b""),
        ("\0\r\n\r\n", b"HTTP/1.1 404"),
    ],
)
async def test_what_is_no_request_is_closed_and_harms_nobody(
    database: Path, clock: ManualClock, sent: str, answer: bytes
) -> None:
    async with observed_service(database, clock) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.metrics_port)
        writer.write(sent.encode())
        writer.write_eof()
        assert (await reader.read())[:12] == answer
        writer.close()
        assert (await service.metrics())["petstore_workers"] == 1


async def test_metrics_that_cannot_be_told_cost_the_service_nothing(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, open_place(listener) as place:
        folder = tmp_path / "place"
        folder.mkdir()
        metrics = Metrics(place._replace(folder=folder), "1.0.0")
        async with metrics.running():
            shutil.rmtree(folder)
            port = place.listener.getsockname()[1]
            async with httpx.AsyncClient() as client:
                answer = await client.get(f"http://127.0.0.1:{port}/metrics")
            assert answer.status_code == 500
            await eventually(lambda: "metrics not published" in caplog.text)
    assert "metrics cannot be told" in caplog.text


def figures(bans: int) -> Figures:
    """Return figures of a process with so many bans."""
    spread = spread_of(COMMITS, {1: bans})
    return Figures(
        {BANS.name: {(): bans}}, {"workers": {(): 1}}, {COMMITS.metric.name: {(): spread}}
    )


def sit_down(folder: Path, seat: int, bans: int) -> Board:
    """Take a seat as a process does, and put figures down."""
    board = Board(folder, seat)
    board.put(board.encoded(figures(bans)))
    return board


def test_the_figures_of_processes_add_up(tmp_path: Path) -> None:
    mine, other = sit_down(tmp_path, 0, 1), sit_down(tmp_path, 1, 2)
    total = mine.total()
    assert total.counters == {BANS.name: {(): 3}}
    assert total.gauges == {"workers": {(): 2}}
    assert total.histograms[COMMITS.metric.name][()].buckets[0] == 3
    assert other.total() == total


def test_a_process_goes_on_from_what_was_counted_at_its_seat(tmp_path: Path) -> None:
    for bans in (1, 10, 100):
        board = sit_down(tmp_path, 0, bans)
        board.put(board.encoded(figures(2 * bans)))
    total = board.total()
    assert total.counters == {BANS.name: {(): 222}}
    assert total.gauges == {"workers": {(): 1}}
    assert total.histograms[COMMITS.metric.name][()].buckets[0] == 222
    assert [file.name for file in tmp_path.iterdir()] == ["0"]


def test_what_a_process_counted_outlives_it_and_its_gauges_do_not(tmp_path: Path) -> None:
    board = sit_down(tmp_path, 0, 1)
    sit_down(tmp_path, 1, 10)
    long_ago = time.time() - 4
    os.utime(tmp_path / "1", (long_ago, long_ago))
    total = board.total()
    assert total.counters == {BANS.name: {(): 11}}
    assert total.gauges == {"workers": {(): 1}}


@pytest.mark.parametrize("is_killed", [False, True])
async def test_only_a_worker_that_ended_without_a_clean_stop_has_crashed(
    tmp_path: Path, *, is_killed: bool
) -> None:
    with metrics_of_test(folder=tmp_path) as metrics:
        async with told_of(metrics) as told:
            assert told["petstore_worker_crashes_total"] == 0
            left = (tmp_path / "0").read_bytes()
    if is_killed:  # and so it put down nothing more
        (tmp_path / "0").write_bytes(left)
    with metrics_of_test(folder=tmp_path) as metrics:
        async with told_of(metrics) as told:
            assert told["petstore_worker_crashes_total"] == is_killed
            assert told["petstore_workers"] == 1


async def test_a_worker_that_ends_while_it_puts_figures_down_has_not_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, slow = Board.put, asyncio.Event()
    loop = asyncio.get_running_loop()

    def put_slowly(board: Board, encoded: bytes) -> None:
        if is_serving:
            loop.call_soon_threadsafe(slow.set)
            time.sleep(0.3)
        put(board, encoded)

    is_serving = False
    monkeypatch.setattr(Board, "put", put_slowly)
    with metrics_of_test(folder=tmp_path) as metrics:
        async with metrics.running():
            is_serving = True
            await slow.wait()
            is_serving = False
    await asyncio.sleep(0.4)
    assert not Board(tmp_path, 0).is_after_crash


METRIC_ROW = re.compile(r"^\| (`[^|]+`) \| (counter|gauge|histogram) \| [^|]+ \|$", re.MULTILINE)


def test_the_page_on_monitoring_lists_every_metric_with_its_kind_and_labels() -> None:
    page = (Path(__file__).parent.parent / "docs/monitoring.md").read_text()
    listed = {
        (name, kind)
        for names, kind in METRIC_ROW.findall(page)
        for name in re.findall(r"`([^`]+)`", names)
    }

    def written(metric: Metric, ending: str = "") -> str:
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        return f"{metric.name}{ending}{labels}"

    assert listed == {
        *((written(metric, "_total"), "counter") for metric in COUNTERS),
        *((written(metric), "gauge") for metric in (*GAUGES, BUILD)),
        *((written(histogram.metric), "histogram") for histogram in HISTOGRAMS),
    }


@contextmanager
def metrics_of_test(seat: int = 0, folder: Path | None = None) -> Iterator[Metrics]:
    """Give the metrics of a process at a seat, perhaps one with a folder that is there."""
    with socket.create_server(("127.0.0.1", 0)) as listener, open_place(listener) as place:
        metrics = metrics_at(place._replace(folder=folder or place.folder, seat=seat))
        assert isinstance(metrics, Metrics)
        yield metrics


@asynccontextmanager
async def told_of(metrics: Metrics) -> AsyncIterator[Samples]:
    """Give what running metrics tell at once."""
    async with metrics.running():
        port = vars(metrics)["_listener"].getsockname()[1]
        yield await asyncio.to_thread(read_metrics, port)


@asynccontextmanager
async def measured_limiter(
    database: Path, redis: RedisServer, clock: ManualClock
) -> AsyncIterator[tuple[RateLimiter, SqliteStore, Told]]:
    """Give a limiter in Redis, its store, and a function that returns a sample by its name."""
    settings = Settings(redis=redis.url, **BAN_SOON)
    with socket.create_server(("127.0.0.1", 0)) as listener, open_place(listener) as place:
        metrics = Metrics(place, "1.0.0")

        async def told(name: str) -> float:
            port = place.listener.getsockname()[1]
            return (await asyncio.to_thread(read_metrics, port))[f"petstore_{name}"]

        async with open_store(database) as store, metrics.running():
            limiter = create_limiter(settings, store, clock, metrics)
            try:
                yield limiter, store, told
            finally:
                await limiter.close()


async def test_a_ban_in_redis_is_counted_once(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, told):
            for bans in (1, 2, 3):
                key = await issue_stored(store, clock, plan="enterprise", per_minute=1)
                is_banned = False
                while not is_banned:
                    # Several within one millisecond, so that one brings the ban and others meet it.
                    burst = await asyncio.gather(*(limiter.take(key) for _ in range(50)))
                    is_banned = burst[-1].verdict == "banned"
                for _ in range(200):  # which takes longer than a millisecond
                    await limiter.take(key)
                assert await told("bans_total") == bans


async def test_doing_without_redis_is_told_and_counted(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, told):
            key = await issue_stored(store, clock)
            await limiter.take(key)
            assert await told("limiter_fallback_workers") == 0
            redis.kill()
            await limiter.take(key)
            await limiter.beat()
            assert await told("limiter_fallback_workers") == 1
            assert await told("limiter_fallbacks_total") == 1
            redis.start()
            await limiter.beat()
            assert await told("limiter_fallback_workers") == 0
            assert await told("limiter_fallbacks_total") == 1


async def test_a_failure_to_count_processes_is_doing_without_redis_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, open_place(listener) as place:
        metrics = Metrics(place, "1.0.0")
        async with metrics.running():
            trips = CountedTrips(connect("redis://127.0.0.1:1", 0.1), 0.1, metrics)
            with pytest.raises(OutOfReach):
                await trips.count_processes()
            told = await asyncio.to_thread(read_metrics, place.listener.getsockname()[1])
            assert told["petstore_limiter_fallback_workers"] == 1
            await trips.close()
