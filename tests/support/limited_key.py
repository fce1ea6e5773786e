"""A caller of the limiter: one key's state, judged by the pure function, by a clock of its own."""

from petstore.clock import Milliseconds
from petstore.domain.plans import Limits
from petstore.limits.decide import NEVER, BanRules, Decision, State, charge, decide, describe
from support.manual_clock import ManualClock


class LimitedKey:
    """Asks, waits, changes its plan and is unbanned."""

    def __init__(self, limits: Limits, rules: BanRules | None = None) -> None:
        self.limits = limits
        self.rules = rules or BanRules()
        self.clock = ManualClock()
        self.state = State()
        self.unbanned_at: Milliseconds = NEVER

    def ask(self, times: int = 1, *, every: float = 0) -> Decision:
        for _ in range(times):
            self.clock.advance(every)
            decision, self.state = decide(
                self.state, self.limits, self.rules, self.clock(), self.unbanned_at
            )
        return decision

    def charge(self, requests: int) -> Decision:
        """Charge so many requests to the day."""
        decision, self.state = charge(
            self.state, self.limits, self.clock(), self.unbanned_at, requests
        )
        return decision

    def look(self) -> Decision:
        return describe(self.state, self.limits, self.clock(), self.unbanned_at)
