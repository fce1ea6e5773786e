"""Limiters on a real Redis server, by a clock that only the test moves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import msgpack

from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules, Budget
from petstore.limits.redis import RedisLimiter
from petstore.redis_client import Command, RedisClient
from support.manual_clock import ManualClock

PATIENT = 10.0
"""Seconds to wait for Redis where nothing fails: a busy machine is no fault."""

OF_ADDRESS = Budget("address", "this address", 2)


class TimedClient(RedisClient):
    """A client that makes ``clock`` the clock of the server."""

    def __init__(self, url: str, clock: ManualClock) -> None:
        super().__init__(url)
        self._clock = clock

    async def try_each(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Judge at the time of the clock, and tell that time in heartbeats."""
        replies = await super().try_each([self._timed(command) for command in commands], seconds)
        return [
            [reply[0], self._clock()] if isinstance(reply, list) and not _judges(command) else reply
            for command, reply in zip(commands, replies, strict=True)
        ]

    def _timed(self, command: Command) -> Command:
        if not _judges(command):
            return command
        # A name, a script, the number of keys, and as many keys and arguments.
        first = len(command) - int(command[2])
        now = {"now": self._clock()}
        judged: list[Any] = [*command[first:]]
        return (*command[:first], *(msgpack.encode(msgpack.decode(each) | now) for each in judged))


def _judges(command: Command) -> bool:
    return isinstance(command[-1], bytes)


@asynccontextmanager
async def redis_limiter(
    url: str,
    store: StoredRateLimits,
    clock: ManualClock,
    *,
    rules: BanRules | None = None,
    seconds: float = PATIENT,
    processes: int = 1,
    client: RedisClient | None = None,
) -> AsyncIterator[RedisLimiter]:
    """Give the limiter of one process; the server has ``clock`` unless ``client`` has another."""
    client = client or TimedClient(url, clock)
    limiter = RedisLimiter(client, store, clock, rules or BanRules(), processes, seconds)
    try:
        yield limiter
    finally:
        await limiter.close()


def api_key(key_id: int, per_minute: int | None = None, per_day: int | None = None) -> Caller:
    return Caller(
        name="test",
        plan="enterprise",
        per_minute=per_minute,
        per_day=per_day,
        id=key_id,
        environment="production",
        created_at=0,
    )


def said(caplog: Any) -> list[str]:
    return [" ".join(record.getMessage().split()[:3]) for record in caplog.records]
