"""A way to a server that may swallow everything: connections stay open, and nothing comes back."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread


class BlackHole:
    """Forwards everything sent to ``port``, until it starts to swallow it.

    A connection that has lost anything stays silent for ever, as behind a firewall that has
    forgotten it; later ones are handed on again.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._hole = 0  # counted up with each; a connection belongs to the time of one
        self._is_swallowing = False
        self._loop = asyncio.new_event_loop()
        self._is_listening = Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @contextmanager
    def running(self) -> Iterator["BlackHole"]:
        """Listen until the block ends."""
        thread = Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        thread.start()
        self._is_listening.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            thread.join(10)
            self._loop.close()

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        """Swallow everything until the block ends."""
        self._hole += 1
        self._is_swallowing = True
        try:
            yield
        finally:
            self._hole += 1
            self._is_swallowing = False

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._hand_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._end.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _hand_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        since = self._hole
        try:
            if self._is_swallowing:
                await self._swallow(reader)
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await asyncio.gather(
                    self._copy(reader, back, since), self._copy(there, writer, since)
                )
            finally:
                back.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass  # one end is gone, or both are to be
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _copy(self, reader: StreamReader, writer: StreamWriter, since: int) -> None:
        while data := await reader.read(2**16):
            if self._hole != since:
                await self._swallow(reader)
                return
            writer.write(data)
        if self._hole == since:
            with suppress(OSError):
                writer.write_eof()

    async def _swallow(self, reader: StreamReader) -> None:
        while await reader.read(2**16):
            pass
