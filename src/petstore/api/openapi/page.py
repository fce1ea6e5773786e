"""The page that serves the document, with the address that the client reaches the service by."""

import gzip
from collections.abc import Callable, Sequence
from functools import cached_property

from msgspec.structs import replace

from petstore.api.content_codings import choose_coding
from petstore.api.entity_tags import check_conditions, conditional, entity_tag
from petstore.api.messages import JSON, encode_json
from petstore.api.openapi.document import document
from petstore.api.operation import Operation
from petstore.http.messages import Request, Response

_MAX_COMPRESSED = 8
_PLACEHOLDER = "https://origin.invalid"
_CACHED = [b"cache-control: public, max-age=300", b"vary: Accept-Encoding"]


class DocumentPage:
    """Responds with the document. ``root`` returns the URL of the service without ``/v1``.

    The document is encoded once, and the URL put into it for each request. It is compressed once
    for each of the first few URLs. A client that sends ever other ones gets it as it is, so that it
    costs neither time nor memory.
    """

    def __init__(self, operations: Sequence[Operation], root: Callable[[Request], str]) -> None:
        self._operations = operations
        self._root = root
        self._compressed: dict[bytes, bytes] = {}

    async def __call__(self, request: Request) -> Response:
        """Respond with the document, or 304 if the client has it already.

        Raises:
            InvalidParameter: ``If-Match`` or ``If-None-Match`` is too long.
            PreconditionFailed: ``If-Match`` names another version.
        """
        check_conditions(request)
        whole = self._representation(request)
        response = conditional(request, whole)
        if response is whole:
            return response
        return replace(response, headers=[*response.headers, *_CACHED])

    def _representation(self, request: Request) -> Response:
        root = encode_json(self._root(request))[1:-1]
        body, headers, coding = root.join(self._pieces), [JSON, *_CACHED], None
        if choose_coding(request, ["gzip"]) is not None:
            compressed = self._compress(root, body)
            if compressed is not None:
                body, coding = compressed, "gzip"
                headers.append(b"content-encoding: gzip")
        # Not of the whole body: the digest would take longer than all the rest.
        tag = entity_tag(b"%b %b %b" % (self._digest, root, (coding or "").encode("ascii")))
        return Response(200, body, [*headers, b"etag: " + tag], tag=tag)

    def _compress(self, root: bytes, body: bytes) -> bytes | None:
        """Return ``body`` compressed, or ``None`` if there are enough addresses already."""
        if root not in self._compressed and len(self._compressed) < _MAX_COMPRESSED:
            # Without the time, so that it is the same in every process, like its tag.
            self._compressed[root] = gzip.compress(body, mtime=0)
        return self._compressed.get(root)

    @cached_property
    def _pieces(self) -> list[bytes]:
        """The document, split where the URL of the service stands."""
        text: bytes = encode_json(document(_PLACEHOLDER, self._operations))
        return text.split(_PLACEHOLDER.encode("ascii"))

    @cached_property
    def _digest(self) -> bytes:
        return entity_tag(b"".join(self._pieces))
