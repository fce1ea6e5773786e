"""A request as it came, and the answer to it."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec

from petstore.errors import PetstoreError

Headers: TypeAlias = list[bytes]
"""Lines of a head, without their ends; an item may be several."""

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
"""Gives the next piece of a body that is not yet ``content``, or nothing at its end; raises
``ConnectionError`` if it is cut off before."""

Respond: TypeAlias = "Callable[[Request, Receive], Awaitable[Response]]"
"""Answers a request, whatever happens."""

JSON = b"content-type: application/json"
NO_STORE = b"cache-control: no-store"

encode_json = msgspec.json.Encoder().encode


BodyState: TypeAlias = Literal["none", "waiting", "read", "broken"]


class Request:
    """The head of a request, and what has become of its body.

    ``fields`` are by name in lower case. Values of the same name are joined (RFC 9110 section 5.3),
    and the name is among those ``repeated``. A body that came whole with the head is ``content``.
    Who sends the same GET again may come with the same ``Request``: ``resolved`` is what was made
    of it already. What is no proper HTTP message has a ``refusal``, and nothing else.
    """

    __slots__ = (
        "body",
        "client",
        "content",
        "fields",
        "method",
        "path",
        "query",
        "refusal",
        "repeated",
        "resolved",
        "version",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: bytes,
        client: str,
        fields: dict[bytes, bytes],
        repeated: set[bytes],
        version: str = "1.1",
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.client = client
        self.fields = fields
        self.repeated = repeated
        self.version = version
        self.resolved: object = None
        self.refusal: PetstoreError | None = None
        self.content: bytes | None = None
        length = fields.get(b"content-length", b"0")
        is_empty = length == b"0" and b"transfer-encoding" not in fields
        self.body: BodyState = "none" if is_empty else "waiting"


class Response(msgspec.Struct, frozen=True):
    """Status, body and headers; and if the connection is to end with it.

    ``tag`` is the value of the ``ETag`` that is among the headers, if there is one. An error has
    its ``code``, and a 429 the ``limit`` that was reached.
    """

    status: int
    body: bytes
    headers: Headers
    is_last: bool = False
    tag: bytes = b""
    code: str | None = None
    limit: str | None = None


def json_response(status: int, content: object, headers: Headers | None = None) -> Response:
    """Return ``content`` encoded as JSON."""
    return Response(status, encode_json(content), [JSON, *(headers or ())])


def error_response(error: PetstoreError) -> Response:
    """Return the Error body of interface.md: exactly ``code``, ``message`` and ``status``."""
    body = {"code": error.code, "message": error.message, "status": error.status}
    headers = [
        f"{name.lower()}: {value}".encode("latin-1") for name, value in error.headers.items()
    ]
    return Response(
        error.status,
        encode_json(body),
        [JSON, *headers],
        code=error.code,
        limit=error.limit,
    )


def created_response(content: object, location: str) -> Response:
    """Return 201 with what was created, and where it is."""
    return json_response(201, content, [f"location: {location}".encode("ascii")])


def empty_response() -> Response:
    """Return 204: done, and nothing to show."""
    return Response(204, b"", [])
