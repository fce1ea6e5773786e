"""Figures in the text format that Prometheus reads."""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from petstore.observability.figures import (
    BUILD,
    COUNTERS,
    GAUGES,
    HISTOGRAMS,
    Figures,
    Histogram,
    Labels,
)


def exposition(figures: Figures, version: str) -> tuple[str, bytes]:
    """Return the media type and the text of ``figures`` of a service of this ``version``."""
    registry = CollectorRegistry()
    registry.register(_Collector(figures, version))
    return CONTENT_TYPE_LATEST, generate_latest(registry)


class _Collector(Collector):
    def __init__(self, figures: Figures, version: str) -> None:
        self._figures = figures
        self._version = version

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        build = GaugeMetricFamily(BUILD.name, BUILD.help, labels=BUILD.labels)
        build.add_metric([self._version], 1)
        yield build
        for name, text, labels in COUNTERS:
            counter = CounterMetricFamily(name, text, labels=labels)
            for values, count in figures.counters.get(name, {}).items():
                counter.add_metric(_texts(values), count)
            yield counter
        for name, text, labels in GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for values, value in figures.gauges.get(name, {}).items():
                gauge.add_metric(_texts(values), value)
            yield gauge
        for histogram in HISTOGRAMS:
            yield self._histogram(histogram)

    def _histogram(self, histogram: Histogram) -> Metric:
        (name, text, labels), bounds = histogram
        family = HistogramMetricFamily(name, text, labels=labels)
        ends = [*map(floatToGoString, bounds), "+Inf"]
        for values, spread in self._figures.histograms.get(name, {}).items():
            buckets = list(zip(ends, accumulate(spread.buckets), strict=True))
            family.add_metric(_texts(values), buckets, spread.sum)
        return family


def _texts(values: Labels) -> list[str]:
    return [str(value) for value in values]
