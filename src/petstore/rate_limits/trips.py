"""Trips to Redis or Valkey: the script of the limiter, run for several callers at once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from hashlib import sha1
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as NotConnected

from petstore.clock import Milliseconds
from petstore.rate_limits.patience import PRESSURE, patience
from petstore.rate_limits.redis_url import parse_redis_url

Reply: TypeAlias = list[Any]
Client: TypeAlias = "Redis | RedisCluster"

T = TypeVar("T")

FAULTS = (RedisError, OSError, TimeoutError)
"""What a client raises when Redis is out of reach or failing."""

_FOLDER = files("petstore.rate_limits")
_TAKE = _FOLDER.joinpath("take.lua").read_bytes()
_TAKE_DIGEST = sha1(_TAKE).hexdigest()  # noqa: S324 - what Redis calls a script by
_COUNT = _FOLDER.joinpath("processes.lua").read_text("utf-8")
_PROCESSES = "petstore:processes"
_SILENT_SECONDS = 5
# So that what many processes send at once is soon done: a script takes some 30 µs.
_LARGEST_GROUP = 32
# Nobody waits while processes are counted, so that may take longer than a trip.
_COUNTING = 5
_SILENCE = 0.2


class OutOfReach(RedisError):
    """Redis is out of reach or failing; the message says how."""


class Check(NamedTuple):
    """One run of the script: its hash and its arguments."""

    name: str
    arguments: tuple[str | int, ...]


class Heartbeat(NamedTuple):
    """How many processes there are, and the time of the server."""

    processes: int
    now: Milliseconds


class Trips:
    """Takes checks to Redis: those that come while one trip is under way share the next.

    Redis is out of reach once it has been silent for ``seconds`` (see ``patience``). Then all who
    wait are told so at once.
    """

    def __init__(self, client: Client, seconds: float, pressure: Path = PRESSURE) -> None:
        self._client = client
        self._seconds = seconds
        self._pressure = pressure
        self._waiting: list[tuple[Check, asyncio.Future[Reply]]] = []
        self._traveller: asyncio.Task[None] | None = None
        self._process = uuid4().hex
        self._failed: str | None = None

    async def run(self, check: Check) -> Reply:
        """Return what the script replies.

        Raises:
            OutOfReach: there is no reply, or it is an error.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((check, reply))
        if self._traveller is None:
            self._traveller = asyncio.create_task(self._travel())
        return await reply

    async def count_processes(self) -> Heartbeat:
        """Say that this process is there, and return how many have said so of late.

        After a failed check it returns only if the server of that hash takes writes again.

        Raises:
            OutOfReach: Redis is out of reach or failing.
        """
        try:
            async with self._patience(_COUNTING):
                if self._failed is not None:
                    # A cluster is then asked anew who has which hash.
                    await disconnect(self._client)
                    await self._count(f"{_PROCESSES}:{self._failed}")
                heartbeat = await self._count(_PROCESSES)
        except Exception as error:
            raise _out_of_reach(error) from error
        self._failed = None
        return heartbeat

    async def close(self) -> None:
        """Say that this process is gone, and disconnect."""
        with suppress(Exception):
            async with self._patience():
                await self._client.zrem(_PROCESSES, self._process)
        with suppress(Exception):
            async with self._patience():
                await disconnect(self._client)

    def _patience(self, times: int = 1) -> AbstractAsyncContextManager[None]:
        return patience(times * self._seconds, self._pressure)

    async def _count(self, name: str) -> Heartbeat:
        arguments = (1, name, self._process, _SILENT_SECONDS)
        return Heartbeat(*await _retried(lambda: self._client.eval(_COUNT, *arguments)))

    async def _travel(self) -> None:
        try:
            while self._waiting:
                # Requests that are ready to be judged come along.
                await asyncio.sleep(0)
                group = self._waiting[:_LARGEST_GROUP]
                del self._waiting[:_LARGEST_GROUP]
                await self._trip(group)
        finally:
            self._traveller = None

    async def _trip(self, group: list[tuple[Check, asyncio.Future[Reply]]]) -> None:
        replies: list[Any]
        try:
            async with self._patience():
                checks = [check for check, _ in group]
                replies = await _retried(lambda: self._send(checks))
        except Exception as error:  # noqa: BLE001 - whatever the client raises, nobody waits for ever
            group += self._waiting
            self._waiting.clear()
            replies = [error] * len(group)
        for (check, future), reply in zip(group, replies, strict=True):
            if isinstance(reply, Exception):
                self._failed = check.name
            if future.done():  # its caller has gone
                continue
            if isinstance(reply, Exception):
                future.set_exception(_out_of_reach(reply))
            else:
                future.set_result(reply)

    async def _send(self, checks: list[Check]) -> list[Any]:
        replies = await self._execute("EVALSHA", _TAKE_DIGEST, checks)
        unknown = [n for n, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            # A fresh server, or SCRIPT FLUSH: the text itself makes it known again.
            again = await self._execute("EVAL", _TAKE, [checks[n] for n in unknown])
            for n, reply in zip(unknown, again, strict=True):
                replies[n] = reply
        return replies

    async def _execute(self, command: str, script: str | bytes, checks: list[Check]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for check in checks:
            pipeline.execute_command(command, script, 1, check.name, *check.arguments)
        return await pipeline.execute(raise_on_error=False)


def connect(url: str, seconds: float | None) -> Client:
    """Return a client for ``url`` (see ``parse_redis_url``), that never tries twice by itself.

    It waits ``seconds`` at most for each answer. With ``None`` that is up to its user; but of a
    cluster and of Sentinels it asks several, and passes over one that is silent for long.

    Raises:
        ValueError: the URL names no place.
    """
    place = parse_redis_url(url)
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        **place.options,
    }
    several = {"socket_timeout": seconds or _SILENCE, "socket_connect_timeout": seconds or _SILENCE}
    if place.kind == "sentinel":
        sentinel = Sentinel(place.hosts, sentinel_kwargs=several)  # type: ignore[no-untyped-call]
        master: Redis = sentinel.master_for(place.name, **options)
        return master
    if place.kind == "cluster":
        nodes = [ClusterNode(*host) for host in place.hosts]
        return RedisCluster(startup_nodes=nodes, **options | several)
    ((host, port),) = place.hosts
    return Redis(host=host, port=port, **options)


async def disconnect(client: Client) -> None:
    """Close every connection; what is asked next makes new ones."""
    await client.aclose()
    pool = getattr(client, "connection_pool", None)
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


async def ping(url: str) -> None:
    """Return if Redis answers at ``url``.

    Raises:
        PermissionError: it does not know the user or the password.
        ConnectionError: it does not answer.
        ValueError: the URL names no place.
    """
    client = connect(url, _SILENCE)
    try:
        await client.ping()
    except AuthenticationError as error:
        msg = f"redis: {error}"
        raise PermissionError(msg) from None
    except Exception as error:
        msg = f"redis: {error}"
        raise ConnectionError(msg) from error
    finally:
        await disconnect(client)


async def refuse_wrong_password(url: str) -> None:
    """Return unless Redis answers at ``url`` and does not know the user or the password.

    Raises:
        PermissionError: it does not know them.
        ValueError: the URL names no place.
    """
    with suppress(ConnectionError):  # it may be there later
        await ping(url)


async def _retried(action: Callable[[], Awaitable[T]]) -> T:
    """Do it again if the connection was cut, perhaps long ago: another one may be had.

    What was cut off may have been done, and count twice; never is too much admitted.
    """
    try:
        return await action()
    except NotConnected:
        return await action()


def _out_of_reach(error: Exception) -> OutOfReach:
    if isinstance(error, TimeoutError):
        return OutOfReach("no answer in time")
    return OutOfReach(str(error) or type(error).__name__)
