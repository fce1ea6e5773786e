"""What this process uses, by the names that Prometheus has for it, and how late its loop is."""

import math
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from petstore.chores import PeriodicTask
from petstore.observability.metrics import (
    CPU_SECONDS,
    LAG,
    MAX_FILES,
    MEMORY,
    OPEN_FILES,
    START_TIME,
    Sample,
    observe,
)
from petstore.observability.registry import Registry

_LAG_SECONDS = 0.1
_STATM = Path("/proc/self/statm")
_FILES = Path("/proc/self/fd")


def report_process(registry: Registry, worker: str) -> None:
    started = time.time()
    registry.report(CPU_SECONDS, time.process_time, worker)
    registry.report(START_TIME, lambda: started, worker)
    registry.report(MAX_FILES, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], worker)
    if _STATM.exists():  # pragma: no branch - only Linux has it
        page = resource.getpagesize()
        registry.report(MEMORY, lambda: int(_STATM.read_text("ascii").split()[1]) * page, worker)
        registry.report(OPEN_FILES, _open_files, worker)
    measure_lag = lag_meter(registry.samples(LAG)[()])
    registry.chores.append(PeriodicTask(measure_lag, _LAG_SECONDS, "event loop lag not measured"))


def lag_meter(
    sample: Sample, now: Callable[[], float] = time.perf_counter
) -> Callable[[], Awaitable[None]]:
    """Return a function that adds how late it is called, ``_LAG_SECONDS`` after it returned."""
    # The clock of the loop stands still during a turn, and the slow turn may be that one.
    due_at = math.inf

    async def measure() -> None:
        nonlocal due_at
        moment = now()
        observe(sample, LAG, max(0, moment - due_at))
        due_at = moment + _LAG_SECONDS

    return measure


def _open_files() -> int:
    # Since Linux 6.2 the size is the count; a listing may have 20,000 names.
    return _FILES.stat().st_size or len(list(_FILES.iterdir()))
