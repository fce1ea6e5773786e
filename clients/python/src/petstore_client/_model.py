"""What all models have: typed structs of what the service returns."""

from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict


class Model(Struct, frozen=True, rename="camel", kw_only=True):
    """Part of a response. The members of the JSON are in camel case."""

    def to_dict(self) -> dict[str, Any]:
        """Return the members as the JSON has them: in camel case, and moments as text."""
        members: dict[str, Any] = to_builtins(self)
        return members


class Versioned(Model, frozen=True, dict=True):
    """A resource that can be changed if it still has the version that you know."""

    @property
    def etag(self) -> str:
        """The version that was returned, for ``if_match``.

        Raises:
            AttributeError: it has none: it came in a list or an event, or with its token, secret or
                invitation, or is a copy. Get it alone.
        """
        try:
            etag: str = self.__dict__["etag"]
        except KeyError:
            msg = (
                f"this {type(self).__name__} has no etag, because it came in a list or an event, or"
                " with a token, secret or invitation, or is a copy; get it alone"
            )
            raise AttributeError(msg) from None
        return etag


def without(model: Model, secret: str) -> str:
    """Return the ``repr`` of a model without its member ``secret``."""
    members = (f"{name}={value!r}" for name, value in asdict(model).items() if name != secret)
    return f"{type(model).__name__}({', '.join(members)})"
