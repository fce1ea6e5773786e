"""Samples in the text format of Prometheus."""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from petstore.observability.metrics import METRICS, Samples


def exposition(samples: Samples) -> tuple[str, bytes]:
    return CONTENT_TYPE_LATEST, generate_latest(_Collector(samples))


class _Collector(Collector):
    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        for name, kind, text, labels, bounds in METRICS:
            family = {
                "counter": CounterMetricFamily,
                "gauge": GaugeMetricFamily,
                "histogram": HistogramMetricFamily,
            }[kind](name, text, labels=labels)
            ends = [*map(floatToGoString, bounds), "+Inf"]
            for label_values, (*counts, value) in self._samples.get(name, {}).items():
                buckets = [list(zip(ends, accumulate(counts), strict=True))] if counts else []
                family.add_metric([*map(str, label_values)], *buckets, value)
            yield family
