"""What a limiter logs while its Redis is away, on a machine where Redis may be late at any time."""

from itertools import cycle, islice
from typing import Any

import pytest

from petstore.limits.redis import RedisLimiter
from support.redis_limiters import TimedClient, said
from support.waiting import eventually

LOST, FOUND = "Redis is unavailable;", "Redis is back;"


class HurriedClient(TimedClient):
    """Waits only ``hurried`` seconds for a reply while that is set: the server hangs then."""

    hurried: float | None = None

    async def try_each(self, commands: Any, seconds: float) -> list[Any]:
        """Send commands in one round trip."""
        return await super().try_each(commands, self.hurried or seconds)


async def comes_back(limiter: RedisLimiter, caplog: pytest.LogCaptureFixture) -> None:
    """Wait until the limiter uses Redis again, and check that it told each change once."""

    async def is_back() -> bool:
        await limiter.heartbeat()
        return said(caplog)[-1] == FOUND

    await eventually(is_back)
    words = said(caplog)
    assert words == [*islice(cycle([LOST, FOUND]), len(words))]
