"""Liveness and readiness, for a supervisor or a load balancer."""

from petstore.coalescing import SharedCalls
from petstore.databases.contract import Store
from petstore.http.messages import Request, Response
from petstore.interface.messages import NO_STORE, json_response


class HealthPages:
    """``/healthz``: the process runs. ``/readyz``: it can also use the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_retiring = False
        self._checks: SharedCalls[None, None] = SharedCalls()

    def shut_down(self) -> None:
        """Report 503 from now on: the process stops soon."""
        self._is_retiring = True

    async def live(self, _: Request) -> Response:
        """Respond with 200 while the process runs."""
        return json_response(200, {"status": "alive"}, [NO_STORE])

    async def ready(self, _: Request) -> Response:
        """Respond with 200 while the database responds, and with 503 before a stop.

        Health checks have no key and no limit. Those that arrive during a check share its result,
        so that many of them do not load the database.
        """
        if self._is_retiring:
            return json_response(503, {"status": "stopping"})
        await self._checks.call(None, self._store.check)
        return json_response(200, {"status": "ready"}, [NO_STORE])
