"""The report on how cost grows, in Markdown, from its results."""

from pathlib import Path

import msgspec

from rounds import Series
from tables import Span, table

_FOLDER = Path(__file__).parent / "results"
_LIMIT = 1.3
_HOW = """\
# How cost grows

Written by `bench/growth.py --save`: {growth.rounds} rounds of {growth.seconds} s, sizes in turn
within each. Time is one second divided by the responses of a second, on all connections together;
CPU is the server's per request. The median counts; brackets hold min and max. The last column is
the largest size to the smallest: a time is to stay within {limit} × of it.

- Machine: {growth.machine}; {growth.system}; load average before {growth.load_average:.1f}.
- One process on SQLite, asked on 32 connections where they are not what grows. Memory is the
  largest resident set of each of its processes, added up.
- No list comes from memory: each has an unknown parameter with a value of its own.
- Each get is of another pet. Of the keys, each has asked before."""


class Cell(Series, frozen=True, kw_only=True):
    """All rounds of one work at one size of what grows, and the memory then, in MB."""

    grows: str
    size: int
    megabytes: float


class Growth(msgspec.Struct, frozen=True):
    """A whole run."""

    machine: str
    system: str
    load_average: float
    rounds: int
    seconds: int
    cells: list[Cell]


def save(growth: Growth) -> None:
    """Write the report and the results into their folder."""
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / "growth.md").write_text(report(growth))
    (_FOLDER / "growth.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(growth), indent=1) + b"\n"
    )


def report(growth: Growth) -> str:
    """Return the whole report."""
    parts = [_HOW.format(growth=growth, limit=_LIMIT)]
    for grows in dict.fromkeys(cell.grows for cell in growth.cells):
        parts += (f"## {grows}", _table([one for one in growth.cells if one.grows == grows]))
    return "\n\n".join(parts) + "\n"


def _table(cells: list[Cell]) -> str:
    """Return the table of all sizes of one thing."""
    sizes = sorted({cell.size for cell in cells})
    rows = []
    for work in dict.fromkeys(cell.work for cell in cells):
        row = sorted((one for one in cells if one.work == work), key=lambda cell: cell.size)
        for name, metric in (("time, µs", "microseconds"), ("CPU, µs", "cpu")):
            texts = [_text(cell, metric) for cell in row]
            rows.append((f"{work}: {name}", *texts, _verdict(row[0], row[-1], metric)))
    megabytes = [max(cell.megabytes for cell in cells if cell.size == size) for size in sizes]
    each = (megabytes[-1] - megabytes[0]) / (sizes[-1] - sizes[0]) * 1024**2
    rows.append(("memory, MB", *(f"{one:.0f}" for one in megabytes), f"{each:,.0f} bytes each"))
    return table(("", *(f"{size:,}" for size in sizes), "largest to smallest"), rows)


def _text(cell: Cell, metric: str) -> str:
    return f"{cell.errors} responses failed" if cell.errors else _span(cell.span(metric))


def _verdict(smallest: Cell, largest: Cell, metric: str) -> str:
    """Return how much more the largest size takes, and whether that is within the limit."""
    if smallest.errors or largest.errors:
        return ""
    ratio = largest.span(metric).median / smallest.span(metric).median
    return f"{ratio:.2f} ×, {'within' if ratio <= _LIMIT else 'beyond'}"


def _span(values: Span) -> str:
    return f"{values.median:,.0f} ({values.min:,.0f}-{values.max:,.0f})"
