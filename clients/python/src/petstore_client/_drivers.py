"""The two that do I/O: they carry out the steps of a ``Session``, with threads or with tasks."""

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeAlias, TypeVar

import httpx2

from petstore_client._calls import Call, Reply, Response
from petstore_client._connection import Connection
from petstore_client._errors import ClientClosed, PetstoreError
from petstore_client._lifetime import Lifetime
from petstore_client._retries import Failure, Outcome, Request, Session, Sleep, Step

T = TypeVar("T")
Transport = TypeVar("Transport", httpx2.BaseTransport, httpx2.AsyncBaseTransport)

Wait: TypeAlias = Callable[[float, PetstoreError | None], object]
"""Waits so many seconds: because of an error or, without one, of the limits of the key."""

AsyncWait: TypeAlias = Callable[[float, PetstoreError | None], Awaitable[object]]
UserWait = TypeVar("UserWait", Wait, AsyncWait)


@dataclass(frozen=True)
class _Driver(Generic[Transport, UserWait]):
    session: Session
    connection: Connection
    transport: Transport
    user_wait: UserWait | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)

    def with_options(
        self,
        timeout: float | None,
        max_retries: int | None,
        headers: Mapping[str, str],
        key: str | None,
    ) -> Self:
        """Return a driver with other settings, which shares everything else with this one.

        Raises:
            ValueError: one of them is invalid.
        """
        policy = self.session.policy
        policy = replace(
            policy,
            timeout=policy.timeout if timeout is None else timeout,
            max_retries=policy.max_retries if max_retries is None else max_retries,
        )
        session = Session(policy, self.session.clock) if key else self.session.with_policy(policy)
        return replace(self, session=session, connection=self.connection.with_options(headers, key))

    def for_stream(self) -> Self:
        """Return a driver that can be closed alone, and is closed with this one."""
        return replace(self, lifetime=Lifetime(self.lifetime))

    def _failure(self, error: Exception) -> Failure:
        """Return the failure of a request, which has perhaps failed because this was closed."""
        failure = self.connection.failure(error)
        return self._refusal(was_sent=failure.was_sent) or failure

    def _refusal(self, *, was_sent: bool = False) -> Failure | None:
        """Return a failure if this is closed."""
        msg = "the client is closed"
        return Failure(ClientClosed(msg), was_sent) if self.lifetime.is_over else None


class SyncDriver(_Driver[httpx2.BaseTransport, Wait]):
    """Carries out calls in the thread of the caller."""

    def run(self, call: Call[T]) -> Response[T]:
        """Return the response to a call.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        return call.response(self._exchange(call))

    def wait(self, sleep: Sleep) -> None:
        """Wait, as the user of the client wants it."""
        if self.user_wait is None:
            self.sleep(sleep.seconds)
        else:
            self.user_wait(sleep.seconds, sleep.error)

    def sleep(self, seconds: float) -> None:
        """Let the thread sleep, unless this is closed."""
        interrupted = threading.Event()
        with self.lifetime.interruptible(interrupted.set):
            self.session.clock.sleep(seconds, interrupted)

    def close(self) -> None:
        """Close all connections, and end what is under way."""
        self.lifetime.end()
        self.transport.close()

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
            return self._refusal()
        if refusal := self._refusal():
            return refusal
        try:
            return self._send(step)
        except httpx2.HTTPError as error:
            return self._failure(error)

    def _send(self, request: Request) -> Reply:
        prepared = self.connection.prepared(request)
        prepared.extensions["lifetime"] = self.lifetime
        response = self.transport.handle_request(prepared)
        content = bytearray()
        try:
            for piece in response.iter_bytes():
                content += piece
                self.connection.check_size(content)
        finally:
            response.close()
        return self.connection.reply(response, content)


class AsyncDriver(_Driver[httpx2.AsyncBaseTransport, AsyncWait]):
    """Carries out calls in the task of the caller."""

    async def run(self, call: Call[T]) -> Response[T]:
        """Return the response to a call.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        return call.response(await self._exchange(call))

    async def wait(self, sleep: Sleep) -> None:
        """Wait, as the user of the client wants it."""
        if self.user_wait is None:
            await self.sleep(sleep.seconds)
        else:
            await self.user_wait(sleep.seconds, sleep.error)

    async def sleep(self, seconds: float) -> None:
        """Let the task sleep, unless this is closed."""
        with suppress(TimeoutError):
            async with self._timeout(None):
                await self.session.clock.pause(seconds)

    async def close(self) -> None:
        """Close all connections, and end what is under way."""
        self.lifetime.end()
        await self.transport.aclose()

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
            return self._refusal()
        if refusal := self._refusal():
            return refusal
        try:
            async with self._timeout(step.timeout):
                return await self._send(step)
        except (httpx2.HTTPError, TimeoutError) as error:
            return self._failure(error)

    @asynccontextmanager
    async def _timeout(self, seconds: float | None) -> AsyncGenerator[None, None]:
        """End the block after so many seconds, or when this is closed.

        Raises:
            TimeoutError: it has not ended by itself.
        """
        import asyncio

        async with asyncio.timeout(seconds) as timeout:
            with self.lifetime.interruptible(lambda: timeout.reschedule(0)):
                yield

    async def _send(self, request: Request) -> Reply:
        prepared = self.connection.prepared(request)
        response = await self.transport.handle_async_request(prepared)
        content = bytearray()
        try:
            async for piece in response.aiter_bytes():
                content += piece
                self.connection.check_size(content)
        finally:
            await response.aclose()
        return self.connection.reply(response, content)
