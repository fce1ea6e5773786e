"""Liveness and readiness, for whoever starts and watches the service."""

import asyncio

from petstore.api.messages import NO_STORE, json_response
from petstore.databases.contract import Store
from petstore.http.messages import Request, Response


class Health:
    """``/healthz``: the process answers. ``/readyz``: the database does too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_retiring = False
        self._check: asyncio.Task[None] | None = None

    def retire(self) -> None:
        """Be ready no more: the process is to stop."""
        self._is_retiring = True

    async def live(self, _: Request) -> Response:
        """Answer 200 while the process runs."""
        return json_response(200, {"status": "alive"}, [NO_STORE])

    async def ready(self, _: Request) -> Response:
        """Answer 200 while the database answers, and 503 once the process is to stop.

        Requests that come while the database is being asked share its answer: they take no key and
        have no limit, and should be no load.

        Raises:
            Unavailable: it does not.
        """
        if self._is_retiring:
            return json_response(503, {"status": "stopping"})
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._store.check())
        await asyncio.shield(self._check)
        return json_response(200, {"status": "ready"}, [NO_STORE])
