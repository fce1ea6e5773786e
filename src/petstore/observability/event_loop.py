"""How late the event loop runs what is due: what each request waits besides its own work."""

import math
import time
from collections.abc import Callable

from petstore.observability.figures import LAG, Spread, observe

SAMPLE_SECONDS = 0.1


class LoopLag:
    """Notes in ``spread`` by how much each call of ``sample`` comes late, by ``now`` in seconds."""

    # The clock of the loop stands still during one turn, which may be the slow one.
    def __init__(self, spread: Spread, now: Callable[[], float] = time.perf_counter) -> None:
        self._spread = spread
        self._now = now
        self._due_at = math.inf

    async def sample(self) -> None:
        """Note how late it is. Call it ``SAMPLE_SECONDS`` after it returned."""
        now = self._now()
        observe(self._spread, LAG, max(0, now - self._due_at))
        self._due_at = now + SAMPLE_SECONDS
