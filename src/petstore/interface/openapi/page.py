"""The page that serves the document, with the address that the client reaches the service by."""

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property

from msgspec.structs import replace

from petstore.http.messages import Request, Response
from petstore.interface.messages import (
    JSON,
    choose_coding,
    conditional,
    conditions_of,
    encode_json,
    entity_tag,
)
from petstore.interface.openapi.document import document
from petstore.interface.operation import Operation

_PLACEHOLDER = "https://origin.invalid"
_GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # without a time or a system
_LAST_BLOCK = b"\x03\x00"  # an empty one
_CACHED = [b"cache-control: public, max-age=300", b"vary: Accept-Encoding"]


class DocumentPage:
    """Responds with the document. ``root`` returns the URL of the service without ``/v1``.

    The document is encoded and compressed once, and the URL put into it for each request. So a
    client that invents hosts costs no more time than others, and no memory.
    """

    def __init__(self, operations: Sequence[Operation], root: Callable[[Request], str]) -> None:
        self._operations = operations
        self._root = root

    async def __call__(self, request: Request) -> Response:
        """Respond with the document, or 304 if the client has it already."""
        root = encode_json(self._root(request))[1:-1]
        body, headers, coding = root.join(self._pieces), [JSON, *_CACHED], b""
        if choose_coding(request, ["gzip"]) is not None:
            body, coding = self._compressed(root, body), b"gzip"
            headers.append(b"content-encoding: gzip")
        # Not of the whole body: the digest would take longer than all the rest.
        tag = entity_tag(b"%b %b %b" % (self._digest, root, coding))
        whole = Response(200, body, [*headers, b"etag: " + tag], tag=tag)
        response = conditional(conditions_of(request), whole)
        is_whole = response is whole
        return whole if is_whole else replace(response, headers=[*response.headers, *_CACHED])

    def _compressed(self, root: bytes, body: bytes) -> bytes:
        """Return ``body`` in gzip (RFC 1952): its compressed pieces, and ``root`` between them.

        ``root`` is a stored block (RFC 1951 section 3.2.4).
        """
        stored = struct.pack("<BHH", 0, len(root), len(root) ^ 0xFFFF) + root
        checks = struct.pack("<LL", zlib.crc32(body), len(body))
        return b"".join([_GZIP_HEADER, stored.join(self._blocks), _LAST_BLOCK, checks])

    @cached_property
    def _pieces(self) -> list[bytes]:
        """The document, split where the URL of the service stands."""
        text: bytes = encode_json(document(_PLACEHOLDER, self._operations))
        return text.split(_PLACEHOLDER.encode("ascii"))

    @cached_property
    def _blocks(self) -> list[bytes]:
        """The pieces, compressed apart: each ends at a whole byte, and refers to none before."""
        makers = [zlib.compressobj(wbits=-zlib.MAX_WBITS) for _ in self._pieces]
        pairs = zip(makers, self._pieces, strict=True)
        return [maker.compress(piece) + maker.flush(zlib.Z_SYNC_FLUSH) for maker, piece in pairs]

    @cached_property
    def _digest(self) -> bytes:
        return entity_tag(b"".join(self._pieces))
