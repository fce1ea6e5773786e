"""Deprecated operations, and what a key has called of them."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from petstore.clock import Milliseconds

KEPT_DAYS = 30
"""How many UTC days of calls are counted, today included."""

_MAX_USER_AGENT = 100

Time = Annotated[datetime, Meta(tz=True)]


class DeprecatedOperation(Struct, frozen=True):
    """A deprecated operation, and what to ``use`` instead."""

    id: str
    method: str
    path: str
    since: datetime
    sunset: datetime
    use: str
    documentation: str


class DeprecatedUse(Struct, frozen=True, rename="camel"):
    """A deprecated operation that a key still calls: its calls in the last 30 days, and the last.

    The user agent and the request id are those of the last call.
    """

    operation: Annotated[str, Meta(description="The id of the operation, such as `getPet`.")]
    method: Annotated[str, Meta(description="Its method.")]
    path: Annotated[str, Meta(description="The template of its path.")]
    since: Annotated[Time, Meta(description="When it was deprecated.")]
    sunset: Annotated[Time, Meta(description="When it ends.")]
    use: Annotated[str, Meta(description="What to call instead.")]
    documentation: Annotated[str, Meta(description="The address of the explanation.")]
    calls: Annotated[int, Meta(description="Calls in the last 30 days (UTC).")]
    last_called_at: Annotated[Time, Meta(description="When it was last called.")]
    last_user_agent: Annotated[
        str, Meta(description="The `User-Agent` of the last call, up to 100 characters.")
    ]
    last_request_id: Annotated[str, Meta(description="The id of the last request.")]


class DeprecationNoticeData(DeprecatedUse, frozen=True):
    """A deprecated operation that a key has called: the data of an event for its holder."""

    key_id: Annotated[int, Meta(description="The `id` of the key.")]


class KeyDeprecatedUse(DeprecatedUse, frozen=True):
    """A deprecated operation that a key still calls, with the key."""

    key_id: Annotated[int, Meta(description="The `id` of the key.")]
    key_name: Annotated[str, Meta(description="What the key is for.")]


class Calls(Struct, frozen=True):
    """Calls of one key to one operation, and the last of them."""

    calls: int
    last_called_at: Milliseconds
    last_user_agent: str
    last_request_id: str

    def and_also(self, other: "Calls") -> "Calls":
        """Return the calls of both, with the last of all."""
        last = max(self, other, key=lambda calls: calls.last_called_at)
        return replace(last, calls=self.calls + other.calls)


def user_agent_text(field: bytes | None) -> str:
    """Return the first 100 characters of a ``User-Agent``, with ``?`` for unprintable ones."""
    # Four bytes are the longest character in UTF-8: a long field is not decoded whole.
    text = (field or b"")[: 4 * _MAX_USER_AGENT].decode("utf-8", "replace")[:_MAX_USER_AGENT]
    return "".join(character if character.isprintable() else "?" for character in text)
