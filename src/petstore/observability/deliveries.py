"""Metrics of the process that delivers events to webhooks."""

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.domain.webhooks import DeliveryState
from petstore.observability.metrics import (
    DELIVERIES,
    DELIVERY_SECONDS,
    OLDEST_DELIVERY,
    WEBHOOKS_DISABLED,
    observe,
)
from petstore.observability.registry import Registry

_OUTCOMES: dict[DeliveryState, str] = {
    "succeeded": "succeeded",
    "pending": "failed",
    "failed": "abandoned",
}


class DeliveryMetrics:
    """Reports to ``registry`` how attempts went, and what is left."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._counts = registry.samples(DELIVERIES)
        self._seconds = registry.samples(DELIVERY_SECONDS)[()]
        self._oldest: Milliseconds | None = None
        self._disabled = 0

        def age() -> float:
            return 0 if self._oldest is None else max(0, clock() - self._oldest) / SECOND

        registry.report(OLDEST_DELIVERY, age)
        registry.report(WEBHOOKS_DISABLED, lambda: self._disabled)

    def attempted(self, state: DeliveryState, seconds: float) -> None:
        """Count an attempt and the time it took."""
        self._counts[_OUTCOMES[state],][0] += 1
        observe(self._seconds, DELIVERY_SECONDS, seconds)

    def remaining(self, oldest: Milliseconds | None, disabled: int) -> None:
        """Note when the oldest pending delivery was made, and how many webhooks are disabled."""
        self._oldest, self._disabled = oldest, disabled
