"""The operations that resources of every kind have: their rows follow from a function each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from petstore.databases.contract import Reader, Unit
from petstore.events.store import Change
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.keys.model import Scope

B = TypeVar("B")
V = TypeVar("V")

_Get: TypeAlias = Callable[[Context, Call[None, None]], Awaitable[Result[V]]]


def reading(read: Callable[[Reader, int], Awaitable[V]]) -> _Get[V]:
    """Return the handler of a resource that looks the same to every caller."""

    async def get(context: Context, call: Call[None, None]) -> Result[V]:
        return Result(await read(context.services.store, call.path_id))

    return get


class Resource(NamedTuple):
    """What the operations of resources of a ``kind`` have in common.

    ``noun`` is what their descriptions call one, with its article. ``example`` is one, as JSON.
    Whatever differs in a row is given beside the function, by the name of the field of
    ``Operation``.
    """

    kind: type[Any]
    path: str
    tag: str
    noun: str
    reads: Scope
    writes: Scope
    example: Mapping[str, Any]
    shows_orders: bool = False
    no_store: bool = False

    def list(
        self,
        handler: Callable[[Context, Call[None, Any]], Awaitable[Result[list[V]]]],
        query: type[Any],
        description: str,
        more: Sequence[Mapping[str, Any]] = (),
        **others: Any,
    ) -> Operation:
        """Return the row of a list; ``more`` are examples beside the resource's."""
        several = self.path.rpartition("/")[2]
        content, example = list[self.kind], [self.example, *more]  # type: ignore[name-defined]
        return self.row(
            *(f"list{several.title()}", "GET", self.path, f"List {several}", description, handler),
            Success(200, f"A page of {several}.", content, example),
            **{"query": query, "cached": True, **others},
        )

    def create(
        self, unit: Callable[[Change, B], Unit[V]], body: type[B], description: str, **others: Any
    ) -> Operation:
        async def create(context: Context, call: Call[B, None]) -> Result[V]:
            return await change(context, unit(context.change, call.body))

        shown = f"{self._the}, with the `id` the service assigned."
        return self.row(
            *(f"create{self.kind.__name__}", "POST", self.path, f"Add {self.noun}", description),
            *(create, Success(201, shown, self.kind, self.example)),
            **{"body": body, "tagged": True, **others},
        )

    def get(self, handler: _Get[V], description: str, **others: Any) -> Operation:
        return self.row(
            *(f"get{self.kind.__name__}", "GET", self._one, f"Get {self.noun}", description),
            *(handler, Success(200, f"{self._the}.", self.kind, self.example)),
            **others,
        )

    def update(
        self,
        unit: Callable[[Change, int, B], Unit[V]],
        body: type[B],
        description: str,
        *,
        example: Mapping[str, Any],
        **others: Any,
    ) -> Operation:
        """Return the row of a merge patch; ``example`` is the resource after the body's example."""

        async def update(context: Context, call: Call[B, None]) -> Result[V]:
            return await change(context, unit(context.change, call.path_id, call.body))

        return self.row(
            *(f"update{self.kind.__name__}", "PATCH", self._one, f"Change {self.noun}"),
            f"Changes the fields in the body (RFC 7396). {description}",
            *(update, Success(200, f"{self._the} as it is now.", self.kind, example)),
            **{"body": body, **others},
        )

    def delete(
        self, unit: Callable[[Change, int], Unit[None]], description: str, **others: Any
    ) -> Operation:
        async def delete(context: Context, call: Call[None, None]) -> Result[None]:
            return await change(context, unit(context.change, call.path_id))

        gone = Success(204, f"{self._the} is deleted.")
        return self.row(
            *(f"delete{self.kind.__name__}", "DELETE", self._one, f"Delete {self.noun}"),
            *(description, delete, gone),
            **others,
        )

    def row(
        self,
        name: str,
        method: Any,
        path: str,
        summary: str,
        description: str,
        handler: Any,
        success: Success,
        /,
        **others: Any,
    ) -> Operation:
        row = {
            "id": name,
            "method": method,
            "path": path,
            "tag": self.tag,
            "summary": summary,
            "description": description,
            "handler": handler,
            "success": success,
            "scope": self.reads if method == "GET" else self.writes,
            "shows_orders": self.shows_orders,
            "no_store": self.no_store,
            "tagged": method != "POST",  # what acts on a resource responds with no version of it
        }
        return Operation(**{**row, **others})

    @property
    def _the(self) -> str:
        return f"The {self.noun.partition(' ')[2]}"

    @property
    def _one(self) -> str:
        return f"{self.path}/{{{self.kind.__name__.lower()}Id}}"
