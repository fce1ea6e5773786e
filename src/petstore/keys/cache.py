"""API keys by their token, from memory while no key has changed."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from petstore.clock import Clock
from petstore.coalescing import SingleFlight
from petstore.databases.contract import Reader, Statement, Unit, read_unit
from petstore.keys.model import Caller, Environment, digest, is_token
from petstore.keys.store import COLUMNS, caller_of
from petstore.periodic_tasks import PeriodicTask

_SELECT_BY_DIGEST = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)}, t.expires_at"  # noqa: S608 - only names
    " FROM api_key_tokens t JOIN api_keys k ON k.id = t.key_id"
    " WHERE t.digest = ?1"
)


def find_key(credential: bytes) -> Unit[Caller | None]:
    """Return the key of a token with this digest, which expires with the token."""
    rows = yield Statement(_SELECT_BY_DIGEST, (credential,), name="select_key_by_digest")
    if not rows:
        return None
    key, token_ends_at = caller_of(rows[0]), rows[0][-1]
    if token_ends_at is not None and token_ends_at < key.end:
        # Keys created with this token must not outlive it either.
        key = replace(key, expires_at=token_ends_at)
    return key


class ApiKeyCache:
    """Finds the key of a token, from memory while no key has changed.

    ``refresh`` asks the database whether any key has changed. The service calls it several times a
    second, so a revocation by another process takes effect within one. Tokens found once count as
    known afterwards too, so their look-ups are not limited. Requests with the same token share one
    look-up. ``on_change`` is called when any key or person has changed.
    """

    def __init__(
        self,
        store: Reader,
        clock: Clock,
        environment: Environment,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self.environment: Environment = environment
        self._known: dict[bytes, Caller] = {}
        self._look_ups: SingleFlight[bytes, Caller | None] = SingleFlight()
        self._seen: set[bytes] = set()  # of tokens that were issued, so there are not too many
        self._revision = -1
        self._on_change = on_change

    def periodic_task(self, seconds: float) -> PeriodicTask:
        return PeriodicTask(self.refresh, seconds, "cannot refresh the API key cache")

    def get_cached(self, token: bytes) -> Caller | None:
        key = self._known.get(token)
        # Most keys never end, and need no look at the clock.
        lasts = key is not None and key.expires_at is None and key.revoked_at is None
        return key if lasts else self._usable(key)

    def is_new(self, token: bytes) -> bool:
        """Return whether ``token`` is well formed, and was never looked up."""
        if token in self._seen or token in self._look_ups:
            return False
        return is_token(token, self.environment)

    async def find(self, token: bytes) -> Caller | None:
        key = self._known.get(token)
        if key is None and is_token(token, self.environment):
            key = await self._look_ups.call(token, partial(self._read, token))
        return self._usable(key)

    async def refresh(self) -> None:
        """Forget every key if any has changed since the last time."""
        select = Statement("SELECT revision FROM api_key_revision", name="select_key_revision")
        ((revision,),) = await self._store.read(select)
        if revision != self._revision:
            self._revision = revision
            self._known = {}
            # A look-up from before the refresh is not shared: its row may be stale.
            self._look_ups = SingleFlight()
            self._on_change()

    def _usable(self, key: Caller | None) -> Caller | None:
        return key if key is not None and key.state(self._clock()) == "active" else None

    async def _read(self, token: bytes) -> Caller | None:
        known = self._known
        key = await read_unit(self._store, find_key(digest(token)))
        if key is None or key.environment != self.environment:
            self._seen.discard(token)
            return None
        # Into the dict from before the read: after a refresh in between, this row may be stale.
        known[token] = key
        self._seen.add(token)
        return key
