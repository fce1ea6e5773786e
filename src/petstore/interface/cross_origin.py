"""Cross-origin requests from browsers, for the origins the operator allows (Fetch standard)."""

from collections.abc import Collection

from petstore.http.messages import Headers, Request, Response
from petstore.interface.bodies import ACCEPT_PATCH

_REQUESTED = b"access-control-request-headers"
_ALLOWED = b"access-control-allow-headers: "
_MAX_AGE = b"access-control-max-age: 600"
_EXPOSED = (
    b"access-control-expose-headers: ETag, Idempotent-Replayed, Link, Location, Retry-After,"
    b" X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy,"
    b" X-Request-Id, X-Total-Count, Deprecation, Sunset, WWW-Authenticate"
)
_VARY = b"vary: Origin"
_ACCEPT_PATCH = f"accept-patch: {ACCEPT_PATCH}".encode("ascii")


def is_preflight(request: Request, allowed: Collection[str]) -> bool:
    """Return whether this is the preflight request of a browser for an allowed origin."""
    return (
        request.method == "OPTIONS"
        and b"access-control-request-method" in request.fields
        and _allowed_origin(request, allowed) is not None
    )


def preflight_response(request: Request, methods: list[str]) -> Response:
    """Allow every header that the page wants to send: its tracing or error tracking adds some."""
    wanted = request.fields.get(_REQUESTED)
    headers = [] if wanted is None else [_ALLOWED + wanted]
    allow = f"access-control-allow-methods: {', '.join(methods)}".encode("ascii")
    patches = [_ACCEPT_PATCH] if "PATCH" in methods else []
    return Response(204, b"", [allow, *patches, *headers, _MAX_AGE])


def cross_origin_headers(request: Request, allowed: Collection[str]) -> Headers:
    """Return the headers that let a page of an allowed origin read the response.

    ``Vary`` keeps caches right. Call it only if the service allows an origin.
    """
    origin = _allowed_origin(request, allowed)
    if origin is None:
        return [_VARY]
    return [b"access-control-allow-origin: " + origin, _EXPOSED, _VARY]


def _allowed_origin(request: Request, allowed: Collection[str]) -> bytes | None:
    origin = request.fields.get(b"origin")
    if origin is not None and ("*" in allowed or origin.decode("latin-1") in allowed):
        return origin
    return None
