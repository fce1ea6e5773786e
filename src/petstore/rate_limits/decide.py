"""The limiter as one pure function. Every limiter agrees with it.

Times are whole milliseconds since the epoch, so any back end computes the same.
"""

from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.domain.plans import Limits
from petstore.rate_limits.contract import NEVER, BanRules, Decision, State, Verdict


def decide(
    state: State, limits: Limits, rules: BanRules, now: Milliseconds, unbanned_at: Milliseconds
) -> tuple[Decision, State]:
    """Judge one request at ``now`` and return the verdict and the state after it.

    A request is admitted only if both windows have room, and then costs one in both; a rejected
    one costs nothing in either. The unbans given at ``unbanned_at`` lifts the ban it finds.
    """
    state = _unbanned(state, unbanned_at)
    started, used, day, day_used = (
        state.minute_started,
        state.minute_used,
        state.day,
        state.day_used,
    )
    if not (started <= now < started + MINUTE and now // DAY == day):
        state = _in_reach(state, now)
        started, used, day, day_used = _windows(state, now)
    if now < state.banned_until:
        return decision(state, limits, now, "banned"), touched(state, now)
    if used < limits.per_minute and day_used < limits.per_day:
        state = State(
            started,
            used + 1,
            day,
            day_used + 1,
            NEVER,
            NEVER,
            state.strikes,
            state.struck_since,
            state.banned_at,
            state.banned_until,
            state.ban_level,
            now,
            state.unbanned_at,
        )
        admitted = Decision("admitted", limits, started, used + 1, day, day_used + 1, NEVER, now)
        return admitted, state
    state = _refused(state, limits, rules, now)
    verdict: Verdict = "banned" if now < state.banned_until else "limited"
    return decision(state, limits, now, verdict), state


def describe(
    state: State, limits: Limits, now: Milliseconds, unbanned_at: Milliseconds
) -> Decision:
    """Return the windows as they stand, charging nothing."""
    state = _in_reach(_unbanned(state, unbanned_at), now)
    return decision(state, limits, now, "banned" if now < state.banned_until else "admitted")


def decision(state: State, limits: Limits, now: Milliseconds, verdict: Verdict) -> Decision:
    """Return ``verdict`` with the windows as they stand after it."""
    banned_until = state.banned_until if verdict == "banned" else NEVER
    return Decision(verdict, limits, *_windows(state, now), banned_until, now)


def touched(state: State, now: Milliseconds) -> State:
    """Return ``state`` with the time of its last use, which is kept to the minute."""
    return replace(state, used_at=now) if now - state.used_at >= MINUTE else state


def _in_reach(state: State, now: Milliseconds) -> State:
    """Return ``state`` with windows that begin no later than a clock a little off could have it.

    A clock that was far ahead for a moment would else have callers wait as long. What was used
    stays used.
    """
    if state.minute_started <= now + MINUTE and (state.day - 1) * DAY <= now:
        return state
    return replace(
        state,
        minute_started=min(state.minute_started, now),
        day=min(state.day, now // DAY),
    )


def _windows(state: State, now: Milliseconds) -> tuple[Milliseconds, int, int, int]:
    """Return start and use of the minute, and number and use of the day, at ``now``.

    A clock that steps back finds its windows as they were: it never grants fresh quota.
    """
    started, used = state.minute_started, state.minute_used
    if now >= started + MINUTE:
        started, used = now, 0
    if now >= (state.day + 1) * DAY:
        return started, used, now // DAY, 0
    return started, used, state.day, state.day_used


def _refused(state: State, limits: Limits, rules: BanRules, now: Milliseconds) -> State:
    """Count a 429: the first of a run and those right behind it are innocent."""
    new_run = now - state.refused_at >= rules.window
    since = now if new_run else state.refused_since
    strikes, struck_since = state.strikes, state.struck_since
    if now - since > rules.innocence:
        if now - struck_since >= rules.window:
            strikes, struck_since = 0, now
        strikes += 1
    banned_at, banned_until, level = state.banned_at, state.banned_until, state.ban_level
    if strikes >= rules.threshold(limits.per_minute):
        level = max(0, level - max(0, now - banned_until) // rules.forgiven_after)
        banned_at = now
        banned_until = now + rules.length(level)
        level, strikes, struck_since = min(level + 1, rules.last_level), 0, NEVER
    return State(
        state.minute_started,
        state.minute_used,
        state.day,
        state.day_used,
        since,
        now,
        strikes,
        struck_since,
        banned_at,
        banned_until,
        level,
        now,
        state.unbanned_at,
    )


def _unbanned(state: State, unbanned_at: Milliseconds) -> State:
    """Return ``state`` without ban, strikes and earlier bans, unless it has heeded this unbans.

    A unbans is not compared with the ban: they are given by clocks that may differ.
    """
    if unbanned_at <= state.unbanned_at:
        return state
    return State(
        minute_started=state.minute_started,
        minute_used=state.minute_used,
        day=state.day,
        day_used=state.day_used,
        used_at=state.used_at,
        unbanned_at=unbanned_at,
    )
