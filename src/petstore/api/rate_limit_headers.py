"""The headers that tell a caller its limits (interface.md, section "Rate limit headers")."""

from functools import lru_cache

from petstore.api.messages import Headers
from petstore.clock import SECOND, Milliseconds, seconds_up
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.rate_limits.contract import Decision


def rate_limit_headers(decision: Decision, now: Milliseconds) -> Headers:
    """Return the three ``X-RateLimit`` headers, and beside them both windows as the IETF drafts.

    ``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers.
    """
    described = decision.described
    minute, day = decision.minute, decision.day
    seconds = seconds_up(now)
    return [
        *_limits(described.limit, minute.limit, day.limit),
        (b"x-ratelimit-remaining", b"%d" % described.remaining),
        (b"x-ratelimit-reset", b"%d" % described.reset),
        (
            b"ratelimit",
            b'"minute";r=%d;t=%d, "day";r=%d;t=%d'
            % (
                minute.remaining,
                max(0, minute.reset - seconds),
                day.remaining,
                max(0, day.reset - seconds),
            ),
        ),
    ]


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


@lru_cache
def _limits(described: int, per_minute: int, per_day: int) -> Headers:
    policy = b'"minute";q=%d;w=60, "day";q=%d;w=86400' % (per_minute, per_day)
    return [(b"x-ratelimit-limit", b"%d" % described), (b"ratelimit-policy", policy)]
