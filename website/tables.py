"""Pages that list what the code declares: metrics and types of events."""

import json

from petstore.api.event_examples import example_of
from petstore.domain.events import EVENT_TYPES
from petstore.observability import metrics
from petstore.observability.metrics import Metric
from website.schemas import table

_METRICS = """# Metrics

The service reports these to Prometheus at `/metrics` of `--metrics-port`. The name of a counter
ends in `_total` there. [Monitoring](monitoring.md) has the objectives and alerts.

"""
_EVENT_TYPES = """# Types of events

The [feed](events.md) and the [webhooks](webhooks.md) bring these. More types will follow: ignore
those that you do not know.

"""


def metric_table() -> str:
    """Return the page of all metrics."""
    found = [value for value in vars(metrics).values() if isinstance(value, Metric)]
    rows = [
        [
            f"`{metric.name}`",
            metric.kind,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.help,
        ]
        for metric in found
    ]
    return _METRICS + table(["Metric", "Kind", "Labels", "Meaning"], rows) + "\n"


def event_types() -> str:
    """Return the page of all types of events."""
    examples = "\n\n".join(
        f"## {kind}\n\n```json\n{json.dumps(example_of(kind), indent=2, ensure_ascii=False)}\n```"
        for kind in EVENT_TYPES
    )
    return f"{_EVENT_TYPES}{examples}\n"
