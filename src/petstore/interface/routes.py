"""The route of a path: its template and operations. Paths match as sent; there are no aliases."""

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from petstore.errors import MethodNotAllowed, NotFound
from petstore.interface.bodies import ACCEPT_PATCH


class _Routed(Protocol):
    """What has a method and a path: an operation of the interface, or a page of the console."""

    @property
    def method(self) -> str:
        """The method, in upper case."""
        ...

    @property
    def path(self) -> str:
        """The path template, relative to the base of its routes."""
        ...


R = TypeVar("R", bound=_Routed)


class Route(Generic[R]):
    """A path template and its operations by method; HEAD stands beside GET (RFC 9110 9.3.2)."""

    def __init__(self, template: str) -> None:
        self.template = template
        self.operations: dict[str, R] = {}

    def add(self, operation: R) -> None:
        """Add an operation."""
        self.operations[operation.method] = operation
        if operation.method == "GET":
            self.operations["HEAD"] = operation

    def refusal(self, method: str, path: str) -> NotFound | MethodNotAllowed:
        """Return the error for a method without an operation; ``path`` is what was requested."""
        if not self.operations:
            msg = f"there is nothing at {path[:200]}; /docs lists every path"
            return NotFound(msg)
        return not_allowed(method, self.methods())

    def methods(self) -> list[str]:
        """Return the methods of this path, sorted."""
        return sorted(self.operations)


def not_allowed(method: str, allowed: list[str]) -> MethodNotAllowed:
    """Return the 405 of a path that takes ``allowed``."""
    allow = ", ".join(allowed)
    headers = {"Allow": allow}
    if "PATCH" in allowed:
        headers["Accept-Patch"] = ACCEPT_PATCH
    return MethodNotAllowed(f"method {method[:20]}: expected one of {allow}", headers)


class Routes(Generic[R]):
    """The routes of a table of operations. A template has up to two parameters, whole segments.

    ``base`` precedes the path of each operation.
    """

    def __init__(self, base: str, operations: Iterable[R]) -> None:
        self._nowhere: Route[R] = Route("")
        self._fixed: dict[str, Route[R]] = {}
        self._with_parameter: dict[tuple[str, str], Route[R]] = {}
        self._with_two: dict[tuple[str | None, ...], Route[R]] = {}
        for operation in operations:
            self._route_at(base + operation.path).add(operation)

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
