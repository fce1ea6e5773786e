"""What agents are told when a call fails: what is wrong, and what to do about it."""

from math import ceil

from petstore.clock import SECOND, Milliseconds, rfc3339
from petstore_client import OutcomeUnknown, PetstoreError
from petstore_client.errors import NoResponse, RateLimited, ServerError, UnexpectedResponse

_REMEDIES: dict[str | int | None, str] = {
    "cursor_expired": "Call again without cursor.",
    "idempotency_key_in_use": "The first call is still under way. Call again in a few seconds.",
    "idempotency_key_reused": "Leave idempotencyKey out: it belongs to another call.",
    400: "Correct the arguments and call again.",
    401: "Ask the user for a valid API key. Calling again does not help.",
    403: "Your key may not do this. Tell the user, and do not try another way.",
    404: "Check the id with a list.",
    409: "Read it again before you decide. The same call is refused again.",
    412: "Somebody has changed it. Read it again, and decide anew.",
}
_MAX_PROBLEM = 1000  # characters; another service than a store may say anything


def explain(error: PetstoreError, now: Milliseconds) -> str:
    """Return an error of the client library in words for an agent, a line for each thing."""
    kind = "failed" if error.status is None else f"{error.status} {error.code or ''}".strip()
    lines = [f"{kind}: {error.message}"[:_MAX_PROBLEM], f"What to do: {_remedy(error, now)}"]
    links = {"Request": error.request_id, "Documentation": error.documentation}
    lines += [f"{name}: {value}" for name, value in links.items() if value is not None]
    return "\n".join(lines)


def _remedy(error: PetstoreError, now: Milliseconds) -> str:
    if isinstance(error, RateLimited):
        seconds = ceil(error.retry_after or 60)
        until = rfc3339(now + seconds * SECOND)
        return f"Call no tool for {seconds} seconds, until {until}, or the key may be banned."
    if isinstance(error, UnexpectedResponse):
        return "Tell the user to check the address of the store (--url)."
    if isinstance(error, OutcomeUnknown | NoResponse | ServerError):
        if error.idempotency_key is not None:
            key = error.idempotency_key
            return f"Call again with the same arguments and idempotencyKey {key!r}: it acts once."
        if isinstance(error, OutcomeUnknown):
            return "It may have been done, or not. Read the resource before you call again."
        return "Call again in a minute. If it fails again, tell the user."
    return _REMEDIES.get(error.code) or _REMEDIES.get(error.status) or "Tell the user."
