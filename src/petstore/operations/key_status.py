"""A key together with what the limiter has saved of it, for those who manage keys."""

from typing import NamedTuple

from petstore.clock import Clock, Milliseconds
from petstore.domain.api_keys import ApiKey, KeyState
from petstore.errors import NotFound
from petstore.rate_limits.contract import NEVER
from petstore.storage.api_keys import api_key_of, select_key, select_keys
from petstore.storage.contract import Statement, Store
from petstore.storage.rate_limits import SELECT_KEY_USE


class KeyStatus(NamedTuple):
    """A key, its state now, when it was last used, and how long it is banned, if it is."""

    key: ApiKey
    state: KeyState
    used_at: Milliseconds | None
    banned_until: Milliseconds | None


async def key_status(store: Store, key_id: int, clock: Clock) -> KeyStatus:
    """Return one key.

    Raises:
        NotFound: there is none with this id.
    """
    for status in await _statuses(store, select_key(key_id), clock):
        return status
    msg = f"there is no key {key_id}"
    raise NotFound(msg)


async def key_statuses(store: Store, clock: Clock) -> list[KeyStatus]:
    """Return every key, by id."""
    return await _statuses(store, select_keys(), clock)


async def _statuses(store: Store, keys: Statement, clock: Clock) -> list[KeyStatus]:
    now = clock()
    uses = {key_id: use for key_id, *use in await store.read(SELECT_KEY_USE)}
    statuses = []
    for key in map(api_key_of, await store.read(keys)):
        used_at, banned_at, banned_until = uses.get(key.id, (None, NEVER, NEVER))
        banned = now < banned_until and banned_at > (key.pardoned_at or NEVER)
        statuses.append(KeyStatus(key, key.state(now), used_at, banned_until if banned else None))
    return statuses
