"""Which operation a method and path mean. Paths are matched as sent: there are no aliases."""

from collections.abc import Iterable

from msgspec import Struct

from petstore.api.bodies import ACCEPT_PATCH
from petstore.api.operation import Operation
from petstore.errors import MethodNotAllowed, NotFound


class Route(Struct, frozen=True):
    """The operations at a path by method, and the text of the path's parameter, if it has one."""

    path: str
    operations: dict[str, Operation]
    parameter: str

    def operation(self, method: str) -> Operation | None:
        """Return the operation of ``method``; HEAD is answered wherever GET is."""
        return self.operations.get("GET" if method == "HEAD" else method)

    def refusal(self, method: str) -> NotFound | MethodNotAllowed:
        """Return what is wrong with a ``method`` that has no operation here."""
        if not self.operations:
            msg = f"there is nothing at {self.path[:200]}; what there is, is listed at /docs"
            return NotFound(msg)
        return not_allowed(method, self.methods())

    def methods(self) -> list[str]:
        """Return the methods this path takes."""
        return sorted({*self.operations, *(["HEAD"] if "GET" in self.operations else [])})


def not_allowed(method: str, allowed: list[str]) -> MethodNotAllowed:
    """Return the 405 of a path that takes ``allowed``."""
    allow = ", ".join(allowed)
    headers = {"Allow": allow}
    if "PATCH" in allowed:
        headers["Accept-Patch"] = ACCEPT_PATCH
    return MethodNotAllowed(f"method {method[:20]}: expected one of {allow}", headers)


class Routes:
    """The table of operations, by path. A path has one parameter at most, a whole segment of it."""

    def __init__(self, base: str, operations: Iterable[Operation]) -> None:
        self.base = base
        self._fixed: dict[str, dict[str, Operation]] = {}
        self._with_parameter: dict[tuple[str, str], dict[str, Operation]] = {}
        for operation in operations:
            prefix, brace, rest = (base + operation.path).partition("{")
            at_path = (
                self._with_parameter.setdefault((prefix, rest.partition("}")[2]), {})
                if brace
                else self._fixed.setdefault(prefix, {})
            )
            at_path[operation.method] = operation

    def find(self, path: str) -> Route:
        """Return what is at ``path``; a route without operations where there is nothing."""
        operations = self._fixed.get(path)
        if operations is not None:
            return Route(path, operations, "")
        prefix, last = _split(path)
        return (
            self._find_parameter(path, prefix, last, "")
            or self._find_parameter(path, *_split(prefix[:-1]), f"/{last}")
            or Route(path, {}, "")
        )

    def _find_parameter(self, path: str, prefix: str, segment: str, suffix: str) -> Route | None:
        operations = self._with_parameter.get((prefix, suffix))
        return Route(path, operations, segment) if operations is not None and segment else None


def _split(path: str) -> tuple[str, str]:
    """Return all of ``path`` but its last segment, and that."""
    head, slash, last = path.rpartition("/")
    return head + slash, last
