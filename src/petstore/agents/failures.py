"""What agents are told when a call fails: what is wrong, and what to do about it."""

from math import ceil

from petstore.clock import SECOND, Milliseconds, rfc3339
from petstore_client import OutcomeUnknown, PetstoreError
from petstore_client.errors import (
    BadRequest,
    Conflict,
    CursorExpired,
    Forbidden,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    NoResponse,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerError,
    Unauthorized,
    UnexpectedResponse,
)

_REMEDIES: tuple[tuple[type[PetstoreError], str], ...] = (
    (Unauthorized, "Ask the user for a valid API key. Calling again does not help."),
    (Forbidden, "Your key may not do this. Tell the user, and do not try another way."),
    (CursorExpired, "Call again without cursor."),
    (NotFound, "Check the id with a list."),
    (
        PreconditionFailed,
        "Somebody has changed it. Read it again, and decide anew.",
    ),
    (IdempotencyKeyInUse, "The first call is still under way. Call again in a few seconds."),
    (IdempotencyKeyReused, "Leave idempotencyKey out: it belongs to another call."),
    (Conflict, "Read it again before you decide. The same call is refused again."),
    (BadRequest, "Correct the arguments and call again."),
    (UnexpectedResponse, "Tell the user to check the address of the store (--url)."),
)
_MAX_PROBLEM = 1000  # characters; another service than a store may say anything
_LATER = "Call again in a minute. If it fails again, tell the user."
_ACTS_ONCE = "Call again with the same arguments and idempotencyKey {key!r}: it acts once."
_UNKNOWN = "It may have been done, or not. Read the resource before you call again."


def explain(error: PetstoreError, now: Milliseconds) -> str:
    """Return an error of the client library in words for an agent, a line for each thing."""
    kind = "failed" if error.status is None else f"{error.status} {error.code or ''}".strip()
    lines = [f"{kind}: {error.message}"[:_MAX_PROBLEM], f"What to do: {_remedy(error, now)}"]
    if error.request_id is not None:
        lines.append(f"Request: {error.request_id}")
    if error.documentation is not None:
        anchor = error.documentation.partition("#")[2]
        lines.append(f"Documentation: petstore://docs/errors, {anchor}; {error.documentation}")
    return "\n".join(lines)


def _remedy(error: PetstoreError, now: Milliseconds) -> str:
    if isinstance(error, RateLimited):
        return _wait(error.retry_after, now)
    for kind, remedy in _REMEDIES:
        if isinstance(error, kind):
            return remedy
    if isinstance(error, OutcomeUnknown | NoResponse | ServerError):
        if error.idempotency_key is not None:
            return _ACTS_ONCE.format(key=error.idempotency_key)
        return _UNKNOWN if isinstance(error, OutcomeUnknown) else _LATER
    return "Tell the user."


def _wait(seconds: float | None, now: Milliseconds) -> str:
    if seconds is None:
        return "Wait a minute before you call any tool again."
    until = rfc3339(now + ceil(seconds) * SECOND)
    return (
        f"Call no tool for {ceil(seconds)} seconds, until {until}. Calls before that may have the"
        " key banned."
    )
