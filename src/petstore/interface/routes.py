"""Routes of paths, the URL of this service as clients reach it, and other origins (CORS)."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from petstore.domain.fields import INT64_MAX
from petstore.errors import InvalidRequest, MethodNotAllowed, NotFound
from petstore.http.messages import Headers, Request, Response
from petstore.interface.bodies import ACCEPT_PATCH

_LONGEST_ID = len(str(INT64_MAX))
# RFC 3986 sections 3.2.2 and 3.2.3, without the comma: it would join two hosts.
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})++|\[[0-9A-Fa-f:.]{2,45}\])"
    rb"(?::[0-9]{0,5})?\Z"
)
_LONGEST_HOST = 261


class _Routed(Protocol):
    """An operation of the interface, or a page of the console: its path is a template."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


R = TypeVar("R", bound=_Routed)


class Route(Generic[R]):
    """A path template and its operations by method; HEAD stands beside GET (RFC 9110 9.3.2)."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.operations: dict[str, R] = {}

    def refusal(self, method: str, path: str) -> NotFound | MethodNotAllowed:
        if not self.operations:
            msg = f"there is nothing at {path[:200]}; /docs lists every path"
            return NotFound(msg)
        return not_allowed(method, self.methods())

    def methods(self) -> list[str]:
        return sorted(self.operations)


def not_allowed(method: str, allowed: list[str]) -> MethodNotAllowed:
    allow = ", ".join(allowed)
    headers = {"Allow": allow}
    if "PATCH" in allowed:
        headers["Accept-Patch"] = ACCEPT_PATCH
    return MethodNotAllowed(f"method {method[:20]}: expected one of {allow}", headers)


class Routes(Generic[R]):
    """The routes of a table of operations. A template has up to two parameters, whole segments."""

    def __init__(self, base: str, operations: Iterable[R]) -> None:
        self._nowhere: Route[R] = Route("")
        self._fixed: dict[str, Route[R]] = {}
        self._with_parameter: dict[tuple[str, str], Route[R]] = {}
        self._with_two: dict[tuple[str | None, ...], Route[R]] = {}
        for operation in operations:
            operations_here = self._route_at(base + operation.path).operations
            operations_here[operation.method] = operation
            if operation.method == "GET":
                operations_here["HEAD"] = operation

    def find(self, path: str) -> tuple[Route[R], tuple[str, ...]]:
        """Return the route of ``path``, without operations if there is none, and its parameters."""
        route = self._fixed.get(path)
        if route is not None:
            return route, ()
        head, _, last = path.rpartition("/")
        route = self._with_parameter.get((head, ""))
        if route is not None and last:
            return route, (last,)
        head, _, parameter = head.rpartition("/")
        route = self._with_parameter.get((head, last)) if last else None
        if route is not None and parameter:
            return route, (parameter,)
        return self._find_with_two(path)

    def _find_with_two(self, path: str) -> tuple[Route[R], tuple[str, ...]]:
        segments = path.split("/")
        for template, route in self._with_two.items():
            pairs = [*zip(template, segments, strict=False)]
            if len(template) == len(segments) and all(
                part if name is None else part == name for name, part in pairs
            ):
                return route, tuple(part for name, part in pairs if name is None)
        return self._nowhere, ()

    def _route_at(self, template: str) -> Route[R]:
        head, brace, rest = template.partition("/{")
        if not brace:
            return self._fixed.setdefault(template, Route(template))
        suffix = rest.partition("}")[2].removeprefix("/")
        if "{" in suffix:
            segments = (None if part[:1] == "{" else part for part in template.split("/"))
            return self._with_two.setdefault(tuple(segments), Route(template))
        return self._with_parameter.setdefault((head, suffix), Route(template))


def decode_path_id(text: str) -> int:
    # Of what is no id, int() would accept " 7", "+7", "1_0" and full-width digits.
    is_plain = text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0")
    if not is_plain or len(text) > _LONGEST_ID or (number := int(text)) > INT64_MAX:
        raise NotFound(
            "there is no resource at this path; an id has only digits, without leading zeros, and"
            f" is at most {INT64_MAX}"
        )
    return number


class Addresses:
    """The URL of this service: the operator's ``public_url``, else ``http`` at the ``Host``."""

    def __init__(self, public_url: str = "") -> None:
        self.public_url = public_url.rstrip("/")

    def root(self, request: Request) -> str:
        """It is empty, so that references are relative, if HTTP/1.0 names no ``Host`` either."""
        host = request.fields.get(b"host")
        if host is None and request.version == "1.0":
            return self.public_url
        if host is None or b"host" in request.repeated:
            raise InvalidRequest("Host: expected exactly once")
        root = _root_at(host)
        return self.public_url or root


@lru_cache(maxsize=64)
def _root_at(host: bytes) -> str:
    if len(host) > _LONGEST_HOST or not _HOST.match(host):
        raise InvalidRequest("Host: expected a name or an address, and perhaps a port")
    return f"http://{host.decode('ascii')}"


_REQUESTED = b"access-control-request-headers"
_ALLOWED = b"access-control-allow-headers: "
_MAX_AGE = b"access-control-max-age: 600"
_EXPOSED = (
    b"access-control-expose-headers: ETag, Idempotent-Replayed, Link, Location, Retry-After,"
    b" X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy,"
    b" X-Request-Id, X-Total-Count, Deprecation, Sunset, WWW-Authenticate"
)
_VARY = b"vary: Origin"


def is_preflight(request: Request, allowed: Collection[str]) -> bool:
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
    return Response(204, b"", [allow, *headers, _MAX_AGE])


def cross_origin_headers(request: Request, allowed: Collection[str]) -> Headers:
    """Call it only if the service allows an origin: ``Vary`` keeps caches right."""
    origin = _allowed_origin(request, allowed)
    if origin is None:
        return [_VARY]
    return [b"access-control-allow-origin: " + origin, _EXPOSED, _VARY]


def _allowed_origin(request: Request, allowed: Collection[str]) -> bytes | None:
    origin = request.fields.get(b"origin")
    if origin is not None and ("*" in allowed or origin.decode("latin-1") in allowed):
        return origin
    return None
