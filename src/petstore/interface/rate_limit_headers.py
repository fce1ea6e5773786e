"""The headers of limits, and the 429 beyond one (docs/limits.md)."""

from functools import lru_cache

from petstore.clock import DAY, MINUTE, SECOND, seconds_up
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import KeyBanned, PetstoreError, RateLimitExceeded
from petstore.limits.contract import Budget, Decision

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
    limits, now = decision.limits, decision.now
    per_minute, per_day = limits
    minute_left, day_left, is_day = decision.left()
    # Whole seconds, rounded up: clock.seconds_up without its calls.
    minute_end = -(-(decision.minute_started + MINUTE) // SECOND)
    day_end = (decision.day_number + 1) * _DAY
    if decision.verdict == "banned":
        limit, left, reset = decision.described
    elif is_day:
        limit, left, reset = per_day, day_left, day_end
    else:
        limit, left, reset = per_minute, minute_left, minute_end
    if per_day == per_minute == UNLIMITED:
        return _SHOWN % (limit, left, reset)
    second, policy = -(-now // SECOND), _policy(limits)
    minute_ends_in, day_ends_in = minute_end - second, day_end - second
    if per_day == UNLIMITED:
        return _WITH_MINUTE % (limit, left, reset, policy, minute_left, minute_ends_in)
    if per_minute == UNLIMITED:
        return _WITH_DAY % (limit, left, reset, policy, day_left, day_ends_in)
    both = minute_left, minute_ends_in, day_left, day_ends_in
    return _WITH_BOTH % (limit, left, reset, policy, *both)


def limit_reached(decision: Decision, budget: Budget, requests: int = 1) -> PetstoreError:
    """Return the 429 of a request that was not admitted within a ``budget``.

    It costs as much as so many ``requests``.
    """
    seconds = seconds_up(decision.described.reset * SECOND - decision.now)
    headers = {"Retry-After": str(seconds)}
    if decision.verdict == "banned":
        msg = (
            f"this key is banned because it kept sending requests after 429: wait {seconds} seconds"
        )
        return KeyBanned(msg, headers)
    length = "minute" if decision.described == decision.minute else "day"
    limit = f"{decision.described.limit} requests a {length}"
    if requests > 1:
        left = decision.described.remaining
        msg = (
            f"this request costs as much as {requests}, and {left} of {limit} are left: send fewer"
            f" items, or wait {seconds} seconds"
        )
    else:
        msg = f"the limit of {budget.words}, {limit}, is reached: wait {seconds} seconds"
    return RateLimitExceeded(msg, headers, f"{budget.name}_{length}")


def require_admitted(decision: Decision, budget: Budget, requests: int = 1) -> None:
    """Refuse a request that was not admitted, with ``limit_reached``."""
    if decision.verdict != "admitted":
        raise limit_reached(decision, budget, requests)


@lru_cache(maxsize=1024)
def _policy(limits: Limits) -> bytes:
    """Return the line of ``RateLimit-Policy``, for at least one limit."""
    windows = []
    if limits.per_minute != UNLIMITED:
        windows.append(b'"minute";q=%d;w=60' % limits.per_minute)
    if limits.per_day != UNLIMITED:
        windows.append(b'"day";q=%d;w=86400' % limits.per_day)
    return b"\r\nratelimit-policy: %b" % b", ".join(windows)
