"""The windows and bans of a key, sentence by sentence; ``test_limit_traces`` has the edges."""

import pytest

from petstore.clock import SECOND
from petstore.domain.plans import PLANS, UNLIMITED, Limits, PlanName
from petstore.limits.decide import NEVER, BanRules, LimitWindow, State
from support.limited_key import LimitedKey

NOON = 20_788 * 86_400 + 43_200
MIDNIGHT = NOON + 43_200
FIVE_MINUTES = 300
ONE_DAY = 86_400
FREE = PLANS["free"]


def refused_all_day(limits: Limits = FREE, rules: BanRules | None = None) -> LimitedKey:
    """Return a caller whose day is used up, so that only what it does counts."""
    caller = LimitedKey(limits, rules)
    caller.ask()
    caller.limits = Limits(limits.per_minute, 1)
    return caller


def get_banned(caller: LimitedKey) -> float:
    while caller.ask(every=0.125).verdict != "banned":
        pass
    return (caller.state.banned_until - caller.clock()) / SECOND


@pytest.mark.parametrize(
    ("plan", "admitted", "every"),
    [("free", 60, 0), ("pro", 300, 0), ("business", 1_000, 0), ("free", 1_000, 1.1)],
)
def test_a_request_beyond_the_limit_of_a_minute_or_day_is_refused(
    plan: PlanName, admitted: int, every: float
) -> None:
    caller = LimitedKey(PLANS[plan])
    assert caller.ask(admitted, every=every).verdict == "admitted"
    assert caller.ask(every=every).verdict == "limited"


def test_the_minute_lasts_60_seconds_from_its_first_admitted_request() -> None:
    caller = LimitedKey(Limits(2, 10))
    caller.clock.advance(17.25)
    caller.ask()
    assert caller.ask(every=40).verdict == "admitted"
    assert caller.ask(every=19.999).verdict == "limited"
    decision = caller.ask(every=0.001)
    assert (decision.verdict, decision.minute.remaining) == ("admitted", 1)
    assert caller.ask(every=95).minute.reset == NOON + 78 + 95 + 60
    caller.limits = Limits(2, 4)
    caller.ask(every=70)
    assert caller.ask(every=43_200).minute.reset == NOON + 78 + 95 + 70 + 43_200 + 60


def test_the_day_begins_at_midnight_utc_and_the_minute_continues() -> None:
    caller = LimitedKey(Limits(3, 2))
    caller.clock.advance(43_200 - 30)
    caller.ask(2)
    assert caller.ask(every=29.999).verdict == "limited"
    decision = caller.ask(every=0.001)
    assert decision.verdict == "admitted"
    assert decision.day == LimitWindow(2, 1, MIDNIGHT + ONE_DAY)
    assert caller.ask().described == LimitWindow(3, 0, MIDNIGHT + 30)


@pytest.mark.parametrize(
    ("limits", "asked", "described"),
    [
        (Limits(5, 10), 1, LimitWindow(5, 4, NOON + 60)),  # fewer requests left
        (Limits(10, 5), 1, LimitWindow(5, 4, MIDNIGHT)),
        (Limits(5, 5), 1, LimitWindow(5, 4, MIDNIGHT)),  # a tie: the later reset
        (Limits(UNLIMITED, 10), 1, LimitWindow(10, 9, MIDNIGHT)),  # the only limit
        (Limits(10, UNLIMITED), 1, LimitWindow(10, 9, NOON + 60)),
        (PLANS["enterprise"], 5_000, LimitWindow(UNLIMITED, UNLIMITED, MIDNIGHT)),
        (Limits(1, 10), 2, LimitWindow(1, 0, NOON + 60)),  # a 429: what is exhausted
        (Limits(10, 1), 2, LimitWindow(1, 0, MIDNIGHT)),
        (Limits(1, 1), 2, LimitWindow(1, 0, MIDNIGHT)),
    ],
)
def test_the_window_that_limits_a_key_first_is_described(
    limits: Limits, asked: int, described: LimitWindow
) -> None:
    decision = LimitedKey(limits).ask(asked)
    assert (decision.described, decision.day_used) == (described, min(asked, *limits))
    assert decision.seconds_left == described.reset - NOON


