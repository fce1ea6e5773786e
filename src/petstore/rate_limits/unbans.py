"""Whether a ban was lifted that still seems to hold."""

import asyncio
from contextlib import suppress

from petstore.clock import Milliseconds
from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.rate_limits.contract import NEVER, PardonStore

_PATIENCE_SECONDS = 0.1


class Pardons:
    """Asks the store when keys were unbanned: what is known of a key may be a moment old.

    Those who ask while one question is under way share the next, so callers that do not heed their
    ban are no load on the store.
    """

    def __init__(self, store: PardonStore) -> None:
        self._store = store
        self._one_at_a_time = asyncio.Lock()
        self._asked: set[int] = set()
        self._next: asyncio.Task[dict[int, Milliseconds]] | None = None

    async def of(self, key: ApiKey) -> Milliseconds:
        """Return when a key was unbanned last; what is known of it if the store does not tell."""
        self._asked.add(key.id)
        if self._next is None:
            self._next = asyncio.create_task(self._ask())
        unbans = await asyncio.shield(self._next)
        return unbans.get(key.id, key.unbanned_at or NEVER)

    async def _ask(self) -> dict[int, Milliseconds]:
        async with self._one_at_a_time:
            asked, self._asked, self._next = self._asked, set(), None
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    return await self._store.unbans(asked)
            return {}
