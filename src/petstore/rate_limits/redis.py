"""Limits in Redis, and what happens while that is out of reach.

Then a limiter in memory takes over, with this process's share of each limit. Redis is tried again
each second, and takes over again by itself.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from petstore.clock import Clock, Milliseconds
from petstore.domain.api_keys import ApiKey
from petstore.domain.plans import UNLIMITED, Limits
from petstore.rate_limits.addresses import AddressLimiter
from petstore.rate_limits.contract import NEVER, BanRules, Decision, PardonStore, State
from petstore.rate_limits.memory import MemoryLimiter
from petstore.rate_limits.shared import SharedLimiter
from petstore.rate_limits.trips import OutOfReach, Trips
from petstore.rate_limits.unbans import Pardons

Either: TypeAlias = SharedLimiter | MemoryLimiter
Question: TypeAlias = Callable[[Either], Awaitable[Decision]]
QuestionOfKey: TypeAlias = Callable[[Either, ApiKey], Awaitable[Decision]]

_LOG = logging.getLogger(__name__)


class RedisLimiter:
    """Asks Redis, or while that is out of reach a limiter in memory.

    The time is that of the Redis server. While that is out of reach ``clock`` goes on from the time
    it told last, so what callers were told to wait for is still enough. There are at least so many
    ``processes``, though Redis may have heard of fewer so far. Bans begin and end in every process
    at once: before one is enforced, the store is asked whether it was lifted.
    """

    def __init__(
        self,
        trips: Trips,
        store: PardonStore,
        clock: Clock,
        rules: BanRules,
        per_minute_of_an_address: int,
        addresses: int,
        processes: int = 1,
    ) -> None:
        self._trips = trips
        self._clock = clock
        self._rules = rules
        self._address_limits = Limits(per_minute_of_an_address, UNLIMITED)
        self._addresses = addresses
        self._least_processes = self._processes = processes
        self._unbans = Pardons(store)
        self._shared = SharedLimiter(trips, store, rules, self._address_limits)
        self._fallback: MemoryLimiter | None = None
        self._ahead: Milliseconds = 0  # of the server's clock, when it was last heard

    async def take(self, key: ApiKey) -> Decision:
        """Judge a request with ``key`` and charge it if it is admitted."""
        return await self._ask_of(key, lambda limiter, key: limiter.take(key))

    async def look(self, key: ApiKey) -> Decision:
        """Describe the windows of ``key`` as they stand, charging nothing."""
        return await self._ask_of(key, lambda limiter, key: limiter.look(key))

    async def take_address(self, address: str) -> Decision:
        """Judge a request without a valid key from ``address``, and charge it if admitted."""
        return await self._ask(lambda limiter: limiter.take_address(address))

    async def look_address(self, address: str) -> Decision:
        """Describe the window of ``address``, charging nothing."""
        return await self._ask(lambda limiter: limiter.look_address(address))

    async def save(self) -> None:
        """Copy what Redis said of keys since the last time into the store.

        Raises:
            Unavailable: the counts could not be saved; they stay to be saved later.
        """
        await self._shared.save()

    async def beat(self) -> None:
        """Tell Redis of this process, learn how many there are, and return to it if it is back."""
        try:
            counted, now = await self._trips.count_processes()
        except OutOfReach as error:
            self._fall_back(error)
            return
        self._ahead = now - self._clock()
        if self._fallback is None:
            self._processes = max(self._least_processes, counted)
        else:
            # Others may not have told of themselves yet to a server that was restarted.
            self._processes = max(self._processes, counted)
            self._fallback = None
            _LOG.warning("Redis is back: limits are shared again")

    async def close(self) -> None:
        """Disconnect."""
        await self._trips.close()

    async def _ask_of(self, key: ApiKey, question: QuestionOfKey) -> Decision:
        decision = await self._ask(lambda limiter: question(limiter, key))
        if decision.verdict != "banned":
            return decision
        unbanned_at = await self._unbans.of(key)
        if unbanned_at <= (key.unbanned_at or NEVER):
            return decision
        unbanned = replace(key, unbanned_at=unbanned_at)
        return await self._ask(lambda limiter: question(limiter, unbanned))

    async def _ask(self, question: Question) -> Decision:
        fallback = self._fallback
        if fallback is None:
            try:
                return await question(self._shared)
            except OutOfReach as error:
                fallback = self._fall_back(error)
        return await question(fallback)

    def _fall_back(self, error: OutOfReach) -> MemoryLimiter:
        if self._fallback is None:
            _LOG.warning(
                "Redis is out of reach, each of %d processes enforces its share of the limits: %s",
                self._processes,
                error,
            )
            self._fallback = self._share()
        return self._fallback

    def _share(self) -> MemoryLimiter:
        """Return a limiter in memory with what this process may admit if it can ask no other."""
        per_minute, _ = self._address_limits.share(self._processes)
        return MemoryLimiter(
            _Shares(self._shared, self._processes),
            self._time,
            self._rules,
            AddressLimiter(self._time, per_minute, self._addresses),
            self._processes,
        )

    def _time(self) -> Milliseconds:
        return self._clock() + self._ahead


class _Shares:
    """What is known of keys, as one of ``processes`` that share it."""

    def __init__(self, shared: SharedLimiter, processes: int) -> None:
        self._shared = shared
        self._processes = processes

    async def load(self, key_id: int) -> State | None:
        state = await self._shared.recall(key_id)
        if state is None:
            return None
        return replace(
            state,
            minute_used=_share(state.minute_used, self._processes),
            day_used=_share(state.day_used, self._processes),
        )

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save nothing: what one process counted by itself is not the state of a key."""


def _share(used: int, processes: int) -> int:
    """Return what each of ``processes`` counts as used; together they count no less."""
    return -(-used // processes)
