"""The headers that tell a caller its limits (interface.md, section "Rate limit headers")."""

from functools import lru_cache
from typing import TypeAlias

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds, seconds_up
from petstore.domain.plans import Limits
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.rate_limits.contract import Decision

_Window: TypeAlias = tuple[int, bytes]
"""When a window resets, in seconds; and what tells that and its limit."""


def rate_limit_headers(decision: Decision, now: Milliseconds) -> bytes:
    """Return the three ``X-RateLimit`` headers, and beside them both windows as the IETF drafts.

    ``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers.
    """
    policy, minute, day = _lasting(decision.limits, decision.minute_started, decision.day_number)
    minute_left, day_left, of_day = decision.left()
    described, left = (day[1], day_left) if of_day else (minute[1], minute_left)
    if decision.verdict == "banned":
        window = decision.described
        described, left = _described(window.limit, window.reset), window.remaining
    second, minute_end, day_end = seconds_up(now), minute[0], day[0]
    # A window may have ended while the request was served.
    minute_rest = minute_end - second if second < minute_end else 0
    day_rest = day_end - second if second < day_end else 0
    return (
        b"%b\r\n%b\r\nx-ratelimit-remaining: %d\r\n"
        b'ratelimit: "minute";r=%d;t=%d, "day";r=%d;t=%d'
        % (described, policy, left, minute_left, minute_rest, day_left, day_rest)
    )


def refusal(decision: Decision, now: Milliseconds, holder: str) -> PetstoreError:
    """Return the 429 of a request that was not admitted; ``holder`` is whose limit it was."""
    reset = decision.described.reset
    seconds = max(1, seconds_up(reset * SECOND - now))
    headers = {"Retry-After": str(seconds)}
    if decision.verdict == "banned":
        msg = f"this key is banned for asking on after 429: wait {seconds} seconds"
        return KeyBanned(msg, headers)
    length = "minute" if decision.described == decision.minute else "day"
    limit = f"{decision.described.limit} requests a {length}"
    msg = f"the limit of {holder}, {limit}, is reached: wait {seconds} seconds"
    return RateLimitExceeded(msg, headers)


@lru_cache(maxsize=4096)
def _lasting(
    limits: Limits, minute_started: Milliseconds, day_number: int
) -> tuple[bytes, _Window, _Window]:
    """Return what many answers have in common: the policy, and what tells of either window."""
    return (
        b'ratelimit-policy: "minute";q=%d;w=60, "day";q=%d;w=86400' % limits,
        _window(limits.per_minute, minute_started + MINUTE),
        _window(limits.per_day, (day_number + 1) * DAY),
    )


def _window(limit: int, end: Milliseconds) -> _Window:
    seconds = seconds_up(end)
    return seconds, _described(limit, seconds)


def _described(limit: int, reset: int) -> bytes:
    return b"x-ratelimit-limit: %d\r\nx-ratelimit-reset: %d" % (limit, reset)
