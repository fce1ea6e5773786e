"""The limiter of many processes: limits in Redis, and in memory while Redis is unavailable."""

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from petstore.clock import Clock, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.keys.model import Caller
from petstore.limits.contract import BanRules, Budget, Decision, RateLimitStore, State
from petstore.limits.memory import MemoryLimiter
from petstore.limits.redis_judge import Mode, RedisRateLimiter
from petstore.redis_client import RedisClient, RedisUnavailable

_TIMEOUT = 0.14
_LOG = logging.getLogger(__name__)


class RedisLimiter:
    """Limits in Redis, and this process's share of them while Redis is unavailable.

    Meanwhile the limiter's time is ``clock``, corrected by what the last heartbeat said about the
    server's clock, so clients that waited for ``Retry-After`` have waited long enough. There are at
    least ``min_processes``, even if fewer have announced themselves.
    """

    def __init__(
        self,
        client: RedisClient,
        store: RateLimitStore,
        clock: Clock,
        rules: BanRules,
        min_processes: int = 1,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._min_processes = self._processes = min_processes
        self._shared = RedisRateLimiter(client, store, rules, timeout)
        self.save = self._shared.save  # copies the states that changed into the store
        self._local: MemoryLimiter | None = None
        self._server_ahead: Milliseconds = 0
        self.fallbacks = 0

    @property
    def bans(self) -> int:
        """How many bans began in Redis by a request of this process."""
        return self._shared.bans

    @property
    def has_fallen_back(self) -> bool:
        """Whether Redis is unavailable, and this process enforces its share alone."""
        return self._local is not None

    async def take(self, key: Caller) -> Decision:
        """Judge a request with ``key`` and charge it if it is admitted."""
        return await self._judge("take", key)

    async def look(self, key: Caller) -> Decision:
        """Describe the windows of ``key`` without charging anything."""
        return await self._judge("look", key)

    async def charge(self, key: Caller, requests: int, taken: Decision | None = None) -> Decision:
        """Charge ``requests`` to the day of ``key``: all of them, or none."""
        return await self._judge("charge", key, requests, taken)

    async def take_of(self, budget: Budget, holder: str) -> Decision:
        """Judge what ``holder`` does within a ``budget``, and charge it if it is admitted."""
        return await self._judge_minute("take", budget, holder)

    async def look_at(self, budget: Budget, holder: str) -> Decision:
        """Describe the window of ``holder`` without charging anything."""
        return await self._judge_minute("look", budget, holder)

    async def heartbeat(self) -> None:
        """Announce this process, learn how many there are, and return to Redis if it is back."""
        try:
            processes, now = await self._shared.heartbeat()
        except RedisUnavailable as error:
            self._fall_back(error)
            return
        self._server_ahead = now - self._clock()
        if self._local is None:
            self._processes = max(self._min_processes, processes)
        else:
            # The others may not have announced themselves yet to a server that was restarted.
            self._processes = max(self._processes, processes)
            self._local = None
            _LOG.warning("Redis is back; processes share limits again")

    async def close(self) -> None:
        await self._shared.close()

    async def _judge(
        self, mode: Mode, key: Caller, requests: int = 0, taken: Decision | None = None
    ) -> Decision:
        local = self._local
        if local is None:
            try:
                return await self._shared.judge(mode, key, requests, taken)
            except RedisUnavailable as error:
                local = self._fall_back(error)
        per_minute, per_day = key.limits.share(self._processes)
        key = replace(key, per_minute=per_minute, per_day=per_day)
        if mode == "charge":
            return await local.charge(key, requests, taken)
        return await (local.take(key) if mode == "take" else local.look(key))

    async def _judge_minute(self, mode: Mode, budget: Budget, holder: str) -> Decision:
        local = self._local
        if local is None:
            try:
                return await self._shared.judge_minute(mode, budget, holder)
            except RedisUnavailable as error:
                local = self._fall_back(error)
        per_minute, _ = Limits(budget.per_minute, UNLIMITED).share(self._processes)
        judge = local.take_of if mode == "take" else local.look_at
        return await judge(budget._replace(per_minute=per_minute), holder)

    def _fall_back(self, error: RedisUnavailable) -> MemoryLimiter:
        if self._local is None:
            _LOG.warning(
                "Redis is unavailable; each of %d processes enforces its share of the limits: %s",
                self._processes,
                error,
            )
            self.fallbacks += 1
            self._local = self._share()
        return self._local

    def _share(self) -> MemoryLimiter:
        """Return a limiter in memory with what this process may admit alone."""

        def clock() -> Milliseconds:
            return self._clock() + self._server_ahead

        return MemoryLimiter(_Shares(self._shared, self._processes), clock, self._rules)


class _Shares:
    """The states of keys, with the usage divided by ``processes``."""

    def __init__(self, shared: RedisRateLimiter, processes: int) -> None:
        self._shared = shared
        self._processes = processes

    async def load(self, key_id: int) -> State | None:
        state = await self._shared.load(key_id)
        if state is None:
            return None
        # Rounded up: together the processes count no less than was used.
        return replace(
            state,
            minute_used=-(-state.minute_used // self._processes),
            day_used=-(-state.day_used // self._processes),
        )

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save nothing: the count of one process alone is not the state of a key."""
