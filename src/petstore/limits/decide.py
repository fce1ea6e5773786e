"""The limiter as one pure function. Every limiter agrees with it.

Times are whole milliseconds since the epoch, so every back end computes the same.
"""

from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.domain.plans import Limits
from petstore.limits.contract import NEVER, BanRules, Decision, State, Verdict


def decide(
    state: State, limits: Limits, rules: BanRules, now: Milliseconds, unbanned_at: Milliseconds
) -> tuple[Decision, State]:
    """Judge one request at ``now`` and return the decision and the state after it.

    A request is admitted only if both windows have room, and then costs one in both. A refused
    request costs nothing. An unban at ``unbanned_at`` lifts the ban it finds.
    """
    if unbanned_at > state.unbanned_at:
        state = _unbanned(state, unbanned_at)
    started, day = state.minute_started, state.day
    if started <= now < started + MINUTE and now // DAY == day:
        used, day_used = state.minute_used, state.day_used
    else:
        state = _clock_jump_corrected(state, now)
        started, used, day, day_used = _windows(state, now)
    if now < state.banned_until:
        return decision(state, limits, now, "banned"), touched(state, now)
    if used < limits.per_minute and day_used < limits.per_day:
        admitted = Decision("admitted", limits, started, used + 1, day, day_used + 1, NEVER, now)
        return admitted, replace(
            state,
            minute_started=started,
            minute_used=used + 1,
            day=day,
            day_used=day_used + 1,
            refused_since=NEVER,
            refused_at=NEVER,
            used_at=now,
        )
    state = _refused(state, limits, rules, now)
    verdict: Verdict = "banned" if now < state.banned_until else "limited"
    return decision(state, limits, now, verdict), state


def charge(
    state: State,
    limits: Limits,
    now: Milliseconds,
    unbanned_at: Milliseconds,
    requests: int,
    taken: Decision | None = None,
) -> tuple[Decision, State]:
    """Charge ``requests`` to the day alone, all of them or none, as one step at ``now``.

    The minute is for requests that come one by one. A refusal is no strike, and gives the request
    back that was ``taken`` with these, if its day still runs. The minute keeps it: it is what
    bounds refusals.
    """
    if unbanned_at > state.unbanned_at:
        state = _unbanned(state, unbanned_at)
    state = _clock_jump_corrected(state, now)
    if now < state.banned_until:
        return decision(state, limits, now, "banned"), touched(state, now)
    _, _, day, day_used = _windows(state, now)
    if day_used + requests > limits.per_day:
        if taken is not None and state.day == taken.day_number:
            state = replace(state, day_used=state.day_used - 1)
        refused = decision(state, limits, now, "limited", of_day=True)
        return refused, replace(state, used_at=now)
    state = replace(state, day=day, day_used=day_used + requests, used_at=now)
    return decision(state, limits, now, "admitted"), state


def describe(
    state: State, limits: Limits, now: Milliseconds, unbanned_at: Milliseconds
) -> Decision:
    if unbanned_at > state.unbanned_at:
        state = _unbanned(state, unbanned_at)
    state = _clock_jump_corrected(state, now)
    return decision(state, limits, now, "banned" if now < state.banned_until else "admitted")


def decision(
    state: State, limits: Limits, now: Milliseconds, verdict: Verdict, *, of_day: bool = False
) -> Decision:
    banned_until = state.banned_until if verdict == "banned" else NEVER
    return Decision(verdict, limits, *_windows(state, now), banned_until, now, of_day)


def touched(state: State, now: Milliseconds) -> State:
    """Return ``state`` with the time of its last use, accurate to a minute."""
    return replace(state, used_at=now) if now - state.used_at >= MINUTE else state


def _clock_jump_corrected(state: State, now: Milliseconds) -> State:
    """Return ``state`` with windows that start no later than a slightly wrong clock allows.

    Without this, a clock that ran far ahead for a moment would make clients wait as long. The
    requests used stay used.
    """
    if state.minute_started <= now + MINUTE and (state.day - 1) * DAY <= now:
        return state
    return replace(
        state, minute_started=min(state.minute_started, now), day=min(state.day, now // DAY)
    )


def _windows(state: State, now: Milliseconds) -> tuple[Milliseconds, int, int, int]:
    """Return start and use of the minute, and number and use of the day, at ``now``.

    If the clock steps back, the windows stay as they were: it never grants fresh quota.
    """
    started, used = state.minute_started, state.minute_used
    if now >= started + MINUTE:
        started, used = now, 0
    if now >= (state.day + 1) * DAY:
        return started, used, now // DAY, 0
    return started, used, state.day, state.day_used


def _refused(state: State, limits: Limits, rules: BanRules, now: Milliseconds) -> State:
    """Count a 429. The first of a run, and those within ``rules.grace`` of it, are free."""
    new_run = now - state.refused_at >= rules.window
    since = now if new_run else state.refused_since
    strikes, struck_since = state.strikes, state.struck_since
    if now - since > rules.grace:
        if now - struck_since >= rules.window:
            strikes, struck_since = 0, now
        strikes += 1
    state = replace(
        state,
        refused_since=since,
        refused_at=now,
        strikes=strikes,
        struck_since=struck_since,
        used_at=now,
    )
    if strikes < rules.threshold(limits.per_minute):
        return state
    clean = now - state.banned_until
    level = max(0, state.ban_level - clean // rules.decay)
    return replace(
        state,
        strikes=0,
        struck_since=NEVER,
        banned_at=now,
        banned_until=now + min(rules.duration << level, rules.max_duration),
        ban_level=min(level + 1, rules.last_level),
    )


def _unbanned(state: State, unbanned_at: Milliseconds) -> State:
    """Return ``state`` without ban, strikes and earlier bans.

    An unban is not compared with the time of the ban: their clocks may differ.
    """
    return State(
        minute_started=state.minute_started,
        minute_used=state.minute_used,
        day=state.day,
        day_used=state.day_used,
        used_at=state.used_at,
        unbanned_at=unbanned_at,
    )
