"""The HTTP server at work in a thread, with an application of the test."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

import uvloop

from petstore.http.messages import Receive, Request, Response
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.server.listeners import listen

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSING = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def in_memory(kind: type) -> int:
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


class Echo:
    """Responds with method, path, query and body once ``is_free``, and remembers the requests.

    It reads the body before that, or after.
    """

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.failures: list[str] = []  # why bodies were incomplete
        self.size = 0
        self.status = 200
        self.is_free: Callable[[], bool] = lambda: True
        self.reads_at_once = True
        self.is_shared = False

    async def __call__(self, request: Request, receive: Receive) -> Response:
        if request.refusal is not None:
            status = request.refusal.status
            return Response(status, b"", [b"content-length: 0"], is_last=True)
        self.seen.append(request)
        if not self.reads_at_once:
            await self._wait()
        body = request.content or b""
        try:
            while request.content is None and (piece := await receive()):
                body += piece
        except ConnectionError as error:
            self.failures.append(str(error))
            return Response(400, b"", [b"content-length: 0"])
        await self._wait()
        told = b"%s %s?%s " % (request.method.encode(), request.path.encode(), request.query)
        told += body + b"." * self.size
        length = b"content-length: %d" % len(told)
        return Response(self.status, told, [length], is_shared=self.is_shared)

    async def _wait(self) -> None:
        while not self.is_free():  # noqa: ASYNC110 - a thread of the test decides
            await asyncio.sleep(0.001)


class Served:
    """A server for ``app`` at ``port``, in a thread that ends with its last connection."""

    def __init__(self, app: Echo, **limits: Any) -> None:
        self._app = app
        self._limits = ConnectionLimits(**({"connections": 100, "per_address": 100} | limits))
        self._listener = listen("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self._loop = uvloop.new_event_loop()
        self.thread = Thread(target=self._run)
        self.has_begun = Event()

    @property
    def connections(self) -> int:
        return self._server.connections

    def stop(self) -> None:
        """Stop accepting, and end when the last connection closes."""
        with suppress(RuntimeError):  # its last connection has closed, and the loop with it
            self._loop.call_soon_threadsafe(self._server.stop)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._server = HttpServer(self._app, self._listener, self._limits)
        self.has_begun.set()
        await self._server.serve()


@contextmanager
def served(app: Echo, **limits: Any) -> Iterator[Served]:
    server = Served(app, **limits)
    server.thread.start()
    server.has_begun.wait()  # connections made before have larger buffers
    try:
        yield server
    finally:
        server.stop()
        server.thread.join()
