"""The two that do I/O: they carry out calls, with threads or with tasks.

Both run the same coroutines. Those of a ``SyncDriver`` block and never suspend, so their first step
is their last one.
"""

import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast
from uuid import uuid4

import httpx2
from httpx2 import Headers, Request

from petstore_client._calls import MAX_PAGE, Call, Reply, Response
from petstore_client._connection import Connection
from petstore_client._errors import ClientClosed, PetstoreError
from petstore_client._rate_limits import RateLimits
from petstore_client._replies import error_in
from petstore_client._retries import FAILED, Attempts, Policy, holds_up_every_call, logger

T = TypeVar("T")
Transport = TypeVar("Transport", httpx2.BaseTransport, httpx2.AsyncBaseTransport)

Wait: TypeAlias = Callable[[float, PetstoreError | None], object]
"""Waits so many seconds: because of an error or, without one, of the limits of the key."""

AsyncWait: TypeAlias = Callable[[float, PetstoreError | None], Awaitable[object]]
UserWait = TypeVar("UserWait", Wait, AsyncWait)

_PACKAGE = str(Path(__file__).parent)


class Driver(Generic[Transport, UserWait]):
    """Carries out calls by one transport, one policy and the limits of one key."""

    def __init__(
        self,
        policy: Policy,
        connection: Connection,
        transport: Transport,
        user_wait: UserWait | None,
    ) -> None:
        self.connection = connection
        self.transport: Transport = transport
        self.user_wait: UserWait | None = user_wait
        self.policy = policy
        self._closed = threading.Event()
        self._warned: dict[str, object] = {}
        self.forget_limits()

    def forget_limits(self) -> None:
        """Begin with a key whose limits nobody knows."""
        self._limits = RateLimits(self.policy.max_wait)
        # Calls that cost nothing have a limit of their own.
        self._limits_of_free_calls = RateLimits(self.policy.max_wait)

    def with_options(
        self, headers: Mapping[str, str], key: str | None, **policy: float | None
    ) -> Self:
        """Return a driver with other settings, which shares everything else with this one."""
        other = copy(self)
        given: dict[str, Any] = {name: value for name, value in policy.items() if value is not None}
        other.policy = replace(self.policy, **given)
        other.connection = self.connection.with_options(headers, key)
        if key:
            other.forget_limits()
        return other

    async def response(self, call: Call[T]) -> Response[T]:
        """Carry out a call, and return its response."""
        if call.is_batch and len(cast("list[object]", call.body)) > MAX_PAGE:
            return await self._slices(call)
        request = self.connection.request(call, self.policy.timeout)
        reply = await self._exchange(call, request)
        return Response(**vars(reply), value=call.decode(reply))

    async def _slices(self, call: Call[Any]) -> Response[Any]:
        """Carry out a batch slice by slice; return the last response with all values.

        Raises:
            PetstoreError: a slice failed. Those before it are done, and with the same key again.
        """
        key = str(uuid4()) if call.idempotency_key is None else call.idempotency_key
        try:
            responses = [await self.response(each) for each in call.slices(key)]
        except PetstoreError as error:
            error.idempotency_key = key
            raise
        return replace(responses[-1], value=[item for each in responses for item in each.value])

    async def _exchange(self, call: Call[Any], request: Request) -> Reply:
        """Send the request of ``call`` until there is an outcome; return the successful reply."""
        attempts = Attempts(call, request, self.policy)
        limits = self._limits if call.charged else self._limits_of_free_calls
        while True:
            self._require_open(attempts)
            while wait := limits.enter(monotonic(), attempts.wait_left):
                if wait.is_for_window:
                    attempts.wait_out(wait.seconds, wait.error)
                await self.sleep(wait.seconds, wait.error)
                self._require_open(attempts)
            try:
                reply = await self.send(request)
                error = error_in(reply)
                was_sent = error is not None and error.status in FAILED
            except httpx2.HTTPError as cause:
                limits.abandon()
                error, was_sent = self._failure(cause)
            except BaseException:  # interrupted, or more than any response of the service
                limits.abandon()
                raise
            else:
                self._learn(limits, call, reply, error)
                self._warn_if_deprecated(call, reply)
                if error is None:
                    return reply
            seconds = attempts.seconds_to_retry(error, was_sent=was_sent)
            if seconds > 0:
                logger.info("tries again in %.1f s: %s", seconds, error)
                await self.sleep(seconds, error)

    def _require_open(self, attempts: Attempts) -> None:
        """Give up if the client has been closed."""
        if self._closed.is_set():
            msg = "the client is closed"
            attempts.fail(ClientClosed(msg))

    def _failure(self, cause: httpx2.HTTPError) -> tuple[PetstoreError, bool]:
        """Return the failure of a request, which has perhaps failed because this was closed."""
        failure, was_sent = self.connection.failure(cause)
        msg = "the client is closed"
        return (ClientClosed(msg) if self._closed.is_set() else failure), was_sent

    def _learn(
        self, limits: RateLimits, call: Call[Any], reply: Reply, error: PetstoreError | None
    ) -> None:
        now = monotonic()
        if holds_up_every_call(error):
            limits.refuse(now, error)
        else:
            # A free call tells of the limits of the others, too.
            limits.leave(now, reply.headers if call.charged else Headers())

    def _warn_if_deprecated(self, call: Call[Any], reply: Reply) -> None:
        ours = object()  # of threads that come at the same time, the first one warns
        if (
            "Deprecation" not in reply.headers
            or self._warned.setdefault(call.operation, ours) != ours
        ):
            return
        sunset = reply.headers.get("Sunset")
        end = f" and ends on {sunset}" if sunset else ""
        msg = f"{call.operation} is deprecated{end}; update petstore-client"
        warnings.warn(msg, DeprecationWarning, stacklevel=_levels_to_caller())

    async def send(self, request: Request) -> Reply:
        """Send a request and return the whole response."""
        raise NotImplementedError

    async def sleep(self, seconds: float, *told: PetstoreError | None) -> None:
        """Wait: with an error or ``None`` to tell, as the user of the client wants it."""
        raise NotImplementedError


