"""The headers that tell a caller its limits (interface.md, section "Rate limit headers")."""

from functools import lru_cache

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds, seconds_up
from petstore.domain.plans import Limits
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.rate_limits.contract import Decision

_DAY = DAY // SECOND


def rate_limit_headers(decision: Decision, now: Milliseconds) -> bytes:
    """Return the three ``X-RateLimit`` headers, and beside them both windows as the IETF drafts.

    ``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers.
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
    second = seconds_up(now)
    # A window may have ended while the request was served.
    minute_rest = minute_end - second if second < minute_end else 0
    day_rest = day_end - second if second < day_end else 0
    return (
        b"x-ratelimit-limit: %d\r\nx-ratelimit-reset: %d\r\n%b\r\n"
        b'x-ratelimit-remaining: %d\r\nratelimit: "minute";r=%d;t=%d, "day";r=%d;t=%d'
        % (limit, reset, _policy(limits), left, minute_left, minute_rest, day_left, day_rest)
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


@lru_cache(maxsize=1024)
def _policy(limits: Limits) -> bytes:
    return b'ratelimit-policy: "minute";q=%d;w=60, "day";q=%d;w=86400' % limits
