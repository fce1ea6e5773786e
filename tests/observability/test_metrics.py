"""The metrics, the page that describes them, and the dashboard that shows them."""

import json
import re
from pathlib import Path

from petstore.observability.metrics import LAG, METRICS, observe

DASHBOARD = json.loads((Path(__file__).parents[2] / "deploy/grafana-dashboard.json").read_text())
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def test_values_are_counted_in_buckets_by_their_upper_bounds() -> None:
    sample = LAG.zero()
    for value in (0.001, 0.002, 0.25, 1000):
        observe(sample, LAG, value)
    assert sample == [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1000.253]


def test_the_dashboard_queries_every_metric_and_no_other() -> None:
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


def test_every_panel_has_an_id_of_its_own_and_fits_the_dashboard_grid() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in DASHBOARD["panels"]:
        position = panel["gridPos"]
        assert 0 <= position["x"] < position["x"] + position["w"] <= 24, panel["title"]
