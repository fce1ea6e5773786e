"""The minimal Python server: it responds to any bytes with a body as long as a list's."""

import asyncio
import sys
from typing import cast

import uvloop

from bare import BODY

_RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.Transport", transport).write

    def data_received(self, _: bytes) -> None:
        self._write(_RESPONSE)


async def main(port: int) -> None:
    """Serve at a port."""
    server = await asyncio.get_running_loop().create_server(_Echo, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
