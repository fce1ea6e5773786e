"""What a worker reports of its process."""

import time

import pytest

from petstore.observability.measured import lag_meter
from petstore.observability.metrics import LAG
from support.observed import read_from, registry_of_test

pytestmark = pytest.mark.anyio


async def test_a_slow_iteration_of_the_event_loop_is_measured() -> None:
    sample, moments = LAG.zero(), iter((0.0, 0.1, 0.5))
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
