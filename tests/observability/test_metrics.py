"""The metrics, and the page that describes them."""

import re
from pathlib import Path

from petstore.observability.metrics import COMMITS, METRICS, Metric, histogram_sample

METRIC_ROW = re.compile(r"^\| (`[^|]+`) \| (counter|gauge|histogram) \| [^|]+ \|$", re.MULTILINE)


def test_values_are_spread_over_buckets_by_their_upper_ends() -> None:
    sample = histogram_sample(COMMITS, {1: 5, 2: 1, 3: 1, 1000: 2})
    assert sample == [5, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2010]


def test_the_page_on_monitoring_lists_every_metric_with_its_kind_and_labels() -> None:
    page = (Path(__file__).parents[2] / "docs/monitoring.md").read_text()
    listed = {
        (name, kind)
        for names, kind in METRIC_ROW.findall(page)
        for name in re.findall(r"`([^`]+)`", names)
    }

    def written(metric: Metric) -> str:
        ending = "_total" if metric.kind == "counter" else ""
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        return f"{metric.name}{ending}{labels}"

    assert listed == {(written(metric), metric.kind) for metric in METRICS}
