"""The samples of several workers, written to files and added up, and ``/metrics`` over HTTP."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from petstore.observability import registry as registry_module
from petstore.observability.metrics import BANS, TRANSACTIONS, observe
from petstore.observability.registry import Registry
from support.manual_clock import ManualClock
from support.observed import (
    Samples,
    observed_service,
    port_of,
    read_from,
    read_metrics,
    registry_of_test,
)
from support.waiting import eventually

pytestmark = pytest.mark.anyio


@contextmanager
def worker(folder: Path, worker_id: int, bans: int) -> Iterator[Registry]:
    with registry_of_test(worker_id, folder) as registry:
        registry.report(BANS, lambda: bans)
        for _ in range(bans):
            observe(registry.samples(TRANSACTIONS)[()], TRANSACTIONS, 1)
        yield registry


def sums(samples: Samples) -> tuple[float, float, float]:
    commits = samples['petstore_transaction_duration_seconds_bucket{le="1.0"}']
    return samples["petstore_bans_total"], commits, samples["petstore_workers"]


async def test_every_worker_reports_the_sum_of_all_samples(tmp_path: Path) -> None:
    with worker(tmp_path, 0, 1) as one, worker(tmp_path, 1, 2) as other:
        async with other.running(), read_from(one) as samples:
            assert sums(samples) == (3, 3, 2)
            others = await asyncio.to_thread(read_metrics, port_of(other))
            assert sums(others) == (3, 3, 2)


async def test_a_worker_continues_the_counters_of_its_worker_id(tmp_path: Path) -> None:
    total = 0
    for bans in (1, 10, 100):
        total += bans
        with worker(tmp_path, 0, bans) as registry:
            async with read_from(registry) as samples:
                assert sums(samples) == (total, total, 1)
                await registry.exposition()
    assert [file.name for file in tmp_path.iterdir()] == ["0"]


async def test_a_worker_that_ended_keeps_its_counters_but_not_its_gauges(tmp_path: Path) -> None:
    with worker(tmp_path, 1, 10) as killed:
        async with killed.running():
            left = (tmp_path / "1").read_bytes()
    with worker(tmp_path, 0, 1) as registry:
        async with read_from(registry) as samples:  # at once after a clean stop
            assert sums(samples) == (11, 11, 1)
            assert 'process_start_time_seconds{worker="1"}' not in samples
    (tmp_path / "0").unlink()
    (tmp_path / "1").write_bytes(left)
    for seconds_ago, workers in ((0, 2), (4, 1)):
        written_at = time.time() - seconds_ago
        os.utime(tmp_path / "1", (written_at, written_at))
        with worker(tmp_path, workers + 1, 0) as registry:
            async with read_from(registry) as samples:
                assert sums(samples) == (10, 10, workers)


async def test_only_a_worker_that_ended_without_a_clean_stop_has_crashed(tmp_path: Path) -> None:
    for crashes, is_killed in ((0, False), (0, True), (1, False)):
        with registry_of_test(folder=tmp_path) as registry:
            async with read_from(registry) as samples:
                assert samples["petstore_worker_crashes_total"] == crashes
                assert samples["petstore_workers"] == 1
                left = (tmp_path / "0").read_bytes()
        if is_killed:  # so it wrote nothing more
            (tmp_path / "0").write_bytes(left)


async def test_a_worker_that_stops_during_a_write_has_not_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, started = vars(registry_module)["_write"], asyncio.Event()
    loop = asyncio.get_running_loop()

    def write_slowly(file: Path, encoded: bytes) -> None:
        if is_serving:
            loop.call_soon_threadsafe(started.set)
            time.sleep(0.3)
        write(file, encoded)

    is_serving = False
    monkeypatch.setattr(registry_module, "_write", write_slowly)
    with registry_of_test(folder=tmp_path) as registry:
        async with registry.running():
            is_serving = True
            await started.wait()
            is_serving = False
    with registry_of_test(folder=tmp_path) as registry:
        async with read_from(registry) as samples:
            assert samples["petstore_worker_crashes_total"] == 0


async def test_metrics_are_at_their_path_alone_and_invalid_requests_do_no_harm(
    database: Path, clock: ManualClock
) -> None:
    http = "GET /metrics HTTP/1.1\r\nHost: petstore\r\n"
    async with observed_service(database, clock) as service, httpx.AsyncClient() as other:
        address = f"http://127.0.0.1:{service.metrics_port}"
        assert (await other.get(f"{address}/")).status_code == 404
        assert (await other.post(f"{address}/metrics")).status_code == 404
        response = await other.get(f"{address}/metrics?name=x")
        assert response.headers["content-type"].startswith("text/plain; version=")
        for sent, answer in (
            ("", b""),
            ("GET /metr", b""),
            (http, b""),
            (f"{http}X: {'x' * 17000}\r\n\r\n", b"HTTP/1.1 431"),
            ("\0\r\n\r\n", b"HTTP/1.1 400"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", service.metrics_port)
            writer.write(sent.encode())
            writer.write_eof()
            assert (await reader.read())[:12] == answer, sent
            writer.close()
            assert (await service.metrics())["petstore_workers"] == 1


async def test_unreadable_metrics_do_not_affect_the_service(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    with registry_of_test(folder=folder) as registry:
        async with registry.running():
            shutil.rmtree(folder)
            async with httpx.AsyncClient() as client:
                response = await client.get(f"http://127.0.0.1:{port_of(registry)}/metrics")
            assert response.status_code == 500
            await eventually(lambda: "metrics not published" in caplog.text)
    assert "cannot report the metrics" in caplog.text
