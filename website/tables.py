"""Pages that list what the code declares: metrics and types of events."""

import json

from petstore.events.examples import example_of
from petstore.events.model import EVENT_TYPES
from petstore.observability import metrics
from petstore.observability.metrics import Metric
from website.schemas import table

_METRICS = """# Metrics

The service reports these metrics at `/metrics` of `--metrics-port`. There, the name of a counter
ends in `_total`. [Monitoring](monitoring.md) has the objectives and alerts.

"""
_EVENT_TYPES = """# Types of events

The [feed](events.md) and [webhooks](webhooks.md) have these events. We will add types, so ignore
types that you do not know.

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
