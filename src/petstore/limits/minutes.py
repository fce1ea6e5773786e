"""Limits by the minute alone, in the memory of one process."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec.structs import replace

from petstore.clock import MINUTE, Clock, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.limits.decide import NEVER, NO_BANS, Budget, Decision, State, decide, describe

_FRESH = State()

H = TypeVar("H", bound=Hashable)


class MinuteLimiter(Generic[H]):
    """One window a minute for each holder, without bans."""

    def __init__(self, clock: Clock, budget: Budget) -> None:
        self.budget = budget
        self._clock = clock
        self._states: dict[H, State] = {}

    def take(self, holder: H, per_minute: int = UNLIMITED) -> Decision:
        """Judge a request of ``holder``, and charge it if it is admitted."""
        now, state = self._clock(), self._states.get(holder, _FRESH)
        decision, after = decide(state, self._limits_of(per_minute), NO_BANS, now, NEVER)
        if after.minute_started != state.minute_started:
            # A new window goes to the end, so the first in the table is always the oldest.
            self._states.pop(holder, None)
            self._make_room(now)
        self._states[holder] = after
        return decision

    def look(self, holder: H, per_minute: int = UNLIMITED) -> Decision:
        state = self._states.get(holder, _FRESH)
        return describe(state, self._limits_of(per_minute), self._clock(), NEVER)

    def give_back(self, holder: H) -> None:
        state = self._states.get(holder, _FRESH)
        if state.minute_used > 1:
            self._states[holder] = replace(state, minute_used=state.minute_used - 1)
        elif state.minute_used:
            del self._states[holder]

    def _limits_of(self, per_minute: int) -> Limits:
        return Limits(min(per_minute, self.budget.per_minute), UNLIMITED)

    def _make_room(self, now: Milliseconds) -> None:
        while self._states:
            oldest = next(iter(self._states))
            ended = now >= self._states[oldest].minute_started + MINUTE
            if not ended and len(self._states) < self.budget.capacity:
                return
            del self._states[oldest]
