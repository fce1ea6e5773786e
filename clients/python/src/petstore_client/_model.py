"""What all models have: typed structs of what the service returns."""

from typing import Any, Self

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace


class Model(Struct, frozen=True, rename="camel", kw_only=True):
    """Part of a response. The members of the JSON are in camel case."""

    def to_dict(self) -> dict[str, Any]:
        """Return the members as the JSON has them: in camel case, and moments as text."""
        members: dict[str, Any] = to_builtins(self)
        return members


class Versioned(Model, frozen=True, dict=True):
    """A resource that can be changed if it still has the version that you know.

    Copies keep its ``etag``: those of ``copy``, ``copy.replace`` included, and of ``pickle``.
    """

    @property
    def etag(self) -> str:
        """The version that was returned, for ``if_match``.

        Raises:
            AttributeError: it has none: it came in a list or an event, or with its token, secret or
                invitation. Get it alone.
        """
        try:
            etag: str = self.__dict__["etag"]
        except KeyError:
            msg = (
                f"this {type(self).__name__} has no etag, because it came in a list or an event, or"
                " with a token, secret or invitation; get it alone"
            )
            raise AttributeError(msg) from None
        return etag

    def __copy__(self) -> Self:
        return self.__replace__()

    def __replace__(self, **changes: Any) -> Self:
        copy = replace(self, **changes)
        vars(copy).update(vars(self))
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), self.__dict__)


def without(model: Model, secret: str) -> str:
    """Return the ``repr`` of a model without its member ``secret``."""
    members = (f"{name}={value!r}" for name, value in asdict(model).items() if name != secret)
    return f"{type(model).__name__}({', '.join(members)})"
