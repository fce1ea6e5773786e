"""The least an application can do: what the service adds to its HTTP server is the rest."""

import asyncio
import sys

import uvloop

from petstore.api.messages import JSON
from petstore.cli.serve import listen
from petstore.http.messages import Receive, Request, Response
from petstore.http.server import ConnectionLimits, HttpServer

BODY = (
    b"[" + b",".join([b'{"id":1,"name":"Bella","categoryId":1,"status":"available"}'] * 20) + b"]"
)
_LIMITS = ConnectionLimits(per_address=20_000)


async def respond(_: Request, __: Receive) -> Response:
    """Answer every request with the same 20 animals."""
    return Response(200, BODY, [JSON, b"content-length: %d" % len(BODY)])


async def main(port: int) -> None:
    """Serve at a port."""
    await HttpServer(respond, listen("127.0.0.1", port), _LIMITS).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
