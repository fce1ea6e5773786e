"""Plots of a comparison, as SVG: bars side by side, a panel for each work."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

from results import PeerResults, Results
from tables import Span

_CONNECTIONS = 32
_COLOURS = {"petstore": "#2563eb", "nginx": "#cbd5e1"}
_PEER = "#94a3b8"
# In px: the whole width, where bars begin, their longest, and the height of a line of text.
_WIDTH, _START, _LONGEST, _LINE = 860, 270, 460, 24

_DOCUMENT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
  font-family="system-ui, sans-serif" font-size="14" fill="#0f172a">
<style>.title{{font-size:20px;font-weight:600}}.panel{{font-weight:600}}</style>
<rect width="{width}" height="{height}" fill="#fff"/>
{shapes}
</svg>
"""


class Bar(NamedTuple):
    """A bar to its median, and a line from min to max."""

    label: str
    values: Span
    colour: str


def plots(results: Results) -> dict[str, str]:
    """Return the plots by name."""
    drawn = (
        ("requests", "Requests per second", results.alone, "rate"),
        ("latency", "99th percentile of latency, ms", results.alone, "p99"),
        ("cpu", "CPU of the server per request, µs", results.alone, "cpu"),
        ("shared", "Requests per second on PostgreSQL and Redis", results.shared, "rate"),
    )
    return {
        name: bar_plot(f"{title}, {_CONNECTIONS} connections", _panels(peers, metric))
        for name, title, peers, metric in drawn
    }


def _panels(peers: list[PeerResults], metric: str) -> dict[str, list[Bar]]:
    panels: dict[str, list[Bar]] = {}
    for one in peers:
        for series in one.series:
            if series.connections == _CONNECTIONS and not series.errors:
                bar = Bar(one.title, series.span(metric), _COLOURS.get(one.name, _PEER))
                panels.setdefault(series.work, []).append(bar)
    return panels


def bar_plot(title: str, panels: dict[str, list[Bar]]) -> str:
    """Draw bars under the name of each panel, each panel to a scale of its own."""
    shapes = [f'<text x="20" y="30" class="title">{escape(title)}</text>']
    y = 2 * _LINE
    for name, bars in panels.items():
        y += _LINE
        shapes.append(f'<text x="20" y="{y}" class="panel">{escape(name)}</text>')
        scale = _LONGEST / max(bar.values.max for bar in bars)
        for bar in bars:
            y += _LINE
            shapes += _shapes_of(bar, scale, y)
        y += _LINE // 2
    return _document(y + _LINE, shapes)


def _shapes_of(bar: Bar, scale: float, y: int) -> Iterator[str]:
    """Draw one bar, above the base line ``y`` of its text."""
    median, low, high = (_START + metric * scale for metric in bar.values)
    middle = y - 5
    yield f'<text x="{_START - 8}" y="{y}" text-anchor="end">{escape(bar.label)}</text>'
    yield (
        f'<rect x="{_START}" y="{y - 14}" width="{median - _START:.1f}" height="17"'
        f' fill="{bar.colour}"/>'
    )
    yield f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#334155"/>'
    yield f'<text x="{high + 8:.1f}" y="{y}">{number(bar.values.median)}</text>'


def number(value: float) -> str:
    """Return a number as a reader wants it: three digits that count at most, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _document(height: int, shapes: list[str]) -> str:
    return _DOCUMENT.format(width=_WIDTH, height=height, shapes="\n".join(shapes))
