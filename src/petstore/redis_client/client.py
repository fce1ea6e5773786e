"""The adapter of redis-py: pipelines with a timeout, and errors of our own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ClusterCrossSlotError, NoScriptError
from redis.exceptions import ConnectionError as ConnectionLost

from petstore.redis_client.url import parse_redis_url

Command: TypeAlias = tuple[str | bytes | int, ...]

_CHECK_TIMEOUT = 0.3
_CLOSE_TIMEOUT = 1
_NODE_TIMEOUT = 0.3
_SLICES = 7


class RedisUnavailable(Exception):
    """Redis is unreachable or failing. The message says how and holds no password."""


class CredentialsRefused(RedisUnavailable):
    """Redis does not know the user or the password."""


class UnknownScript(RedisUnavailable):
    """The server has not seen the script of an EVALSHA since it started."""


class KeysApart(RedisUnavailable):
    """A command has keys of several slots of a cluster."""


class RedisClient:
    """A client for the Redis, the cluster or the Sentinels at ``url``.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str) -> None:
        self._client = _connect(url)

    @property
    def is_cluster(self) -> bool:
        """Whether a command may only have keys of one slot."""
        return isinstance(self._client, RedisCluster)

    async def execute(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Return the replies to ``commands``, sent in one round trip.

        Raises:
            RedisUnavailable: a command failed, or its reply took longer than ``seconds``.
        """
        replies = await self.try_each(commands, seconds)
        for reply in replies:
            if isinstance(reply, RedisUnavailable):
                raise type(reply)(str(reply))
        return replies

    async def try_each(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Return for each command its reply, or a ``RedisUnavailable`` for an error reply.

        If the connection was cut, the commands are sent again once: they may run twice.

        Raises:
            RedisUnavailable: there are no replies within ``seconds``.
        """
        try:
            async with _timeout(seconds):
                try:
                    replies = await self._send(commands)
                except ConnectionLost:  # perhaps long ago
                    replies = await self._send(commands)
        except Exception as error:
            raise _adapted(error) from error
        return [_adapted(reply) if isinstance(reply, Exception) else reply for reply in replies]

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return replies

    async def close(self) -> None:
        """Close every connection. The next command opens new ones."""
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._client.aclose()
                pool = getattr(self._client, "connection_pool", None)
                if isinstance(pool, SentinelConnectionPool):
                    for sentinel in pool.sentinel_manager.sentinels:
                        await sentinel.aclose()


async def check_redis(url: str) -> None:
    """Return if Redis responds at ``url``.

    Raises:
        PermissionError: it refuses the user or the password.
        ConnectionError: it is unavailable.
        ValueError: the URL is invalid.
    """
    client = RedisClient(url)
    try:
        await client.execute([("PING",)], _CHECK_TIMEOUT)
    except RedisUnavailable as error:
        msg = f"redis: {error}"
        is_refusal = isinstance(error, CredentialsRefused)
        raise (PermissionError if is_refusal else ConnectionError)(msg) from error
    finally:
        await client.close()


def _connect(url: str) -> Redis | RedisCluster:
    """Return redis-py's client, which never retries by itself.

    The caller sets the timeout, except between nodes: a silent Sentinel or cluster node is skipped.
    """
    kind, hosts, service, options = parse_redis_url(url)
    options |= {"protocol": 2, "retry": Retry(NoBackoff(), 0)}
    node: dict[str, Any] = dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), _NODE_TIMEOUT
    )
    if kind == "cluster":
        nodes = [ClusterNode(*host) for host in hosts]
        return RedisCluster(startup_nodes=nodes, **options, **node)
    options |= dict.fromkeys(node)
    if kind == "sentinel":
        sentinel = Sentinel(hosts, sentinel_kwargs=node)  # type: ignore[no-untyped-call]
        master: Redis = sentinel.master_for(service, **options)
        return master
    ((host, port),) = hosts
    return Redis(host=host, port=port, **options)


@asynccontextmanager
async def _timeout(seconds: float) -> AsyncIterator[None]:
    """End the block with ``TimeoutError`` after ``seconds``.

    The time runs in slices, and the process reads between them. While it is too busy to read, the
    next slice does not begin, so a late process does not take its own delay for that of Redis.
    """
    loop = asyncio.get_running_loop()
    left, length = _SLICES, seconds / _SLICES
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def end_slice() -> None:
            nonlocal left, timer
            left -= 1
            if left:
                timer = loop.call_later(length, end_slice)
            else:
                limit.reschedule(loop.time())

        timer = loop.call_later(length, end_slice)
        try:
            yield
        finally:
            timer.cancel()


def _adapted(error: Exception) -> RedisUnavailable:
    text = str(error) or type(error).__name__
    if isinstance(error, NoScriptError):
        return UnknownScript(text)
    if isinstance(error, ClusterCrossSlotError):
        return KeysApart(text)
    if isinstance(error, AuthenticationError):
        return CredentialsRefused(text)
    return RedisUnavailable("no response in time" if isinstance(error, TimeoutError) else text)
