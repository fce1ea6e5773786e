"""One Lua script, run for many callers at once."""

from collections.abc import Sequence
from hashlib import sha1
from itertools import chain
from typing import Any, TypeAlias

from petstore.coalescing import Batches
from petstore.redis_client.client import KeysApart, RedisClient, UnknownScript

# Bounded, so that a round trip is short whatever many processes send at once: a script runs some
# 20 µs on the server for each key.
_MAX_BATCH = 256
# While a command runs, the server serves nobody else.
_KEYS_AT_ONCE = 32

_Call: TypeAlias = tuple[str, bytes]
"""A key and an argument."""


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
        self._keys_at_once = 1 if client.is_cluster else _KEYS_AT_ONCE
        self._calls: Batches[_Call, Any] = Batches(self._run, _MAX_BATCH)

    async def run(self, key: str, argument: bytes) -> Any:
        """Return the result of the script for a key.

        Raises:
            RedisUnavailable: the script failed, or there was no reply.
        """
        return await self._calls.call((key, argument))

    async def _run(self, calls: Sequence[_Call]) -> Sequence[Any]:
        size = self._keys_at_once
        groups = [calls[start : start + size] for start in range(0, len(calls), size)]
        replies = await self._send(groups, "EVALSHA", self._digest)
        unknown = [n for n, reply in enumerate(replies) if isinstance(reply, UnknownScript)]
        if unknown:  # the server restarted, or its scripts were flushed
            again = await self._send([groups[n] for n in unknown], "EVAL", self._text)
            for n, reply in zip(unknown, again, strict=True):
                replies[n] = reply
        if any(isinstance(reply, KeysApart) for reply in replies):
            self._keys_at_once = 1  # behind a proxy there is a cluster
        return [*chain.from_iterable(map(_results, groups, replies))]

    async def _send(
        self, groups: Sequence[Sequence[_Call]], command: str, script: str | bytes
    ) -> list[Any]:
        commands = []
        for group in groups:
            keys, arguments = zip(*group, strict=True)
            commands.append((command, script, len(keys), *keys, *arguments))
        return await self._client.try_each(commands, self._timeout)


def _results(group: Sequence[_Call], reply: Any) -> Sequence[Any]:
    """Return the result for each key, or the error that all of them have."""
    return [reply] * len(group) if isinstance(reply, Exception) else reply
