"""What the operating system knows of this process, by the names that Prometheus has for it."""

import resource
import time
from pathlib import Path

from petstore.observability.figures import (
    CPU_SECONDS,
    MAX_FILES,
    MEMORY,
    OPEN_FILES,
    START_TIME,
)
from petstore.observability.metrics import NoMetrics

_STATM = Path("/proc/self/statm")
_FILES = Path("/proc/self/fd")


def tell_process(metrics: NoMetrics, worker: str) -> None:
    """Have ``metrics`` tell of this process, as the ``worker`` that it is. Call it at its start."""
    started = time.time()
    metrics.counter(CPU_SECONDS, time.process_time, worker)
    metrics.gauge(START_TIME, lambda: started, worker)
    metrics.gauge(MAX_FILES, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], worker)
    if _STATM.exists():  # pragma: no branch - only Linux has it
        metrics.gauge(MEMORY, _resident_bytes, worker)
        metrics.gauge(OPEN_FILES, _open_files, worker)


def _resident_bytes() -> int:
    return int(_STATM.read_text("ascii").split()[1]) * resource.getpagesize()


def _open_files() -> int:
    # Linux 6.2 tells it without listing what may be 20,000 names.
    return _FILES.stat().st_size or len(list(_FILES.iterdir()))
