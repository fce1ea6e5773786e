"""The headers that tell a caller its limits (interface.md, section "Rate limit headers")."""

from functools import lru_cache

from petstore.clock import DAY, MINUTE, SECOND, seconds_up
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.rate_limits.contract import Decision

_DAY = DAY // SECOND


def rate_limit_headers(decision: Decision) -> bytes:
    """Return the three ``X-RateLimit`` headers, and beside them the windows as the IETF drafts.

    ``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers. They list
    the windows that have a limit, and are left out if none has.
    """
    limits = decision.limits
    minute_end = seconds_up(decision.minute_started + MINUTE)
    day_end = (decision.day_number + 1) * _DAY
    minute_left, day_left, of_day = decision.left()
    if decision.verdict == "banned":
        limit, left, reset = decision.described
    elif of_day:
        limit, left, reset = limits.per_day, day_left, day_end
    else:
        limit, left, reset = limits.per_minute, minute_left, minute_end
    lines = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d" % (
        limit,
        left,
        reset,
    )
    policy = _policy(limits)
    if not policy:
        return lines
    second = seconds_up(decision.now)
    windows = []
    if limits.per_minute != UNLIMITED:
        windows.append(b'"minute";r=%d;t=%d' % (minute_left, minute_end - second))
    if limits.per_day != UNLIMITED:
        windows.append(b'"day";r=%d;t=%d' % (day_left, day_end - second))
    return b"%b\r\n%b\r\nratelimit: %b" % (lines, policy, b", ".join(windows))


def refusal(decision: Decision, holder: str) -> PetstoreError:
    """Return the 429 of a request that was not admitted; ``holder`` is whose limit it was."""
    seconds = seconds_up(decision.described.reset * SECOND - decision.now)
    headers = {"Retry-After": str(seconds)}
    if decision.verdict == "banned":
        msg = f"this key is banned for asking on after 429: wait {seconds} seconds"
        return KeyBanned(msg, headers)
    length = "minute" if decision.described == decision.minute else "day"
    limit = f"{decision.described.limit} requests a {length}"
    msg = f"the limit of {holder}, {limit}, is reached: wait {seconds} seconds"
    return RateLimitExceeded(msg, headers)


@lru_cache(maxsize=1024)
def _policy(limits: Limits) -> bytes:
    """Return the ``RateLimit-Policy`` of ``limits``, or nothing if there are none."""
    windows = []
    if limits.per_minute != UNLIMITED:
        windows.append(b'"minute";q=%d;w=60' % limits.per_minute)
    if limits.per_day != UNLIMITED:
        windows.append(b'"day";q=%d;w=86400' % limits.per_day)
    return b"ratelimit-policy: %b" % b", ".join(windows) if windows else b""
