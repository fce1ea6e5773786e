"""HTTP messages as an application sees them."""

from collections.abc import Awaitable, Callable
from io import SEEK_END
from typing import IO, Literal, TypeAlias

import msgspec

Headers: TypeAlias = list[bytes]
"""Lines of a head without their line ends; an item may have several lines."""

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the next piece of a body, empty at its end. ``ConnectionError``: no more can arrive."""

Respond: TypeAlias = "Callable[[Request, Receive], Awaitable[Response]]"
"""Returns the response to a request, and never fails."""

_BodyState: TypeAlias = Literal["none", "waiting", "read", "broken"]


class Overload(ConnectionError):
    """The server has no memory for the rest of a body."""


class Refusal(Exception):
    """``status`` is 400, 414, 431, 501 or 503, and ``message`` is for a person."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Request(msgspec.Struct, eq=False):
    """The head of a request, and the state of its body.

    ``fields`` has the header fields by their names in lower case. Values with the same name are
    joined (RFC 9110 section 5.3), and the name is in ``repeated``. ``content`` is the body if all
    of it arrived with the head. A message that the server refuses has a ``refusal`` and no data.
    ``on_lost`` is called if the client leaves before it has the response; a long poll sets it.
    ``keeps_body`` tells whether the application holds in memory what it has received of the body.
    """

    method: str
    path: str
    query: bytes
    client: str
    fields: dict[bytes, bytes]
    repeated: frozenset[bytes] = frozenset()
    version: str = "1.1"
    body: _BodyState = "none"
    content: bytes | None = None
    refusal: Refusal | None = None
    on_lost: Callable[[], object] | None = None
    keeps_body: bool = True


class Response(msgspec.Struct, frozen=True, gc=False):
    """The status, headers and body of a response; ``is_last`` closes the connection after it.

    Large content is in a ``file``, which the server closes, and ``body`` is empty. ``tag`` is the
    value of the ``ETag`` header, if there is one. An error has its ``code``, and a 429 has the
    ``limit`` that was reached. A long poll has ``waited`` this many seconds for events. A body that
    ``is_shared`` is in memory once, however many clients receive it.
    """

    status: int
    body: bytes
    headers: Headers
    is_last: bool = False
    tag: bytes = b""
    code: str | None = None
    limit: str | None = None
    waited: float = 0.0
    file: IO[bytes] | None = None
    is_shared: bool = False

    @property
    def size(self) -> int:
        if self.file is None:
            return len(self.body)
        size = self.file.seek(0, SEEK_END)
        self.file.seek(0)
        return size
