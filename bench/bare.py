"""The minimal application: a service with one response for everything."""

import asyncio
import sys

import uvloop

from petstore.http.messages import Receive, Request, Response
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.interface.messages import JSON
from petstore.server.listeners import listen

BODY = (
    b"[" + b",".join([b'{"id":1,"name":"Bella","categoryId":1,"status":"available"}'] * 20) + b"]"
)
_LIMITS = ConnectionLimits(per_address=20_000)


async def respond(_: Request, __: Receive) -> Response:
    """Respond to every request with the same 20 pets."""
    return Response(200, BODY, [JSON, b"content-length: %d" % len(BODY)])


async def main(port: int) -> None:
    """Serve at a port."""
    await HttpServer(respond, listen("127.0.0.1", port), _LIMITS).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
