"""One Lua script, run for many callers at once."""

from collections.abc import Sequence
from hashlib import sha1
from typing import Any, TypeAlias

from petstore.coalescing import Batches
from petstore.redis_client.client import RedisClient, UnknownScript

# Bounded, so that a round trip is short whatever many processes send at once: a script runs some
# 20 µs on the server.
_MAX_BATCH = 256


_Call: TypeAlias = tuple[str, bytes]
"""A key and an argument."""


class BatchedScript:
    """Runs a Lua script on one key. Calls made during a round trip share the next one.

    If a round trip takes longer than ``timeout`` seconds, every waiting call fails at once.
    """

    def __init__(self, client: RedisClient, text: bytes, timeout: float) -> None:
        self._client = client
        self._text = text
        self._digest = sha1(text).hexdigest()  # noqa: S324 - the name Redis gives a script
        self._timeout = timeout
        self._calls: Batches[_Call, Any] = Batches(self._run, _MAX_BATCH)

    async def run(self, key: str, argument: bytes) -> Any:
        """Return the reply of the script.

        Raises:
            RedisUnavailable: the script failed, or there was no reply.
        """
        return await self._calls.call((key, argument))

    async def _run(self, calls: Sequence[_Call]) -> Sequence[Any]:
        replies = await self._send(calls, "EVALSHA", self._digest)
        unknown = [n for n, reply in enumerate(replies) if isinstance(reply, UnknownScript)]
        if unknown:  # the server restarted, or its scripts were flushed
            again = await self._send([calls[n] for n in unknown], "EVAL", self._text)
            for n, reply in zip(unknown, again, strict=True):
                replies[n] = reply
        return replies

    async def _send(self, calls: Sequence[_Call], command: str, script: str | bytes) -> list[Any]:
        commands = [(command, script, 1, key, argument) for key, argument in calls]
        return await self._client.try_each(commands, self._timeout)
