"""The two that do I/O: they carry out the steps of a ``Session``, with threads or with tasks."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import httpx2

from petstore_client._calls import Call, Reply, Response
from petstore_client._connection import Connection
from petstore_client._errors import PetstoreError
from petstore_client._retries import Outcome, Request, Session, Sleep, Step

T = TypeVar("T")

Wait: TypeAlias = Callable[[float, PetstoreError | None], object]
"""Waits so many seconds: because of an error or, without one, of the limits of the key."""

AsyncWait: TypeAlias = Callable[[float, PetstoreError | None], Awaitable[object]]


class SyncDriver:
    """Carries out calls in the thread of the caller."""

    def __init__(
        self,
        session: Session,
        connection: Connection,
        transport: httpx2.BaseTransport,
        wait: Wait | None = None,
    ) -> None:
        self.session = session
        self._wait = wait
        self._connection = connection
        self._transport = transport

    def run(self, call: Call[T]) -> Response[T]:
        """Return the response to a call.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        return call.response(self._exchange(call))

    def wait(self, sleep: Sleep) -> None:
        """Wait, as the user of the client wants it."""
        if self._wait is None:
            self.sleep(sleep.seconds)
        else:
            self._wait(sleep.seconds, sleep.error)

    def sleep(self, seconds: float) -> None:
        """Let the thread sleep."""
        self.session.clock.sleep(seconds)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _exchange(self, call: Call[Any]) -> Reply:
        steps = self.session.exchange(call)
        outcome: Outcome = None
        try:
            while True:
                outcome = self._do(steps.send(outcome))
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        finally:
            steps.close()

    def _do(self, step: Step) -> Outcome:
        if isinstance(step, Sleep):
            self.wait(step)
            return None
        try:
            return self._send(step)
        except httpx2.HTTPError as error:
            return self._connection.failure(error)

    def _send(self, request: Request) -> Reply:
        response = self._transport.handle_request(self._connection.prepared(request))
        content = bytearray()
        try:
            for piece in response.iter_bytes():
                content += piece
                self._connection.check_size(content)
        finally:
            response.close()
        return self._connection.reply(response, content)


class AsyncDriver:
    """Carries out calls in the task of the caller."""

    def __init__(
        self,
        session: Session,
        connection: Connection,
        transport: httpx2.AsyncBaseTransport,
        wait: AsyncWait | None = None,
    ) -> None:
        self.session = session
        self._wait = wait
        self._connection = connection
        self._transport = transport

    async def run(self, call: Call[T]) -> Response[T]:
        """Return the response to a call.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        return call.response(await self._exchange(call))

    async def wait(self, sleep: Sleep) -> None:
        """Wait, as the user of the client wants it."""
        if self._wait is None:
            await self.sleep(sleep.seconds)
        else:
            await self._wait(sleep.seconds, sleep.error)

    async def sleep(self, seconds: float) -> None:
        """Let the task sleep."""
        await self.session.clock.pause(seconds)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def _exchange(self, call: Call[Any]) -> Reply:
        steps = self.session.exchange(call)
        outcome: Outcome = None
        try:
            while True:
                outcome = await self._do(steps.send(outcome))
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply
        finally:
            steps.close()

    async def _do(self, step: Step) -> Outcome:
        if isinstance(step, Sleep):
            await self.wait(step)
            return None
        import asyncio

        try:
            async with asyncio.timeout(step.timeout):
                return await self._send(step)
        except (httpx2.HTTPError, TimeoutError) as error:
            return self._connection.failure(error)

    async def _send(self, request: Request) -> Reply:
        response = await self._transport.handle_async_request(self._connection.prepared(request))
        content = bytearray()
        try:
            async for piece in response.aiter_bytes():
                content += piece
                self._connection.check_size(content)
        finally:
            await response.aclose()
        return self._connection.reply(response, content)