@pytest.mark.parametrize(
    ("limit", "asked", "left", "reset"),
    [(5, 1, 10, 50), (1, 2, 10, 50), (5, 1, 59.5, 1), (5, 1, 61, 0), (5, 1, 61.001, 0)],
)
def test_just_before_midnight_the_minute_may_reset_later_than_the_day(
    limit: int, asked: int, left: float, reset: int
) -> None:
    caller = LimitedKey(Limits(limit, limit))
    caller.clock.advance(43_200 - left)
    assert caller.ask(asked).described.reset == MIDNIGHT + reset


def test_the_reset_is_the_same_for_the_whole_window_and_never_too_early() -> None:
    caller = LimitedKey(FREE)
    caller.clock.advance(0.001)
    resets = {caller.ask(every=0.99).minute.reset for _ in range(60)}
    assert resets == {NOON + 61}


def test_a_change_of_plan_keeps_the_usage_and_takes_effect_at_once() -> None:
    caller = LimitedKey(FREE)
    assert caller.ask(61).verdict == "limited"
    caller.limits = PLANS["pro"]
    decision = caller.ask()
    assert decision.verdict == "admitted"
    assert decision.minute == LimitWindow(300, 239, NOON + 60)
    assert decision.day == LimitWindow(10_000, 9_939, MIDNIGHT)
    caller.limits = Limits(50, 55)
    decision = caller.ask()
    assert decision.verdict == "limited"
    assert decision.minute == LimitWindow(50, 0, NOON + 60)
    assert decision.day == LimitWindow(55, 0, MIDNIGHT)


@pytest.mark.parametrize("seconds", [0.001, 30, 3_600, ONE_DAY, 40 * ONE_DAY])
def test_a_clock_that_steps_back_admits_no_extra_requests(seconds: float) -> None:
    caller = LimitedKey(Limits(2, 3))
    before = caller.ask(2)
    caller.clock.advance(-seconds)
    after = caller.ask()
    assert after.verdict == "limited"
    assert (after.minute.remaining, after.day.remaining) == (0, before.day.remaining)
    caller.limits = Limits(100, 3)
    assert caller.ask().day.remaining == 0
    assert caller.ask().verdict == "limited"


def test_a_clock_that_was_a_year_ahead_delays_requests_for_at_most_a_window() -> None:
    caller = LimitedKey(Limits(2, 3))
    caller.clock.advance(365 * ONE_DAY)
    caller.ask(2)
    caller.clock.advance(-365 * ONE_DAY)
    assert caller.look().minute == LimitWindow(2, 0, NOON + 60)
    assert caller.ask().minute == LimitWindow(2, 0, NOON + 60)
    assert caller.ask(every=60).verdict == "admitted"
    assert caller.ask().day == LimitWindow(3, 0, MIDNIGHT)


