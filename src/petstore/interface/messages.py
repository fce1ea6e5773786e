"""What responses have in common: JSON, the Error body, entity tags, codings and limits."""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from petstore.clock import DAY, MINUTE, SECOND
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import (
    HeaderFieldsTooLarge,
    InvalidRequest,
    KeyBanned,
    Overloaded,
    PetstoreError,
    PreconditionFailed,
    RateLimitExceeded,
    Unimplemented,
    UriTooLong,
)
from petstore.http.messages import Headers, Refusal, Request, Response
from petstore.limits.decide import Budget, Decision

JSON = b"content-type: application/json"
NO_STORE = b"cache-control: no-store"

_REFUSALS = {
    error.status: error
    for error in (InvalidRequest, UriTooLong, HeaderFieldsTooLarge, Unimplemented, Overloaded)
}

encode_json = msgspec.json.Encoder().encode


def json_response(status: int, content: object, headers: Headers | None = None) -> Response:
    return Response(status, encode_json(content), [JSON, *(headers or ())])


def error_response(error: PetstoreError, root: str) -> Response:
    """A link with the relation ``help`` leads to the explanation of the code (RFC 8288)."""
    body = {"code": error.code, "message": error.message, "status": error.status}
    explanation = f'link: <{root}/docs/errors#{error.code}>; rel="help"'.encode("ascii")
    headers = [
        f"{name.lower()}: {value}".encode("latin-1") for name, value in error.headers.items()
    ]
    return Response(
        error.status,
        encode_json(body),
        [JSON, explanation, *headers],
        code=error.code,
        limit=error.limit,
    )


def refusal_response(refusal: Refusal, root: str) -> Response:
    return error_response(_REFUSALS[refusal.status](refusal.message), root)


# What a proxy that compresses makes of a tag is still that tag: weak (nginx), or with the name of
# the coding at its end (Apache and others). The resource that it names is the same.
_TAG = re.compile(rb'(?:W/)?"([^"]*?)(?:(?:--?|;)(?:br|deflate|gzip|zstd))?"')
_TAGS = re.compile(rb'[ \t,]*(?:(?:W/)?"[^"]*"[ \t]*(?:,[ \t,]*|\Z))+\Z')


def entity_tag(representation: bytes) -> bytes:
    return f'"{blake2b(representation, digest_size=12).hexdigest()}"'.encode("ascii")


class Conditions(NamedTuple):
    if_match: bytes | None = None
    if_none_match: bytes | None = None

    def check(self, resource: object) -> None:
        """Check the version that a unit of work begins with (RFC 9110 section 13.2.2)."""
        if self is NO_CONDITIONS:
            return
        tag = entity_tag(encode_json(resource))
        self.require_match(tag)
        if self.is_excluded(tag):
            msg = "If-None-Match: expected an ETag that differs from the current one"
            raise PreconditionFailed(msg)

    def require_match(self, tag: bytes) -> None:
        if self.if_match is not None and not _matches(self.if_match, tag):
            msg = "If-Match: expected the current ETag of the resource, in quotes, or *"
            raise PreconditionFailed(msg)

    def is_excluded(self, tag: bytes) -> bool:
        return self.if_none_match is not None and _matches(self.if_none_match, tag)


NO_CONDITIONS = Conditions()


def conditions_of(request: Request) -> Conditions:
    fields = request.fields
    if b"if-match" not in fields and b"if-none-match" not in fields:
        return NO_CONDITIONS
    return Conditions(fields.get(b"if-match"), fields.get(b"if-none-match"))


def conditional(conditions: Conditions, response: Response) -> Response:
    if conditions is NO_CONDITIONS or not response.tag:
        return response
    conditions.require_match(response.tag)
    if conditions.is_excluded(response.tag):
        return Response(304, b"", [b"etag: " + response.tag])
    return response


def _matches(field: bytes, tag: bytes) -> bool:
    if field.strip() == b"*":
        return True
    # Most fields need not be parsed.
    bare = tag.strip(b'"')
    return bare in field and _TAGS.match(field) is not None and bare in _TAG.findall(field)


def takes_gzip(request: Request) -> bool:
    """Return whether ``Accept-Encoding`` has gzip, with any weight but 0."""
    field = request.fields.get(b"accept-encoding", b"").lower().replace(b" ", b"")
    weights = dict(coding.partition(b";q=")[::2] for coding in field.split(b","))
    weight = weights.get(b"gzip", weights.get(b"*", b"0"))
    return not weight or weight.strip(b"0.") != b""


_DAY = DAY // SECOND
_SHOWN = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d"
_WITH_MINUTE = _SHOWN + b'%b\r\nratelimit: "minute";r=%d;t=%d'
_WITH_DAY = _SHOWN + b'%b\r\nratelimit: "day";r=%d;t=%d'
_WITH_BOTH = _WITH_MINUTE + b', "day";r=%d;t=%d'


def rate_limit_headers(decision: Decision) -> bytes:
    """See draft-ietf-httpapi-ratelimit-headers: its fields list the windows that have a limit."""
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
    """Return the 429 of a request that costs as much as so many ``requests``."""
    seconds = decision.seconds_left
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
