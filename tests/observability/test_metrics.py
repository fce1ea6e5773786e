"""What the metrics are called, and what they say of a process."""

import json
import re
import time
from pathlib import Path

import pytest

from petstore.observability.measured import lag_meter
from petstore.observability.metrics import LAG, METRICS, observe
from support.observed import read_from, registry_of_test

DASHBOARD = json.loads((Path(__file__).parents[2] / "deploy/grafana-dashboard.json").read_text())
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def test_values_are_counted_in_buckets_by_their_upper_bounds() -> None:
    sample = LAG.zero()
    for value in (0.001, 0.002, 0.25, 1000):
        observe(sample, LAG, value)
    assert sample == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1000.253]


def test_the_dashboard_queries_every_metric_and_no_other_and_its_panels_fit_the_grid() -> None:
    exposed = {f"{metric.name}{end}" for metric in METRICS for end in ENDINGS[metric.kind]}
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
    assert labels <= {"job", "instance", "le"}.union(*(metric.labels for metric in METRICS))
    for query in queries:
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in DASHBOARD["panels"]:
        position = panel["gridPos"]
        assert 0 <= position["x"] < position["x"] + position["w"] <= 24, panel["title"]


@pytest.mark.anyio
async def test_a_slow_iteration_of_the_event_loop_is_measured() -> None:
    sample, moments = LAG.zero(), iter((0.0, 0.1, 0.5))
    measure_lag = lag_meter(sample, lambda: next(moments))
    for _ in range(3):
        await measure_lag()
    assert sample == [2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, pytest.approx(0.3)]


@pytest.mark.anyio
async def test_the_process_metrics_have_the_standard_prometheus_names() -> None:
    with registry_of_test(worker_id=3) as registry:
        async with read_from(registry) as samples:
            labels = '{worker="3"}'
            assert time.time() - 20 < samples[f"process_start_time_seconds{labels}"] < time.time()
            assert 0 < samples[f"process_cpu_seconds_total{labels}"] <= time.process_time()
            assert 10**6 < samples[f"process_resident_memory_bytes{labels}"] < 10**10
            assert 3 < samples[f"process_open_fds{labels}"] < samples[f"process_max_fds{labels}"]
            assert samples['petstore_event_loop_lag_seconds_bucket{le="+Inf"}'] >= 0
