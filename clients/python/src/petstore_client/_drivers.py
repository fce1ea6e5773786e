"""The two that do I/O: they carry out the steps of a ``Session``, with threads or with tasks."""

import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from time import sleep
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast
from uuid import uuid4

import httpx2

from petstore_client._calls import MAX_PAGE, Call, Reply, Response
from petstore_client._connection import Connection
from petstore_client._errors import ClientClosed, PetstoreError
from petstore_client._retries import Failure, Outcome, Session, Sleep, Step

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
    closed: threading.Event = field(default_factory=threading.Event)

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
        session = Session(policy) if key else self.session.with_policy(policy)
        return replace(self, session=session, connection=self.connection.with_options(headers, key))

    def steps(self, call: Call[T]) -> Generator[Step, Outcome, Response[T]]:
        """Carry out a call, and return its response.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        if call.is_batch and len(cast("list[object]", call.body)) > MAX_PAGE:
            return (yield from self._slices(call))
        request = self.connection.request(call, self.session.policy.timeout)
        return call.response((yield from self.session.exchange(call, request)))

    def _slices(self, call: Call[Any]) -> Generator[Step, Outcome, Response[Any]]:
        """Carry out a batch slice by slice; return the last response with all values.

        Raises:
            PetstoreError: a slice failed. Those before it are done, and with the same key again.
        """
        key = str(uuid4()) if call.idempotency_key is None else call.idempotency_key
        values: list[Any] = []
        responses: list[Response[Any]] = []
        for each in call.slices(key):
            try:
                responses.append((yield from self.steps(each)))
            except PetstoreError as error:
                error.idempotency_key = key
                raise
            values += responses[-1].value
        return replace(responses[-1], value=values)

    def _failure(self, error: httpx2.HTTPError) -> Failure:
        """Return the failure of a request, which has perhaps failed because this was closed."""
        failure, was_sent = self.connection.failure(error)
        return self._refusal(was_sent=was_sent) or Failure(failure, was_sent)

    def _refusal(self, *, was_sent: bool = False) -> Failure | None:
        """Return a failure if this is closed."""
        msg = "the client is closed"
        return Failure(ClientClosed(msg), was_sent) if self.closed.is_set() else None


class SyncDriver(_Driver[httpx2.BaseTransport, Wait]):
    """Carries out calls in the thread of the caller."""

    def run(self, call: Call[T]) -> Response[T]:
        """Return the response to a call.

        Raises:
            PetstoreError: there is none, or it is an error.
        """
        return self.do(self.steps(call))

    def do(self, steps: Generator[Step, Outcome, T]) -> T:
        """Do one step after the other, and return what they lead to."""
        outcome: Outcome = None
        try:
            while True:
                outcome = self._do(steps.send(outcome))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            steps.close()

    def close(self) -> None:
        """Close all connections."""
        self.closed.set()
        self.transport.close()

    def _do(self, step: Step) -> Outcome:
        if isinstance(step, Sleep):
            if step.is_silent or self.user_wait is None:
                sleep(step.seconds)
            else:
                self.user_wait(step.seconds, step.error)
            return self._refusal()
        if refusal := self._refusal():
            return refusal
        try:
            return self._send(step)
        except httpx2.HTTPError as error:
            return self._failure(error)

    def _send(self, request: httpx2.Request) -> Reply:
        response = self.transport.handle_request(request)
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
        return await self.do(self.steps(call))

    async def do(self, steps: Generator[Step, Outcome, T]) -> T:
        """Do one step after the other, and return what they lead to."""
        outcome: Outcome = None
        try:
            while True:
                outcome = await self._do(steps.send(outcome))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            steps.close()

    async def close(self) -> None:
        """Close all connections."""
        self.closed.set()
        await self.transport.aclose()

    async def _do(self, step: Step) -> Outcome:
        if isinstance(step, Sleep):
            if step.is_silent or self.user_wait is None:
                await pause(step.seconds)
            else:
                await self.user_wait(step.seconds, step.error)
            return self._refusal()
        if refusal := self._refusal():
            return refusal
        try:
            return await self._send(step)
        except httpx2.HTTPError as error:
            return self._failure(error)

    async def _send(self, request: httpx2.Request) -> Reply:
        response = await self.transport.handle_async_request(request)
        content = bytearray()
        try:
            async for piece in response.aiter_bytes():
                content += piece
                self.connection.check_size(content)
        finally:
            await response.aclose()
        return self.connection.reply(response, content)


async def pause(seconds: float) -> None:
    """Let the task sleep."""
    import asyncio

    await asyncio.sleep(seconds)
