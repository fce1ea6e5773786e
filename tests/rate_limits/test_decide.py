"""The windows and bans of a key, sentence by sentence."""

import pytest

from petstore.clock import DAY, SECOND
from petstore.domain.plans import PLANS, UNLIMITED, Limits, PlanName
from petstore.rate_limits.contract import NEVER, BanRules, State, Window
from support.caller import Caller

NOON = 20_788 * 86_400 + 43_200
MIDNIGHT = NOON + 43_200
FIVE_MINUTES = 300
ONE_DAY = 86_400
FREE = PLANS["free"]


def refused_all_day(limits: Limits = FREE, rules: BanRules | None = None) -> Caller:
    """Return a caller whose day is used up, so that only what it does counts."""
    caller = Caller(limits, rules)
    caller.ask()
    caller.limits = Limits(limits.per_minute, 1)
    return caller


def get_banned(caller: Caller) -> float:
    """Keep asking after 429 until the ban, and return for how many seconds it is."""
    while caller.ask(every=0.125).verdict != "banned":
        pass
    return (caller.state.banned_until - caller.clock()) / SECOND


@pytest.mark.parametrize("plan", ["free", "pro", "business"])
def test_a_request_beyond_the_minute_is_refused(plan: PlanName) -> None:
    caller = Caller(PLANS[plan])
    assert caller.ask(caller.limits.per_minute).verdict == "admitted"
    assert caller.ask().verdict == "limited"


def test_a_request_beyond_the_day_is_refused() -> None:
    caller = Caller(FREE)
    assert caller.ask(1_000, every=1.1).verdict == "admitted"
    assert caller.ask(every=1.1).verdict == "limited"


def test_a_request_refused_for_the_minute_does_not_cost_one_of_the_day() -> None:
    caller = Caller(Limits(2, 10))
    decision = caller.ask(9)
    assert decision.minute.remaining == 0
    assert decision.day.remaining == 8
    assert decision.day_used == 2


def test_a_request_refused_for_the_day_does_not_cost_one_of_the_minute() -> None:
    caller = Caller(Limits(10, 2))
    decision = caller.ask(9)
    assert decision.day.remaining == 0
    assert decision.minute.remaining == 8


def test_an_admitted_request_costs_one_in_both_windows() -> None:
    decision = Caller(FREE).ask()
    assert decision.minute == Window(60, 59, NOON + 60)
    assert decision.day == Window(1_000, 999, MIDNIGHT)
    assert decision.day_used == 1


def test_the_minute_is_60_seconds_from_its_first_admitted_request() -> None:
    caller = Caller(Limits(2, 10))
    caller.clock.advance(17.25)
    caller.ask()
    caller.clock.advance(40)
    caller.ask()
    caller.clock.advance(19.999)
    assert caller.ask().verdict == "limited"
    caller.clock.advance(0.001)
    decision = caller.ask()
    assert decision.verdict == "admitted"
    assert decision.minute.remaining == 1


def test_the_next_minute_begins_with_its_own_first_request() -> None:
    caller = Caller(Limits(2, 10))
    caller.ask()
    caller.clock.advance(95)
    assert caller.ask().minute.reset == NOON + 95 + 60


def test_a_refused_request_begins_no_minute() -> None:
    caller = Caller(Limits(2, 1))
    caller.ask()
    caller.clock.advance(70)
    caller.ask()
    caller.clock.advance(43_200)
    decision = caller.ask()
    assert decision.minute.reset == NOON + 70 + 43_200 + 60


def test_the_day_is_from_midnight_utc() -> None:
    caller = Caller(Limits(10, 2))
    caller.clock.advance(43_200 - 60)
    caller.ask(2)
    caller.clock.advance(59.999)
    assert caller.ask().verdict == "limited"
    caller.clock.advance(0.001)
    decision = caller.ask()
    assert decision.verdict == "admitted"
    assert decision.day == Window(2, 1, MIDNIGHT + ONE_DAY)


def test_the_minute_goes_on_over_midnight() -> None:
    caller = Caller(Limits(2, 10))
    caller.clock.advance(43_200 - 1)
    caller.ask(2)
    caller.clock.advance(2)
    assert caller.ask().verdict == "limited"


