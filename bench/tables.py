"""Spans over several rounds, and tables in Markdown."""

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """The median of several rounds, the minimum and the maximum."""

    median: float
    min: float
    max: float


def span(values: Iterable[float]) -> Span:
    """Return the span of some values."""
    ordered = sorted(values)
    return Span(statistics.median(ordered), ordered[0], ordered[-1])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
