"""A receiver of webhooks as a process of its own: ``python -m proof.receiver SOCKET FILE``.

It appends each request to the file before it responds, so a kill loses nothing that it accepted.
Some requests it refuses, resets or delays, but no event twice: the second attempt after a failure
comes after five seconds, the third one after five minutes.
"""

import asyncio
import socket
import struct
import sys
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

_OK, _FAILED = (
    f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode("ascii")
    for status in ("204 No Content", "500 Internal Server Error")
)
_SLOW_SECONDS = 0.3
# Of a hundred events so many are refused, reset, accepted and then reset, and accepted late.
_REFUSED, _RESET, _UNCONFIRMED, _SLOW = 2, 3, 4, 6

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


class Received(NamedTuple):
    """A request as it arrived; names of ``headers`` in lower case."""

    headers: dict[str, str]
    body: bytes
    is_accepted: bool


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Received).decode


def read_received(file: Path) -> list[Received]:
    """Return the requests in a file; of the last one, a kill may have left a part."""
    whole, _, _ = file.read_bytes().rpartition(b"\n")
    return [_decode(line) for line in whole.splitlines()]


class _Receiver:
    """Serves one request on each connection."""

    def __init__(self, file: BinaryIO, received: list[Received]) -> None:
        self._file = file
        self._seen = {one.headers["webhook-id"] for one in received}

    async def serve(self, reader: Reader, writer: Writer) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
            fields = (line.partition(": ") for line in head[1:] if line)
            headers = {name.lower(): value for name, _, value in fields}
            body = await reader.readexactly(int(headers["content-length"]))
            await self._respond(headers, body, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the sender was killed
        finally:
            writer.close()

    async def _respond(self, headers: dict[str, str], body: bytes, writer: Writer) -> None:
        event_id = headers["webhook-id"]
        is_new, lot = event_id not in self._seen, crc32(event_id.encode()) % 100
        self._seen.add(event_id)
        is_accepted = not is_new or lot >= _RESET
        self._file.write(_encode(Received(headers, body, is_accepted)) + b"\n")
        if not is_new or lot >= _UNCONFIRMED:
            await asyncio.sleep(_SLOW_SECONDS if lot < _SLOW else 0)
            writer.write(_OK)
            await writer.drain()
        elif lot < _REFUSED:
            writer.write(_FAILED)
            await writer.drain()
        else:
            _reset(writer)


def _reset(writer: Writer) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _main(listener: socket.socket, path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        receiver = _Receiver(file, read_received(path))
        async with await asyncio.start_server(receiver.serve, sock=listener) as server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])))
