"""One Lua script, run for many callers at once."""

import asyncio
from hashlib import sha1
from typing import Any, NamedTuple

from petstore.redis_client.client import RedisClient, RedisUnavailable, UnknownScript

# Bounded, so that a round trip is short whatever many processes send at once: a script runs some
# 20 µs on the server.
_MAX_BATCH = 256


class _Call(NamedTuple):
    key: str
    argument: bytes
    reply: asyncio.Future[Any]


class BatchedScript:
    """Runs a Lua script on one key. Calls made during a round trip share the next one.

    If a round trip takes longer than ``timeout`` seconds, every waiting call fails at once.
    """

    def __init__(self, client: RedisClient, text: bytes, timeout: float) -> None:
        self._client = client
        self._text = text
        self._digest = sha1(text).hexdigest()  # noqa: S324 - the name Redis gives a script
        self._timeout = timeout
        self._waiting: list[_Call] = []
        self._sender: asyncio.Task[None] | None = None

    async def run(self, key: str, argument: bytes) -> Any:
        """Return the reply of the script.

        Raises:
            RedisUnavailable: the script failed, or there was no reply.
        """
        call = _Call(key, argument, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_waiting())
        return await call.reply

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # calls of other requests in the loop's queue join
                batch = self._waiting[:_MAX_BATCH]
                del self._waiting[:_MAX_BATCH]
                await self._send(batch, "EVALSHA", self._digest)
        finally:
            self._sender = None

    async def _send(self, batch: list[_Call], command: str, script: str | bytes) -> None:
        commands = [(command, script, 1, call.key, call.argument) for call in batch]
        unknown = []
        try:
            replies = await self._client.try_each(commands, self._timeout)
        except RedisUnavailable as error:
            batch += self._waiting
            self._waiting.clear()
            replies = [error] * len(batch)
        for call, reply in zip(batch, replies, strict=True):
            if isinstance(reply, UnknownScript):
                unknown.append(call)
            elif call.reply.done():  # the caller was cancelled
                continue
            elif isinstance(reply, RedisUnavailable):
                call.reply.set_exception(RedisUnavailable(str(reply)))
            else:
                call.reply.set_result(reply)
        if unknown:  # the server restarted, or its scripts were flushed
            await self._send(unknown, "EVAL", self._text)
