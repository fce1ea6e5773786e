"""The headers that tell a caller its limits (interface.md, section "Rate limit headers")."""

from functools import lru_cache
from typing import NamedTuple

from petstore.clock import DAY, MINUTE, SECOND, seconds_up
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.rate_limits.contract import Decision

_DAY = DAY // SECOND
_SHOWN = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d"
_WITH_MINUTE = _SHOWN + b'%b\r\nratelimit: "minute";r=%d;t=%d'
_WITH_DAY = _SHOWN + b'%b\r\nratelimit: "day";r=%d;t=%d'
_WITH_BOTH = _WITH_MINUTE + b', "day";r=%d;t=%d'


def rate_limit_headers(decision: Decision) -> bytes:
    """Return the three ``X-RateLimit`` headers, and beside them the windows as the IETF drafts.

    ``RateLimit-Policy`` and ``RateLimit`` follow draft-ietf-httpapi-ratelimit-headers. They list
    the windows that have a limit, and are left out if none has.
    """
    limits = decision.limits
    per_minute, per_day = limits
    minute_end = seconds_up(decision.minute_started + MINUTE)
    day_end = (decision.day_number + 1) * _DAY
    minute_left, day_left, of_day = decision.left()
    if decision.verdict == "banned":
        limit, left, reset = decision.described
    elif of_day:
        limit, left, reset = per_day, day_left, day_end
    else:
        limit, left, reset = per_minute, minute_left, minute_end
    if per_minute == per_day == UNLIMITED:
        return _SHOWN % (limit, left, reset)
    second = seconds_up(decision.now)
    minute_rest, day_rest = minute_end - second, day_end - second
    policy = _policy(limits)
    if per_minute == UNLIMITED:
        return _WITH_DAY % (limit, left, reset, policy, day_left, day_rest)
    if per_day == UNLIMITED:
        return _WITH_MINUTE % (limit, left, reset, policy, minute_left, minute_rest)
    return _WITH_BOTH % (limit, left, reset, policy, minute_left, minute_rest, day_left, day_rest)


class Holder(NamedTuple):
    """Whose limit it is: a name for the log, and words for the caller."""

    name: str
    words: str


KEY = Holder("key", "this key")
ADDRESS = Holder("address", "this address without a valid key")


def refusal(decision: Decision, holder: Holder) -> PetstoreError:
    """Return the 429 of a request that was not admitted; ``holder`` is whose limit it was."""
    seconds = seconds_up(decision.described.reset * SECOND - decision.now)
    headers = {"Retry-After": str(seconds)}
    if decision.verdict == "banned":
        msg = f"this key is banned for asking on after 429: wait {seconds} seconds"
        return KeyBanned(msg, headers)
    length = "minute" if decision.described == decision.minute else "day"
    limit = f"{decision.described.limit} requests a {length}"
    msg = f"the limit of {holder.words}, {limit}, is reached: wait {seconds} seconds"
    return RateLimitExceeded(msg, headers, f"{holder.name}_{length}")


@lru_cache(maxsize=1024)
def _policy(limits: Limits) -> bytes:
    """Return the line of ``RateLimit-Policy``, for limits of which there is at least one."""
    windows = []
    if limits.per_minute != UNLIMITED:
        windows.append(b'"minute";q=%d;w=60' % limits.per_minute)
    if limits.per_day != UNLIMITED:
        windows.append(b'"day";q=%d;w=86400' % limits.per_day)
    return b"\r\nratelimit-policy: %b" % b", ".join(windows)
