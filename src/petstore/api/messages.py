"""A request as it came, and the answer to it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal, TypeAlias

import msgspec

from petstore.errors import PetstoreError

Headers: TypeAlias = list[tuple[bytes, bytes]]

# What passes between the server and an application (ASGI specification, version 3.0).
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = (b"content-type", b"application/json")

encode_json = msgspec.json.Encoder().encode


BodyState: TypeAlias = Literal["none", "waiting", "read", "broken"]


class Request:
    """The head of a request, and what has become of its body.

    Field values of the same name are joined (RFC 9110 section 5.3).
    """

    __slots__ = ("body", "client", "fields", "method", "path", "query", "repeated")

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.client: str = scope["client"][0]
        self.fields: dict[bytes, bytes] = {}
        self.repeated: set[bytes] = set()
        fields = self.fields
        for name, value in scope["headers"]:
            if name in fields:
                self.repeated.add(name)
                fields[name] += b", " + value
            else:
                fields[name] = value
        length = fields.get(b"content-length", b"0")
        is_empty = length == b"0" and b"transfer-encoding" not in fields
        self.body: BodyState = "none" if is_empty else "waiting"


class Answer(msgspec.Struct, frozen=True):
    """Status, body and the headers of this answer alone."""

    status: int
    body: bytes
    headers: Headers


def json_answer(status: int, content: object, headers: Headers | None = None) -> Answer:
    """Return ``content`` encoded as JSON."""
    return Answer(status, encode_json(content), [JSON, *(headers or ())])


def error_answer(error: PetstoreError) -> Answer:
    """Return the Error body of interface.md: exactly ``code``, ``message`` and ``status``."""
    body = {"code": error.code, "message": error.message, "status": error.status}
    headers = [
        (name.encode("ascii"), value.encode("latin-1")) for name, value in error.headers.items()
    ]
    return json_answer(error.status, body, headers)


def created_answer(content: object, location: str) -> Answer:
    """Return 201 with what was created, and where it is."""
    return json_answer(201, content, [(b"location", location.encode("ascii"))])


def empty_answer() -> Answer:
    """Return 204: done, and nothing to show."""
    return Answer(204, b"", [])