class SyncDriver(Driver[httpx2.BaseTransport, Wait]):
    """Carries out calls in the thread of the caller."""

    def run(self, call: Call[T]) -> Response[T]:
        """Carry out a call, and return its response."""
        return done(self.response(call))

    def value(self, call: Call[T]) -> T:
        """Carry out a call, and return what its response has."""
        return self.run(call).value

    def close(self) -> None:
        """Close all connections."""
        self._closed.set()
        self.transport.close()

    async def send(self, request: Request) -> Reply:
        """Send a request and return the whole response."""
        response = self.transport.handle_request(request)
        content = bytearray()
        try:
            for piece in response.iter_bytes():
                self.connection.add(content, piece)
        finally:
            response.close()
        return self.connection.reply(response, content)

    async def sleep(self, seconds: float, *told: PetstoreError | None) -> None:
        """Wait: with an error or ``None`` to tell, as the user of the client wants it."""
        if told and self.user_wait:
            self.user_wait(seconds, *told)
        else:
            sleep(seconds)  # noqa: ASYNC251 - it is the thread that waits


class AsyncDriver(Driver[httpx2.AsyncBaseTransport, AsyncWait]):
    """Carries out calls in the task of the caller."""

    async def run(self, call: Call[T]) -> Response[T]:
        """Carry out a call, and return its response."""
        return await self.response(call)

    async def value(self, call: Call[T]) -> T:
        """Carry out a call, and return what its response has."""
        return (await self.response(call)).value

    async def close(self) -> None:
        """Close all connections."""
        self._closed.set()
        await self.transport.aclose()

    async def send(self, request: Request) -> Reply:
        """Send a request and return the whole response."""
        response = await self.transport.handle_async_request(request)
        content = bytearray()
        try:
            async for piece in response.aiter_bytes():
                self.connection.add(content, piece)
        finally:
            await response.aclose()
        return self.connection.reply(response, content)

    async def sleep(self, seconds: float, *told: PetstoreError | None) -> None:
        """Wait: with an error or ``None`` to tell, as the user of the client wants it."""
        await (self.user_wait(seconds, *told) if told and self.user_wait else asleep(seconds))


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine of a ``SyncDriver``."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError  # pragma: no cover - it would have to suspend


async def asleep(seconds: float) -> None:
    """Let the task sleep."""
    import asyncio  # not by threads: it takes long

    await asyncio.sleep(seconds)


def _levels_to_caller() -> int:
    """Return the ``stacklevel`` of a warning of our caller that blames the first foreign frame."""
    # What the module warnings does itself.
    level, frame = 0, sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level + 1
