"""Random traces of requests against a reference that only keeps a list of what was admitted."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.limits.decide import BanRules, Decision, LimitWindow, Verdict
from support.exploration import explored
from support.limited_key import LimitedKey
from support.strategies import Step, pauses, small_limits, traces

NO_BANS = BanRules(min_strikes=UNLIMITED)


class Seen(NamedTuple):
    """The parts of a decision that a client sees."""

    verdict: Verdict
    described: LimitWindow
    minute: LimitWindow
    day: LimitWindow
    day_used: int


def seen(decision: Decision) -> Seen:
    return Seen(
        decision.verdict, decision.described, decision.minute, decision.day, decision.day_used
    )


class Reference:
    """Counts what was admitted anew each time, straight from the sentences about limits."""

    def __init__(self) -> None:
        self.admitted: list[Milliseconds] = []

    def judge(self, now: Milliseconds, limits: Limits) -> Seen:
        """A request is admitted only if both windows have room, and then costs one in both."""
        minute, _ = self._minute(now)
        verdict: Verdict = "limited"
        if len(minute) < limits.per_minute and len(self._day(now)) < limits.per_day:
            verdict = "admitted"
            self.admitted.append(now)
        minute, started = self._minute(now)
        windows = [
            LimitWindow(limits.per_minute, _left(limits.per_minute, minute), _up(started + MINUTE)),
            LimitWindow(limits.per_day, _left(limits.per_day, self._day(now)), _midnight(now)),
        ]
        shown = windows
        if verdict == "limited":
            shown = [window for window in windows if window.remaining == 0]
        remaining = min(window.remaining for window in shown)
        described = max(
            (window for window in shown if window.remaining == remaining),
            key=lambda window: window.reset,
        )
        return Seen(verdict, described, windows[0], windows[1], len(self._day(now)))

    def _minute(self, now: Milliseconds) -> tuple[list[Milliseconds], Milliseconds]:
        """The minute is 60 s from its first admitted request."""
        window: list[Milliseconds] = []
        for moment in self.admitted:
            if not window or moment >= window[0] + MINUTE:
                window = []
            window.append(moment)
        if not window or now >= window[0] + MINUTE:
            return [], now
        return window, window[0]

    def _day(self, now: Milliseconds) -> list[Milliseconds]:
        return [moment for moment in self.admitted if moment // DAY == now // DAY]


def _left(limit: int, used: list[Milliseconds]) -> int:
    return max(0, limit - len(used))


def _up(moment: Milliseconds) -> int:
    return (moment + SECOND - 1) // SECOND


def _midnight(now: Milliseconds) -> int:
    return (now // DAY + 1) * DAY // SECOND


@explored(50)
@given(traces)
def test_the_limiter_agrees_with_the_reference(trace: list[Step]) -> None:
    caller, reference = LimitedKey(Limits(1, 1), NO_BANS), Reference()
    for step in trace:
        caller.clock.now += step.pause
        caller.limits = step.limits
        expected = reference.judge(caller.clock(), step.limits)
        actual = seen(caller.ask())
        assert actual == expected or _equal_but_for_a_tie(actual, expected)


def _equal_but_for_a_tie(actual: Seen, expected: Seen) -> bool:
    """Two windows with as many left and the same reset: either may be described."""
    return actual._replace(described=expected.described) == expected and (
        (actual.described.remaining, actual.described.reset)
        == (expected.described.remaining, expected.described.reset)
    )


@explored(50)
@given(st.lists(st.tuples(pauses, st.integers(-2 * DAY, 0)), max_size=30), small_limits)
def test_a_clock_that_steps_back_never_admits_more(
    waits: list[tuple[Milliseconds, Milliseconds]], limits: Limits
) -> None:
    """Whatever is asked with the clock set back, it would have been refused without that too."""
    steady, stepping = LimitedKey(limits, NO_BANS), LimitedKey(limits, NO_BANS)
    for wait, step_back in waits:
        steady.clock.now += wait
        stepping.clock.now = steady.clock.now + step_back
        stepping.state = steady.state
        if stepping.ask().verdict == "admitted":
            assert steady.ask().verdict == "admitted"


@explored(50)
@given(st.lists(pauses, max_size=60), small_limits)
def test_a_client_that_waits_for_retry_after_is_never_banned(
    waits: list[Milliseconds], limits: Limits
) -> None:
    caller = LimitedKey(limits, BanRules(min_strikes=1, strikes_divisor=1000))
    for wait in waits:
        caller.clock.now += wait
        decision = caller.ask()
        assert decision.verdict != "banned"
        if decision.verdict == "limited":
            caller.clock.now = decision.described.reset * SECOND
            assert caller.ask().verdict == "admitted"
