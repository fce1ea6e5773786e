"""The key of a token."""

import asyncio

from msgspec.structs import replace

from petstore.clock import Clock
from petstore.databases import api_keys
from petstore.databases.contract import Store
from petstore.domain.api_keys import ApiKey, Environment, digest, is_token


class KeyRing:
    """Finds the key of a token, from memory while no key has changed.

    ``refresh`` asks the database whether any has; called several times a second, it makes a
    revocation by another process take effect within one. Tokens that were found are remembered all
    the while, so that nobody else's look-ups stand in their way. Requests that come with a token
    while it is looked up share the one look-up.
    """

    def __init__(self, store: Store, clock: Clock, environment: Environment) -> None:
        self._store = store
        self._clock = clock
        self._environment = environment
        self._known: dict[bytes, ApiKey] = {}
        self._looked_up: dict[bytes, asyncio.Task[ApiKey | None]] = {}
        self._seen: set[bytes] = set()  # of tokens that were issued, so there are not too many
        self._revision = -1

    def recall(self, token: bytes) -> ApiKey | None:
        """Return the key of ``token`` if it is in memory and can be used now."""
        return self._usable(self._known.get(token))

    def is_new(self, token: bytes) -> bool:
        """Tell whether ``token`` may be made up and its look-up is yet to begin.

        It looks like one and was never found.
        """
        if token in self._seen or token in self._looked_up:
            return False
        return is_token(token, self._environment)

    async def find(self, token: bytes) -> ApiKey | None:
        """Return the key of ``token`` if it can be used now; it expires no later than the token.

        Raises:
            Unavailable: the database is out of reach and the key is not in memory.
        """
        key = self._known.get(token)
        if key is None:
            key = await self._look_up(token)
        return self._usable(key)

    async def refresh(self) -> None:
        """Forget every key if any has changed since the last time.

        Raises:
            Unavailable: the database is out of reach; what is known stays in force.
        """
        ((revision,),) = await self._store.read(api_keys.SELECT_REVISION)
        if revision != self._revision:
            self._revision = revision
            self._known = {}
            self._looked_up = {}

    def _usable(self, key: ApiKey | None) -> ApiKey | None:
        return key if key is not None and key.state(self._clock()) == "active" else None

    async def _look_up(self, token: bytes) -> ApiKey | None:
        if not is_token(token, self._environment):
            return None
        # Those of before a refresh are not shared: what they read may be stale.
        looked_up = self._looked_up

        def end(reading: asyncio.Task[ApiKey | None]) -> None:
            del looked_up[token]
            if not reading.cancelled():
                reading.exception()  # retrieved, even if nobody waits any more

        if token not in looked_up:
            looked_up[token] = asyncio.create_task(self._read(token))
            looked_up[token].add_done_callback(end)
        return await asyncio.shield(looked_up[token])

    async def _read(self, token: bytes) -> ApiKey | None:
        known = self._known
        rows = await self._store.read(api_keys.select_key_by_digest(digest(token)))
        if not rows or rows[0][6] != self._environment:
            self._seen.discard(token)
            return None
        key, token_ends_at = api_keys.api_key_of(rows[0]), rows[0][-1]
        if token_ends_at is not None and token_ends_at < key.end:
            # What is given with this token must not outlive it either.
            key = replace(key, expires_at=token_ends_at)
        # Into the dict of before the read: had a refresh come between, this row may be stale.
        known[token] = key
        self._seen.add(token)
        return key
