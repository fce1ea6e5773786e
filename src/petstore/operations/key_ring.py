"""The key of a token."""

from petstore.clock import Clock, Milliseconds
from petstore.domain.api_keys import ApiKey, Environment, digest, is_token
from petstore.storage import api_keys
from petstore.storage.contract import Store


class KeyRing:
    """Finds the key of a token, from memory while no key has changed.

    ``refresh`` asks the database whether any has; called several times a second, it makes a
    revocation by another process take effect within one.
    """

    def __init__(self, store: Store, clock: Clock, environment: Environment) -> None:
        self._store = store
        self._clock = clock
        self._environment = environment
        self._known: dict[bytes, tuple[ApiKey, Milliseconds | None]] = {}
        self._revision = -1

    async def find(self, token: bytes) -> ApiKey | None:
        """Return the key of ``token`` if it can be used now.

        Raises:
            Unavailable: the database is out of reach and the key is not in memory.
        """
        fingerprint = digest(token)
        known = self._known.get(fingerprint)
        if known is None:
            known = await self._look_up(token, fingerprint)
            if known is None:
                return None
        key, token_expires_at = known
        now = self._clock()
        if token_expires_at is not None and now >= token_expires_at:
            return None
        return key if key.state(now) == "active" else None

    async def refresh(self) -> None:
        """Forget every key if any has changed since the last time.

        Raises:
            Unavailable: the database is out of reach; what is known stays in force.
        """
        ((revision,),) = await self._store.read(api_keys.SELECT_REVISION)
        if revision != self._revision:
            self._revision = revision
            self._known = {}

    async def _look_up(
        self, token: bytes, fingerprint: bytes
    ) -> tuple[ApiKey, Milliseconds | None] | None:
        if not is_token(token, self._environment):
            return None
        known = self._known
        rows = await self._store.read(api_keys.select_key_by_digest(fingerprint))
        if not rows or rows[0][6] != self._environment:
            return None
        # Into the dict of before the read: had a refresh come between, this row may be stale.
        known[fingerprint] = (api_keys.api_key_of(rows[0]), rows[0][-1])
        return known[fingerprint]
