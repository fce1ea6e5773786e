"""Deprecated operations, and what a key has called of them."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

Time = Annotated[datetime, Meta(tz=True)]


class DeprecatedOperation(Struct, frozen=True, rename="camel"):
    """A deprecated operation, and what to ``use`` instead."""

    operation: Annotated[str, Meta(description="The id of the operation, such as `getPet`.")]
    method: Annotated[str, Meta(description="Its method.")]
    path: Annotated[str, Meta(description="The template of its path.")]
    since: Annotated[Time, Meta(description="When it was deprecated.")]
    sunset: Annotated[Time, Meta(description="When it ends.")]
    use: Annotated[str, Meta(description="What to call instead.")]
    documentation: Annotated[str, Meta(description="The address of the explanation.")]


class DeprecatedUse(DeprecatedOperation, frozen=True):
    """A deprecated operation that a key still calls: its calls in the last 30 days, and the last.

    The user agent and the request id are those of the last call.
    """

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