def test_the_window_with_fewer_requests_left_is_described() -> None:
    assert Caller(Limits(5, 10)).ask().described == Window(5, 4, NOON + 60)
    assert Caller(Limits(10, 5)).ask().described == Window(5, 4, MIDNIGHT)


def test_on_a_tie_the_window_that_resets_later_is_described() -> None:
    caller = Caller(Limits(5, 5))
    assert caller.ask().described.reset == MIDNIGHT
    late = Caller(Limits(5, 5))
    late.clock.advance(43_200 - 10)
    assert late.ask().described.reset == MIDNIGHT + 50


def test_a_429_describes_the_exhausted_window() -> None:
    caller = Caller(Limits(1, 10))
    caller.ask()
    assert caller.ask().described == Window(1, 0, NOON + 60)
    caller = Caller(Limits(10, 1))
    caller.ask()
    assert caller.ask().described == Window(1, 0, MIDNIGHT)


def test_a_429_for_two_exhausted_windows_describes_the_later_to_reset() -> None:
    caller = Caller(Limits(1, 1))
    caller.ask()
    assert caller.ask().described.reset == MIDNIGHT
    caller = Caller(Limits(1, 1))
    caller.clock.advance(43_200 - 10)
    caller.ask()
    assert caller.ask().described.reset == MIDNIGHT + 50


def test_the_reset_is_the_same_for_the_whole_window_and_never_too_early() -> None:
    caller = Caller(FREE)
    caller.clock.advance(0.001)
    resets = {caller.ask(every=0.99).minute.reset for _ in range(60)}
    assert resets == {NOON + 61}


def test_a_larger_plan_keeps_the_usage_and_acts_at_once() -> None:
    caller = Caller(FREE)
    caller.ask(61)
    caller.limits = PLANS["pro"]
    decision = caller.ask()
    assert decision.verdict == "admitted"
    assert decision.minute == Window(300, 239, NOON + 60)
    assert decision.day == Window(10_000, 9_939, MIDNIGHT)


def test_a_smaller_plan_keeps_the_usage_and_acts_at_once() -> None:
    caller = Caller(PLANS["pro"])
    caller.ask(100)
    caller.limits = FREE
    decision = caller.ask()
    assert decision.verdict == "limited"
    assert decision.described == Window(60, 0, NOON + 60)


def test_without_limits_the_largest_value_is_reported() -> None:
    decision = Caller(PLANS["enterprise"]).ask(5_000)
    assert decision.verdict == "admitted"
    assert decision.described == Window(UNLIMITED, UNLIMITED, MIDNIGHT)
    assert decision.day_used == 5_000


def test_the_one_limit_of_a_key_is_the_one_described() -> None:
    assert Caller(Limits(UNLIMITED, 10)).ask().described == Window(10, 9, MIDNIGHT)
    assert Caller(Limits(10, UNLIMITED)).ask().described == Window(10, 9, NOON + 60)


@pytest.mark.parametrize("seconds", [0.001, 30, 3_600, ONE_DAY, 40 * ONE_DAY])
def test_a_clock_that_steps_back_grants_nothing(seconds: float) -> None:
    caller = Caller(Limits(2, 3))
    before = caller.ask(2)
    caller.clock.advance(-seconds)
    after = caller.ask()
    assert after.verdict == "limited"
    assert (after.minute.remaining, after.day.remaining) == (0, before.day.remaining)
    caller.limits = Limits(100, 3)
    assert caller.ask().day.remaining == 0
    assert caller.ask().verdict == "limited"


def test_a_clock_that_was_a_year_ahead_delays_nobody_for_longer_than_a_window() -> None:
    caller = Caller(Limits(2, 3))
    caller.clock.advance(365 * ONE_DAY)
    caller.ask(2)
    caller.clock.advance(-365 * ONE_DAY)
    assert caller.ask().minute == Window(2, 0, NOON + 60)
    caller.clock.advance(60)
    assert caller.ask().verdict == "admitted"
    assert caller.ask().day == Window(3, 0, MIDNIGHT)


def test_a_clock_that_steps_back_during_a_ban_does_not_end_it() -> None:
    caller = refused_all_day()
    get_banned(caller)
    caller.clock.advance(-ONE_DAY)
    assert caller.ask().verdict == "banned"


