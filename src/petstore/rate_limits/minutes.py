"""Limits by the minute alone, in the memory of one process."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec.structs import replace

from petstore.clock import MINUTE, Clock, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.rate_limits.contract import NEVER, BanRules, Decision, State
from petstore.rate_limits.decide import decide, describe

H = TypeVar("H", bound=Hashable)

_NO_BANS = BanRules(least_strikes=UNLIMITED)
_FRESH = State()


class MinuteLimiter(Generic[H]):
    """One window a minute for each holder, in a table that never outgrows ``capacity``.

    There are no bans.
    """

    def __init__(self, clock: Clock, per_minute: int, capacity: int) -> None:
        self._clock = clock
        self._limits = Limits(per_minute, UNLIMITED)
        self._capacity = capacity
        self._states: dict[H, State] = {}

    def take(self, holder: H) -> Decision:
        """Judge a request of ``holder``, and charge it if it is admitted."""
        now = self._clock()
        state = self._states.get(holder, _FRESH)
        decision, after = decide(state, self._limits, _NO_BANS, now, NEVER)
        if after.minute_started != state.minute_started:
            # A new window goes to the end, so the first in the table is always the oldest.
            self._states.pop(holder, None)
            self._make_room(now)
        self._states[holder] = after
        return decision

    def look(self, holder: H) -> Decision:
        """Describe the window of ``holder``, charging nothing."""
        state = self._states.get(holder, _FRESH)
        return describe(state, self._limits, self._clock(), NEVER)

    def give_back(self, holder: H) -> None:
        """Take back the charge of one request, if anything of ``holder`` is remembered."""
        state = self._states.get(holder, _FRESH)
        if state.minute_used:
            self._states[holder] = replace(state, minute_used=state.minute_used - 1)

    def _make_room(self, now: Milliseconds) -> None:
        while self._states:
            oldest = next(iter(self._states))
            ended = now >= self._states[oldest].minute_started + MINUTE
            if not ended and len(self._states) < self._capacity:
                return
            del self._states[oldest]
