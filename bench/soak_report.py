"""The report on a long load, in Markdown, from its results."""

from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec

from rounds import Round
from tables import table

_FOLDER = Path(__file__).parent / "results"
_ROWS = 12
# How much the last third may exceed the first: memory is steady, latency is as noisy as a machine.
_MORE_MEMORY, _MORE_TIME = 1.05, 1.3
_HOW = """\
# A long load

Written by `bench/soak.py --save`: the mix of 90 % lists, 8 % gets and 2 % creates for {minutes:g}
minutes, on one process on SQLite with 200,000 pets at the start, 32 connections.

- Machine: {soak.machine}; {soak.system}; load average before {soak.load_average:.1f}.
- Memory is the resident set of its processes, added up; figures are medians of the time before."""


class Slice(msgspec.Struct, frozen=True):
    """A stretch of time: its end in s, the memory then in MB, and the result of the load."""

    until: int
    megabytes: float
    load: Round


class Soak(msgspec.Struct, frozen=True):
    """A whole run."""

    machine: str
    system: str
    load_average: float
    slices: list[Slice]

    def growth(self, metric: Callable[[Slice], float]) -> float:
        """Return the ratio of a metric's medians in the last and the first third."""
        third = max(1, len(self.slices) // 3)
        first, last = (map(metric, some) for some in (self.slices[:third], self.slices[-third:]))
        return median(last) / median(first)

    @property
    def errors(self) -> int:
        """How many responses failed."""
        return sum(one.load.errors for one in self.slices)

    @property
    def is_steady(self) -> bool:
        """Whether nothing grew, and no response failed."""
        return (
            not self.errors
            and self.growth(_memory) <= _MORE_MEMORY
            and self.growth(_p99) <= _MORE_TIME
        )


def save(soak: Soak) -> None:
    """Write the report and the results into their folder."""
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / "soak.md").write_text(report(soak))
    (_FOLDER / "soak.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(soak), indent=1) + b"\n"
    )


def report(soak: Soak) -> str:
    """Return the whole report."""
    minutes = soak.slices[-1].until / 60
    verdict = (
        f"From the first third to the last, memory is {soak.growth(_memory):.3f} × (at most"
        f" {_MORE_MEMORY} ×) and p99 {soak.growth(_p99):.2f} × (at most {_MORE_TIME} ×);"
        f" {soak.errors} responses failed: {'steady' if soak.is_steady else 'not steady'}."
    )
    return f"{_HOW.format(soak=soak, minutes=minutes)}\n\n{verdict}\n\n{_table(soak)}\n"


def _table(soak: Soak) -> str:
    """Return a table of a few rows, each the medians of so many slices."""
    size = -(-len(soak.slices) // _ROWS)
    parts = [soak.slices[start : start + size] for start in range(0, len(soak.slices), size)]
    return table(
        ("Until, s", "Requests/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU µs", "Memory, MB"),
        [
            (
                str(part[-1].until),
                f"{median(one.load.rate for one in part):,.0f}",
                *(
                    f"{median(getattr(one.load, name) for one in part):.1f}"
                    for name in ("p50", "p99", "p999", "cpu")
                ),
                f"{median(one.megabytes for one in part):.1f}",
            )
            for part in parts
        ],
    )


def _memory(one: Slice) -> float:
    return one.megabytes


def _p99(one: Slice) -> float:
    return one.load.p99