def test_a_peek_is_not_counted_and_reports_a_ban() -> None:
    caller = LimitedKey(Limits(1, 5))
    for _ in range(9):
        fresh = caller.look()
    assert (fresh.verdict, fresh.described) == ("admitted", LimitWindow(1, 1, NOON + 60))
    assert caller.state == State()
    caller.ask()
    assert caller.look().described == LimitWindow(1, 0, NOON + 60)
    get_banned(caller)
    decision = caller.look()
    assert (decision.verdict, decision.seconds_left) == ("banned", FIVE_MINUTES)
    assert decision.described == LimitWindow(1, 0, -(-caller.state.banned_until // SECOND))


@pytest.mark.parametrize(
    ("per_minute", "strikes"),
    [(1, 20), (60, 20), (62, 20), (63, 21), (300, 100), (1_000, 333), (UNLIMITED, 20)],
)
def test_a_ban_takes_a_third_of_the_minute_limit_but_at_least_20_strikes(
    per_minute: int, strikes: int
) -> None:
    caller = refused_all_day(Limits(per_minute, 1))
    assert caller.ask().verdict == "limited"
    caller.clock.advance(1.001)
    assert caller.ask(strikes - 1).verdict == "limited"
    assert caller.ask().verdict == "banned"


@pytest.mark.parametrize(
    ("limits", "asked", "strikes"),
    [
        (Limits(60, 0), [(1, 0), (500, 0.002)], 0),  # in flight at the first 429
        (Limits(60, 0), [(1, 0), (1, 1)], 0),
        (Limits(60, 0), [(1, 0), (1, 1.001)], 1),
        (Limits(60, 0), [(1, 0), (50, 60)], 0),  # a minute without requests ends a run
        (Limits(1, 100), [(2, 0), (1, 60), (1, 0), (1, 0.9)], 0),  # so does an admitted one
        (Limits(60, 1_000), [(61, 0), (10, 1.5), (1, 46), (60, 0)], 10),  # runs are added up
        (Limits(60, 0), [(1, 0), (1, 2), (18, 3)], 19),
        (Limits(60, 0), [(1, 0), (1, 2), (18, 3), (1, 6)], 1),  # 60 seconds after the first
    ],
)
def test_a_429_more_than_a_second_after_the_first_of_a_run_is_a_strike(
    limits: Limits, asked: list[tuple[int, float]], strikes: int
) -> None:
    caller = LimitedKey(limits)
    for times, every in asked:
        assert caller.ask(times, every=every).verdict != "banned"
    assert caller.state.strikes == strikes


def test_each_ban_doubles_in_length_up_to_a_day_and_a_clean_day_halves_the_next() -> None:
    caller = refused_all_day()
    minutes = []
    for wait in [0] * 12 + [ONE_DAY]:
        caller.clock.advance(wait)
        caller.limits = Limits(60, caller.ask().day_used)
        length = get_banned(caller)
        minutes.append(length / 60)
        caller.clock.advance(length)
    longest = [1440, 1440, 1440, 5 * 2**8]
    assert minutes == [5, 10, 20, 40, 80, 160, 320, 640, 1280, *longest]


@pytest.mark.parametrize(
    ("duration", "max_duration", "level"),
    [(5, 3, 0), (5, 5, 0), (5, 6, 1), (5, 10, 1), (5, 11, 2), (5, 20, 2), (5, 21, 3)],
)
def test_the_last_level_of_bans_is_the_first_of_the_maximum_length(
    duration: int, max_duration: int, level: int
) -> None:
    assert BanRules(duration=duration, max_duration=max_duration).last_level == level


def test_requests_during_a_ban_do_not_prolong_it() -> None:
    caller = refused_all_day(Limits(60, 1))
    get_banned(caller)
    banned_until = caller.state.banned_until
    assert caller.ask(299, every=1).verdict == "banned"
    assert caller.state.banned_until == banned_until
    assert caller.clock() - caller.state.used_at < 60 * SECOND
    caller.clock.advance(0.999)
    assert (caller.look().verdict, caller.charge(0).verdict) == ("banned", "banned")
    caller.clock.advance(0.001)
    assert (caller.look().verdict, caller.charge(0).verdict) == ("admitted", "admitted")
    assert caller.ask().banned_until == NEVER
    caller.limits = FREE
    assert caller.ask().verdict == "admitted"


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_an_unban_lifts_the_ban_despite_clock_skew_and_forgets_earlier_ones(hours: int) -> None:
    caller = refused_all_day()
    get_banned(caller)
    caller.clock.advance(FIVE_MINUTES)
    get_banned(caller)
    caller.unbanned_at = caller.clock() + hours * 3_600 * SECOND
    assert caller.look().verdict == "admitted"
    assert caller.ask().verdict == "limited"
    assert get_banned(caller) == FIVE_MINUTES
    assert caller.look().verdict == "banned"
    assert caller.state.day_used == 1


@pytest.mark.parametrize("earlier", [0, 1])
def test_an_unban_does_not_lift_a_later_ban(earlier: int) -> None:
    caller = refused_all_day()
    caller.unbanned_at = caller.clock()
    caller.ask()
    caller.unbanned_at -= earlier
    get_banned(caller)
    assert caller.ask().verdict == "banned"
    assert caller.state.banned_at > caller.unbanned_at > NEVER


# Charges of the day alone


def test_a_charge_is_admitted_completely_or_not_at_all_up_to_the_day_limit() -> None:
    caller = LimitedKey(Limits(5, 10))
    caller.ask()
    decision = caller.charge(10)
    assert (decision.verdict, decision.day_used, caller.state.strikes) == ("limited", 1, 0)
    decision = caller.charge(9)
    assert (decision.verdict, decision.day_used, decision.minute_used) == ("admitted", 10, 1)
    assert caller.charge(1).verdict == "limited"


def test_a_refused_charge_describes_the_day_even_if_the_minute_has_less_left() -> None:
    caller = LimitedKey(Limits(1, 10))
    day = caller.ask().day
    assert caller.charge(10).described == day
    assert caller.charge(5).described.limit == 1
