"""The samples of several workers, written to files and added up."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from petstore.observability import registry as registry_module
from petstore.observability.metrics import BANS, TRANSACTIONS, observe
from petstore.observability.registry import Registry
from support.observed import Samples, port_of, read_from, read_metrics, registry_of_test

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


async def test_a_killed_worker_keeps_its_counters_but_not_its_gauges(tmp_path: Path) -> None:
    with worker(tmp_path, 1, 10) as killed:
        async with killed.running():
            left = (tmp_path / "1").read_bytes()
    (tmp_path / "1").write_bytes(left)
    for seconds_ago, workers in ((0, 2), (4, 1)):
        written_at = time.time() - seconds_ago
        os.utime(tmp_path / "1", (written_at, written_at))
        with worker(tmp_path, workers + 1, 0) as registry:
            async with read_from(registry) as samples:
                assert sums(samples) == (10, 10, workers)


async def test_the_gauges_of_a_stopped_worker_disappear_at_once(tmp_path: Path) -> None:
    with worker(tmp_path, 1, 10) as stopped:
        async with stopped.running():
            pass
    with worker(tmp_path, 0, 1) as registry:
        async with read_from(registry) as samples:
            assert sums(samples) == (11, 11, 1)
            assert 'process_start_time_seconds{worker="1"}' not in samples


@pytest.mark.parametrize("is_killed", [False, True])
async def test_only_a_worker_that_ended_without_a_clean_stop_has_crashed(
    tmp_path: Path, *, is_killed: bool
) -> None:
    with registry_of_test(folder=tmp_path) as registry:
        async with read_from(registry) as samples:
            assert samples["petstore_worker_crashes_total"] == 0
            left = (tmp_path / "0").read_bytes()
    if is_killed:  # so it wrote nothing more
        (tmp_path / "0").write_bytes(left)
    with registry_of_test(folder=tmp_path) as registry:
        async with read_from(registry) as samples:
            assert samples["petstore_worker_crashes_total"] == is_killed
            assert samples["petstore_workers"] == 1


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
