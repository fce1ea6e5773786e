"""The types that every limiter shares."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

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
        """Return how many strikes within the window ban a key of this minute limit."""
        if per_minute == UNLIMITED:
            return self.min_strikes
        return max(self.min_strikes, per_minute // self.strikes_divisor)

    @property
    def last_level(self) -> int:
        return max(0, -(-self.max_duration // self.duration) - 1).bit_length()


NO_BANS = BanRules(min_strikes=UNLIMITED)


class Budget(NamedTuple):
    """How many each holder has in a minute: its ``name`` for the log, its ``words`` for the caller.

    ``capacity`` is how many windows a process remembers.
    """

    name: str
    words: str
    per_minute: int = UNLIMITED
    capacity: int = 20_000


class State(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a limiter remembers of a key or an address.

    Its field names are those of the hash in Redis and the columns in SQL. It holds no limit, so a
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
    ``now`` is the time of the limiter's clock, perhaps that of another machine. Count from it
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

    async def take(self, key: Caller) -> Decision:
        """Judge a request with ``key`` and charge it if it is admitted."""

    async def look(self, key: Caller) -> Decision:
        """Describe the windows of ``key`` without charging anything."""

    async def charge(self, key: Caller, requests: int, taken: Decision | None = None) -> Decision:
        """Charge ``requests`` to the day of ``key``, all of them or none; a refusal is no strike.

        If the day has no room, the request that was ``taken`` with them costs it nothing either.
        ``verdict`` says whether they were charged.
        """

    async def take_of(self, budget: Budget, holder: str) -> Decision:
        """Judge what ``holder`` does within a ``budget``, and charge it if it is admitted."""

    async def look_at(self, budget: Budget, holder: str) -> Decision:
        """Describe the window of ``holder`` without charging anything."""

    async def heartbeat(self) -> None:
        """Announce this process to the others. Call it each second."""

    async def save(self) -> None:
        """Make the counts so far survive a restart."""

    async def close(self) -> None:
        """Release the limiter's connections."""


class RateLimitStore(Protocol):
    """Where states survive a restart. Both methods raise ``Unavailable``."""

    async def load(self, key_id: int) -> State | None:
        """Return the saved state of a key."""

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save the states of many keys, but none that is older than the saved one."""
