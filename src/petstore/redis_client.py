"""The client of Redis and Valkey: the only module that imports ``redis`` and ``hiredis``."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha1
from typing import Any, TypeAlias

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import AuthenticationError, NoPermissionError, NoScriptError, ResponseError
from redis.exceptions import ConnectionError as ConnectionLost

from petstore.coalescing import Batcher
from petstore.settings import redis_url

Command: TypeAlias = tuple[str | bytes | int, ...]

_CLOSE_TIMEOUT = 1
_SLICES = 7
# Bounded, so that a round trip is short whatever many processes send at once: a script runs some
# 20 µs on the server for each key.
_MAX_BATCH = 256
# While a command runs, the server serves no other client.
_KEYS_AT_ONCE = 32

# So that a firewall does not forget an idle connection; not every system has the options.
_KEEPALIVE = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
}

_Call: TypeAlias = tuple[str, bytes]  # a key and an argument


class RedisUnavailable(Exception):
    """Redis is unreachable or failing. The message says how and holds no password."""


class CredentialsRefused(RedisUnavailable):
    """Redis does not know the user or the password, or does not let the user run a command."""


class UnknownScript(RedisUnavailable):
    """The server has not seen the script of an EVALSHA since it started."""


class RedisClient:
    """A client for the server at a valid ``url``. The caller sets the timeouts."""

    def __init__(self, url: str) -> None:
        # It only makes connections: to borrow one from it costs as much as a round trip.
        self._pool = ConnectionPool.from_url(
            redis_url(url),
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=None,
            socket_keepalive=True,
            socket_keepalive_options=_KEEPALIVE,
        )
        self._idle: list[AbstractConnection] = []

    async def execute(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        replies = await self.try_each(commands, seconds)
        for reply in replies:
            if isinstance(reply, RedisUnavailable):
                raise type(reply)(str(reply))
        return replies

    async def try_each(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Return for each command its reply, or a ``RedisUnavailable`` for an error reply."""
        try:
            async with _timeout(seconds):
                try:
                    return await self._send(commands)
                except ConnectionLost:  # perhaps long ago
                    return await self._send(commands)
        except Exception as error:
            raise _adapted(error) from error

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._idle.pop() if self._idle else self._pool.make_connection()  # type: ignore[no-untyped-call]
        packed = b"".join(map(pack_command, commands))  # type: ignore[arg-type] # takes any tuple
        try:  # it connects if it is not connected, and disconnects after an error
            await connection.send_packed_command(packed)
            return [await _reply(connection) for _ in commands]
        finally:
            self._idle.append(connection)

    async def close(self) -> None:
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await asyncio.gather(*(each.disconnect() for each in self._idle))


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return _adapted(error)


@asynccontextmanager
async def _timeout(seconds: float) -> AsyncIterator[None]:
    """End the block with ``TimeoutError`` after ``seconds``.

    The time runs in slices, and the process reads between them. While it is too busy to read, the
    next slice does not begin, so a late process does not take its own delay for Redis's.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def begin_slice(left: int) -> None:
            nonlocal timer
            if left:
                timer = loop.call_later(seconds / _SLICES, begin_slice, left - 1)
            else:
                limit.reschedule(loop.time())

        begin_slice(_SLICES)
        try:
            yield
        finally:
            timer.cancel()


def _adapted(error: Exception) -> RedisUnavailable:
    text = str(error) or type(error).__name__
    if isinstance(error, NoScriptError):
        return UnknownScript(text)
    # Redis 6 does not say which command of a script it is; Redis 7 does.
    in_script = "can't run this command" in text or "ACL failure in script" in text
    if in_script or isinstance(error, AuthenticationError | NoPermissionError):
        return CredentialsRefused(text)
    return RedisUnavailable("no response in time" if isinstance(error, TimeoutError) else text)


class BatchedScript:
    """Runs a Lua script for each key. Calls made during a round trip share the next one.

    The script gets some keys with an argument each, and returns a list with the result of each. If
    a round trip takes longer than ``timeout`` seconds, every waiting call fails at once.
    """

    def __init__(self, client: RedisClient, text: bytes, timeout: float) -> None:
        self._client = client
        self._text = text
        self._digest = sha1(text).hexdigest()  # noqa: S324 - the name Redis gives a script
        self._timeout = timeout
        self._calls: Batcher[_Call, Any] = Batcher(self._run, _MAX_BATCH)

    def run(self, key: str, argument: bytes) -> asyncio.Future[Any]:
        return self._calls.call((key, argument))

    async def _run(self, calls: Sequence[_Call]) -> Sequence[Any]:
        groups = [
            calls[start : start + _KEYS_AT_ONCE] for start in range(0, len(calls), _KEYS_AT_ONCE)
        ]
        replies = await self._send(groups, "EVALSHA", self._digest)
        unknown = [n for n, reply in enumerate(replies) if isinstance(reply, UnknownScript)]
        if unknown:  # the server restarted, or its scripts were flushed
            again = await self._send([groups[n] for n in unknown], "EVAL", self._text)
            for n, reply in zip(unknown, again, strict=True):
                replies[n] = reply
        results: list[Any] = []
        for group, reply in zip(groups, replies, strict=True):
            results += [reply] * len(group) if isinstance(reply, Exception) else reply
        return results

    async def _send(
        self, groups: Sequence[Sequence[_Call]], command: str, script: str | bytes
    ) -> list[Any]:
        pairs = [zip(*group, strict=True) for group in groups]
        commands = [(command, script, len(keys), *keys, *arguments) for keys, arguments in pairs]
        return await self._client.try_each(commands, self._timeout)