def test_looking_costs_nothing() -> None:
    caller = Caller(Limits(1, 5))
    for _ in range(9):
        fresh = caller.look()
    assert fresh.verdict == "admitted"
    assert fresh.described == Window(1, 1, NOON + 60)
    assert caller.state == State()
    caller.ask()
    assert caller.look().described == Window(1, 0, NOON + 60)


def test_looking_tells_of_a_ban() -> None:
    caller = refused_all_day()
    get_banned(caller)
    decision = caller.look()
    assert decision.verdict == "banned"
    assert decision.described.reset == -(-caller.state.banned_until // SECOND)


@pytest.mark.parametrize(
    ("per_minute", "strikes"),
    [(1, 20), (60, 20), (62, 20), (63, 21), (300, 100), (1_000, 333), (UNLIMITED, 20)],
)
def test_a_key_is_banned_after_a_third_of_its_minute_and_at_least_20_strikes(
    per_minute: int, strikes: int
) -> None:
    caller = refused_all_day(Limits(per_minute, 1))
    assert caller.ask().verdict == "limited"
    caller.clock.advance(1.001)
    assert caller.ask(strikes - 1).verdict == "limited"
    assert caller.ask().verdict == "banned"


def test_a_burst_in_flight_at_the_first_429_is_innocent() -> None:
    caller = refused_all_day()
    caller.ask()
    assert caller.ask(500, every=0.002).verdict == "limited"
    assert caller.state.strikes == 0


def test_a_429_more_than_a_second_after_the_first_is_a_strike() -> None:
    caller = refused_all_day()
    caller.ask()
    caller.ask(every=1)
    assert caller.state.strikes == 0
    caller.ask(every=0.001)
    assert caller.state.strikes == 1


def test_an_admitted_request_ends_the_run() -> None:
    caller = Caller(Limits(1, 100))
    caller.ask(2)
    caller.ask(every=60)
    caller.ask()
    caller.ask(every=0.9)
    assert caller.state.strikes == 0


def test_a_minute_of_silence_ends_the_run() -> None:
    caller = refused_all_day()
    caller.ask()
    caller.ask(50, every=60)
    assert caller.state.strikes == 0


def test_strikes_over_more_than_60_seconds_are_no_ban() -> None:
    caller = refused_all_day()
    assert caller.ask(200, every=3.2).verdict == "limited"


def test_a_strike_60_seconds_after_the_first_begins_to_count_anew() -> None:
    caller = refused_all_day()
    caller.ask()
    caller.ask(every=2)
    caller.ask(18, every=3)
    assert caller.state.strikes == 19
    assert caller.ask(every=6).verdict == "limited"
    assert caller.state.strikes == 1


def test_strikes_within_60_seconds_are_a_ban() -> None:
    caller = refused_all_day()
    caller.ask()
    assert caller.ask(20, every=3.1).verdict == "banned"


def test_strikes_of_several_runs_count_together() -> None:
    caller = Caller(Limits(60, 1_000))
    caller.ask(61)
    caller.ask(10, every=1.5)
    caller.clock.advance(45)
    assert caller.ask(60).verdict == "admitted"
    caller.ask()
    assert caller.state.strikes == 10


def test_the_first_ban_is_for_five_minutes() -> None:
    caller = refused_all_day()
    assert get_banned(caller) == FIVE_MINUTES
    decision = caller.ask()
    assert decision.described.remaining == 0
    assert decision.described.limit == 1


def test_each_ban_is_twice_as_long_up_to_a_day() -> None:
    caller = refused_all_day()
    lengths = []
    for _ in range(12):
        lengths.append(get_banned(caller))
        caller.clock.advance(lengths[-1])
        caller.limits = Limits(60, caller.ask().day_used)
    minutes = [length // 60 for length in lengths]
    assert minutes == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440, 1440]


def test_a_hundred_bans_are_no_overflow() -> None:
    caller = refused_all_day()
    caller.state = State(day=20_788, day_used=1, banned_until=caller.clock(), ban_level=100)
    assert get_banned(caller) == ONE_DAY


def test_a_ban_ends_on_time_whatever_was_asked_meanwhile() -> None:
    caller = refused_all_day(Limits(60, 1))
    get_banned(caller)
    banned_until = caller.state.banned_until
    assert caller.ask(299, every=1).verdict == "banned"
    assert caller.state.banned_until == banned_until
    assert caller.clock() - caller.state.used_at < 60 * SECOND
    caller.limits = FREE
    caller.clock.advance(1)
    assert caller.ask().verdict == "admitted"


def test_a_ban_holds_over_a_change_of_plan_and_midnight() -> None:
    caller = refused_all_day()
    caller.clock.advance(43_200 - 60)
    get_banned(caller)
    caller.clock.advance(120)
    caller.limits = PLANS["enterprise"]
    assert caller.ask().verdict == "banned"


@pytest.mark.parametrize(
    ("clean_days", "minutes"), [(0.999, 20), (1, 10), (1.999, 10), (2, 5), (3, 5), (40, 5)]
)
def test_each_clean_day_forgives_one_step(clean_days: float, minutes: int) -> None:
    rules = BanRules(min_strikes=1)
    caller = refused_all_day(Limits(1, 1), rules)
    caller.limits = Limits(1, 0)
    for _ in range(2):
        caller.ask()
        assert caller.ask(every=1.001).verdict == "banned"
        caller.clock.now = caller.state.banned_until
    caller.clock.advance(clean_days * ONE_DAY - 1.001)
    caller.ask()
    caller.ask(every=1.001)
    assert caller.state.banned_until - caller.clock() == minutes * 60 * SECOND


def test_an_unban_lifts_the_ban_and_keeps_the_usage() -> None:
    caller = refused_all_day()
    get_banned(caller)
    caller.unbanned_at = caller.clock()
    assert caller.look().verdict == "admitted"
    assert caller.ask().verdict == "limited"
    caller.limits = FREE
    assert caller.ask().day_used == 2


def test_an_unban_forgets_earlier_bans() -> None:
    caller = refused_all_day()
    get_banned(caller)
    caller.clock.advance(FIVE_MINUTES)
    get_banned(caller)
    caller.unbanned_at = caller.clock()
    assert get_banned(caller) == FIVE_MINUTES


@pytest.mark.parametrize("hours", [-1, 1])
def test_an_unban_lifts_the_ban_it_finds_though_its_clock_is_another(hours: int) -> None:
    caller = refused_all_day()
    get_banned(caller)
    caller.unbanned_at = caller.clock() + hours * 3_600 * SECOND
    assert caller.look().verdict == "admitted"
    assert caller.ask().verdict == "limited"
    get_banned(caller)
    assert caller.look().verdict == "banned"


def test_an_earlier_unban_lifts_no_ban() -> None:
    caller = refused_all_day()
    caller.unbanned_at = caller.clock()
    caller.ask()
    caller.unbanned_at -= 1
    get_banned(caller)
    assert caller.ask().verdict == "banned"


def test_an_unban_does_not_lift_a_later_ban() -> None:
    caller = refused_all_day()
    caller.unbanned_at = caller.clock()
    get_banned(caller)
    assert caller.ask().verdict == "banned"
    assert caller.state.banned_at > caller.unbanned_at > NEVER


def test_every_number_of_a_ban_is_a_setting() -> None:
    rules = BanRules(
        min_strikes=2,
        strikes_divisor=10,
        grace=0,
        window=10 * SECOND,
        duration=7 * SECOND,
        max_duration=9 * SECOND,
        decay=DAY,
    )
    caller = refused_all_day(Limits(10, 1), rules)
    caller.ask()
    assert caller.ask(every=0.001).verdict == "limited"
    assert caller.ask(every=0.001).verdict == "banned"
    assert caller.ask(every=6.999).verdict == "banned"
    assert caller.ask(every=0.001).verdict == "limited"
    assert caller.ask(every=0.001).verdict == "banned"
    assert caller.state.banned_until - caller.clock() == 9 * SECOND


def test_after_many_longest_bans_a_clean_day_still_forgives_a_step() -> None:
    caller = refused_all_day()
    for _ in range(20):
        caller.clock.advance(get_banned(caller))
        caller.limits = Limits(60, caller.ask().day_used)
    caller.clock.advance(ONE_DAY)
    caller.limits = Limits(60, caller.ask().day_used)
    assert get_banned(caller) == 300 * 2**8
