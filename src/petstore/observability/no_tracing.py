"""Tracing while nobody asked for it: nothing comes between, and its library need not be there."""

from petstore.api.application import Application, Servable
from petstore.databases.contract import Store
from petstore.rate_limits.contract import RateLimiter


class NoTracing:
    """Traces nothing, and costs nothing."""

    def of_application(self, app: Application) -> Servable:
        """Return ``app`` so that each request is a span."""
        return app

    def of_store(self, store: Store, system: str) -> Store:  # noqa: ARG002 - told in spans alone
        """Return ``store``, a database of this ``system``, so that its reads and writes are too."""
        return store

    def of_limiter(self, limiter: RateLimiter) -> RateLimiter:
        """Return ``limiter``, one in Redis, so that its judgements are too."""
        return limiter


NO_TRACING = NoTracing()
