"""The limiter as one pure function, with its types. Every limiter agrees with it."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds, seconds_up
from petstore.domain.plans import UNLIMITED, Limits
from petstore.keys.model import Caller

Verdict: TypeAlias = Literal["admitted", "limited", "banned"]

NEVER: Milliseconds = -(2**62)


class BanRules(Struct, frozen=True):
    """When a key that ignores 429 is banned, and for how long."""

    min_strikes: int = 20
    strikes_divisor: int = 3
    grace: Milliseconds = SECOND
    window: Milliseconds = MINUTE
    duration: Milliseconds = 5 * MINUTE
    max_duration: Milliseconds = DAY
    decay: Milliseconds = DAY

    def threshold(self, per_minute: int) -> int:
        if per_minute == UNLIMITED:
            return self.min_strikes
        return max(self.min_strikes, per_minute // self.strikes_divisor)

    @property
    def last_level(self) -> int:
        return max(0, -(-self.max_duration // self.duration) - 1).bit_length()


NO_BANS = BanRules(min_strikes=UNLIMITED)


class Budget(NamedTuple):
    """``name`` is for the log, ``words`` are for the caller, ``capacity`` is for each process."""

    name: str
    words: str
    per_minute: int = UNLIMITED
    capacity: int = 20_000


class State(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a limiter remembers of a key or an address.

    Its field names are also those in Redis and the columns in SQL. It holds no limit, so a
    new plan applies at once. ``refused_since`` and ``refused_at`` are the first and latest 429 of
    the current run. ``strikes`` counts those within ``BanRules.window`` of ``struck_since``.
    ``unbanned_at`` is the latest unban that was applied.
    """

    minute_started: Milliseconds = NEVER
    minute_used: int = 0
    day: int = 0
    day_used: int = 0
    refused_since: Milliseconds = NEVER
    refused_at: Milliseconds = NEVER
    strikes: int = 0
    struck_since: Milliseconds = NEVER
    banned_at: Milliseconds = NEVER
    banned_until: Milliseconds = NEVER
    ban_level: int = 0
    used_at: Milliseconds = NEVER
    unbanned_at: Milliseconds = NEVER


class LimitWindow(NamedTuple):
    """One window as the client sees it; ``reset`` in whole seconds since the epoch."""

    limit: int
    remaining: int
    reset: int


class Decision(Struct, frozen=True, gc=False):
    """The verdict on a request made at ``now``, and what was used of its ``limits`` after it.

    ``of_day``: it was refused because the day has less left than it costs, perhaps more than none.
    ``now`` is the time of the limiter's clock, perhaps another machine's. Count from it
    whatever you tell of the windows. Every request makes a decision, so it stores plain counts,
    and the properties compute the rest on demand.
    """

    verdict: Verdict
    limits: Limits
    minute_started: Milliseconds
    minute_used: int
    day_number: int
    day_used: int
    banned_until: Milliseconds
    now: Milliseconds
    of_day: bool = False

    @property
    def minute(self) -> LimitWindow:
        left, _, _ = self.left()
        return LimitWindow(self.limits.per_minute, left, seconds_up(self.minute_started + MINUTE))

    @property
    def day(self) -> LimitWindow:
        _, left, _ = self.left()
        return LimitWindow(self.limits.per_day, left, seconds_up((self.day_number + 1) * DAY))

    @property
    def described(self) -> LimitWindow:
        """The window in ``X-RateLimit-*``. During a ban it resets at the end of the ban."""
        _, _, of_day = self.left()
        window = self.day if of_day else self.minute
        if self.verdict == "banned":
            return LimitWindow(window.limit, 0, seconds_up(self.banned_until))
        return window

    @property
    def seconds_left(self) -> int:
        """How many seconds the described window or the ban still takes, by the exact clock."""
        if self.verdict == "banned":
            return seconds_up(self.banned_until - self.now)
        _, _, of_day = self.left()
        ends = (self.day_number + 1) * DAY if of_day else self.minute_started + MINUTE
        return seconds_up(ends - self.now)

    def left(self) -> tuple[int, int, bool]:
        """Return the requests left in the minute and in the day, and if ``described`` is the day.

        The described window is the one with fewer left; on a tie, the one that resets later, to
        the second. On a 429 that is the exhausted window that resets later.
        """
        minute, day = self.limits
        if minute != UNLIMITED:
            minute = minute - self.minute_used if minute > self.minute_used else 0
        if day != UNLIMITED:
            day = day - self.day_used if day > self.day_used else 0
        if self.of_day:
            return minute, day, True
        if day != minute:
            return minute, day, day < minute
        minute_ends, day_ends = self.minute_started + MINUTE, (self.day_number + 1) * DAY
        return minute, day, minute_ends <= day_ends - SECOND


class RateLimiter(Protocol):
    """Counts requests and bans exactly, however many arrive at once."""

    async def take(self, key: Caller) -> Decision: ...

    async def look(self, key: Caller) -> Decision:
        """Describe the windows of ``key`` without charging anything."""

    async def charge(self, key: Caller, requests: int, taken: Decision | None = None) -> Decision:
        """Charge ``requests`` to the day of ``key``, all of them or none; a refusal is no strike.

        If the day has no room, the request that was ``taken`` with them costs it nothing either.
        ``verdict`` says whether they were charged.
        """

    async def take_of(self, budget: Budget, subject: str) -> Decision: ...

    async def look_at(self, budget: Budget, subject: str) -> Decision:
        """Describe the window of ``subject`` without charging anything."""

    async def heartbeat(self) -> None:
        """Announce this process to the others. Call it each second."""

    async def save(self) -> None:
        """Make the counts so far survive a restart."""

    async def close(self) -> None: ...


class RateLimitStore(Protocol):
    """Where states survive a restart."""

    async def load(self, key_id: int) -> State | None: ...

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save the states of many keys, but none that is older than the saved one."""


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
    """Without this, a clock that ran far ahead for a moment would make clients wait as long."""
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
    level = min(max(0, state.ban_level - clean // rules.decay), rules.last_level)
    return replace(
        state,
        strikes=0,
        struck_since=NEVER,
        banned_at=now,
        banned_until=now + min(rules.duration << level, rules.max_duration),
        ban_level=min(level + 1, rules.last_level),
    )


def _unbanned(state: State, unbanned_at: Milliseconds) -> State:
    """An unban is not compared with the time of the ban: their clocks may differ."""
    return State(
        minute_started=state.minute_started,
        minute_used=state.minute_used,
        day=state.day,
        day_used=state.day_used,
        used_at=state.used_at,
        unbanned_at=unbanned_at,
    )
