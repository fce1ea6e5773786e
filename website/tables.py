"""Tables and pages that list what the code declares."""

import json
from dataclasses import fields

from petstore.agents.tools import TOOLS
from petstore.events.model import EVENT_TYPES
from petstore.interface.openapi.events import example_of
from petstore.observability import metrics
from petstore.observability.metrics import Metric
from petstore.settings import Settings
from website.schemas import table

_METRICS = """# Metrics

The service reports these metrics at `/metrics` of `--metrics-port`. There, the name of a counter
ends in `_total`. [Monitoring](monitoring.md) has the SLOs and alerts.

"""
_EVENT_TYPES = """# Types of events

The [feed](events.md) and [webhooks](webhooks.md) have these events. New types may be added, so
ignore those that you do not know.

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


def settings() -> str:
    """Return the table of settings: option, environment variable, default and meaning."""
    demo = "First fill an empty store with pets and orders; add a key and an administrator."
    rows = [["`--demo`", "`PETSTORE_DEMO`", "off", demo]]
    rows += [
        [
            f"`--{field.name.replace('_', '-')}`",
            f"`PETSTORE_{field.name.upper()}`",
            _default(field.default),
            field.metadata["description"],
        ]
        for field in fields(Settings)
    ]
    return table(["Option", "Environment variable", "Default", "Meaning"], rows)


def tools() -> str:
    """Return the tools of agents by the scope that they need."""
    scopes = dict.fromkeys(tool.operation.scope for tool in TOOLS)
    rows = [
        [
            f"`{scope}`" if scope else "any key",
            ", ".join(f"`{tool.name}`" for tool in TOOLS if tool.operation.scope == scope),
        ]
        for scope in scopes
    ]
    return table(["Scope", "Tools"], rows)


def _default(value: object) -> str:
    if value is False:
        return "off"
    return "none" if value in ((), "") else f"`{value}`"


TABLES = {"settings": settings, "tools": tools}
"""What makes each table that stands in a page, by the name in its mark, ``<!-- name -->``."""
