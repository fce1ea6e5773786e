"""The limiters of one process: exact, in memory; limits of keys are saved, too."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec.structs import replace

from petstore.clock import MINUTE, Clock, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.generations import TwoGenerationCache
from petstore.keys.model import Caller
from petstore.limits.decide import (
    NEVER,
    NO_BANS,
    BanRules,
    Budget,
    Decision,
    RateLimitStore,
    State,
    charge,
    decide,
    describe,
    touched,
)

_FRESH = State()
_GENERATION = 2 * MINUTE

H = TypeVar("H", bound=Hashable)


class MinuteLimiter(Generic[H]):
    """One window a minute for each subject, without bans."""

    def __init__(self, clock: Clock, budget: Budget) -> None:
        self.budget = budget
        self._clock = clock
        self._states: dict[H, State] = {}

    def take(self, subject: H, per_minute: int = UNLIMITED) -> Decision:
        now, state = self._clock(), self._states.get(subject, _FRESH)
        decision, after = decide(state, self._limits_of(per_minute), NO_BANS, now, NEVER)
        if after.minute_started != state.minute_started:
            # A new window goes to the end, so the first in the table is always the oldest.
            self._states.pop(subject, None)
            self._make_room(now)
        self._states[subject] = after
        return decision

    def look(self, subject: H, per_minute: int = UNLIMITED) -> Decision:
        state = self._states.get(subject, _FRESH)
        return describe(state, self._limits_of(per_minute), self._clock(), NEVER)

    def give_back(self, subject: H) -> None:
        state = self._states.get(subject, _FRESH)
        if state.minute_used > 1:
            self._states[subject] = replace(state, minute_used=state.minute_used - 1)
        elif state.minute_used:
            del self._states[subject]

    def _limits_of(self, per_minute: int) -> Limits:
        return Limits(min(per_minute, self.budget.per_minute), UNLIMITED)

    def _make_room(self, now: Milliseconds) -> None:
        while self._states:
            oldest = next(iter(self._states))
            ended = now >= self._states[oldest].minute_started + MINUTE
            if not ended and len(self._states) < self.budget.capacity:
                return
            del self._states[oldest]


class UnsavedStates:
    """The states that are newer than those in ``store``, and the days that ended since."""

    def __init__(self, store: RateLimitStore) -> None:
        self._store = store
        self._states: dict[int, State] = {}
        self._ended_days: list[tuple[int, State]] = []

    async def load(self, key_id: int) -> State | None:
        return self._states.get(key_id) or await self._store.load(key_id)

    def put(self, key_id: int, state: State) -> None:
        before = self._states.get(key_id)
        if before is not None and before.day != state.day and before.day_used:
            self._ended_days.append((key_id, before))
        self._states[key_id] = state

    async def save(self) -> None:
        states, ended_days = self._states, self._ended_days
        if not states:
            return
        self._states, self._ended_days = {}, []
        try:
            await self._store.save([*ended_days, *states.items()])
        except BaseException:
            newer, newly_ended = self._states, self._ended_days
            self._states, self._ended_days = states, ended_days + newly_ended
            for key_id, state in newer.items():
                self.put(key_id, state)
            raise


class MemoryLimiter:
    """Keeps the states of active keys in memory; the store has the rest.

    Nothing is awaited between reading a state and writing it back, so in one event loop the
    count is exact however many requests come at once. The states of idle keys are forgotten once
    they are saved.
    """

    def __init__(self, store: RateLimitStore, clock: Clock, rules: BanRules) -> None:
        self._clock = clock
        self._rules = rules
        # Apart, or a flood of addresses would have wrong passwords forgotten.
        self._minutes: dict[str, MinuteLimiter[str]] = {}
        self._states: TwoGenerationCache[int, State] = TwoGenerationCache()
        self._turned_at = clock()
        self._unsaved = UnsavedStates(store)
        self.bans = 0

    async def take(self, key: Caller) -> Decision:
        state = self._states.get(key.id) or await self._load(key.id)
        decision, after = decide(
            state, key.limits, self._rules, self._clock(), key.unbanned_at or NEVER
        )
        if after is not state:
            self._keep(key.id, after)
            self.bans += after.banned_at > state.banned_at
        return decision

    async def look(self, key: Caller) -> Decision:
        state = self._states.get(key.id) or await self._load(key.id)
        now = self._clock()
        after = touched(state, now)
        if after is not state:
            self._keep(key.id, after)
        return describe(state, key.limits, now, key.unbanned_at or NEVER)

    async def charge(self, key: Caller, requests: int, taken: Decision | None = None) -> Decision:
        state = self._states.get(key.id) or await self._load(key.id)
        decision, after = charge(
            state, key.limits, self._clock(), key.unbanned_at or NEVER, requests, taken
        )
        if after is not state:
            self._keep(key.id, after)
        return decision

    async def take_of(self, budget: Budget, subject: str) -> Decision:
        return self._minutes_of(budget).take(subject, budget.per_minute)

    async def look_at(self, budget: Budget, subject: str) -> Decision:
        return self._minutes_of(budget).look(subject, budget.per_minute)

    async def save(self) -> None:
        await self._unsaved.save()
        now = self._clock()
        if now >= self._turned_at + _GENERATION:
            self._states.turn()  # the save that just ended has saved whatever is dropped
            self._turned_at = now

    async def heartbeat(self) -> None:
        """Do nothing: there are no other processes."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _minutes_of(self, budget: Budget) -> MinuteLimiter[str]:
        if budget.name not in self._minutes:
            unlimited = budget._replace(per_minute=UNLIMITED)  # some have different numbers
            self._minutes[budget.name] = MinuteLimiter(self._clock, unlimited)
        return self._minutes[budget.name]

    def _keep(self, key_id: int, state: State) -> None:
        self._states.put(key_id, state)
        self._unsaved.put(key_id, state)

    async def _load(self, key_id: int) -> State:
        loaded = await self._unsaved.load(key_id) or _FRESH
        state = self._states.get(key_id)  # of a request that was faster
        if state is None:
            self._states.put(key_id, loaded)
        return state or loaded
