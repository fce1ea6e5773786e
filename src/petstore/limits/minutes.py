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
    """One window a minute for each subject, without bans."""

    def __init__(self, clock: Clock, budget: Budget) -> None:
        self.budget = budget
        self._clock = clock
        self._states: dict[H, State] = {}

    def take(self, subject: H, per_minute: int = UNLIMITED) -> Decision:
        """Judge a request of ``subject``, and charge it if it is admitted."""
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
