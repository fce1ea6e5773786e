"""The plans that a PostgreSQL server logs (auto_explain), and what each statement read."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

SETTINGS = {
    "shared_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_format": "json",
}
"""The settings of a server that logs the plan of every statement."""

# The first line of a message has a prefix, the others have a tab.
_PLAN = re.compile(r" plan:\n\t(\{\n(?:\t.*\n)*?\t\}\n)")
_FILTERED = ("Rows Removed by Filter", "Rows Removed by Index Recheck")


class Read(NamedTuple):
    """What a statement read: blocks, and rows of tables, those that it did not want included."""

    sql: str
    blocks: int
    rows: int


class LoggedPlans:
    """The plans in the log of a server, from now on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._position = log.stat().st_size

    def skip(self) -> None:
        """Forget the plans up to now."""
        self._position = self._log.stat().st_size

    def read(self) -> list[Read]:
        """Return what the statements have read since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._position)
            text = log.read()
        self._position += len(text)
        return list(reads(text.decode()))


def reads(log: str) -> Iterator[Read]:
    """Yield what each statement read whose plan is in a log."""
    for found in _PLAN.finditer(log):
        logged = msgspec.json.decode(found[1].replace("\n\t", "\n"))
        plan = logged["Plan"]
        blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        yield Read(logged["Query Text"], blocks, round(_rows(plan)))


def _rows(plan: dict[str, Any]) -> float:
    """Return how many rows the scans of a plan have seen."""
    below = sum(_rows(part) for part in plan.get("Plans", ()))
    if "Relation Name" not in plan or plan["Node Type"] == "ModifyTable":
        return below
    seen = plan["Actual Rows"] + sum(plan.get(name, 0) for name in _FILTERED)
    return below + float(seen * plan["Actual Loops"])
