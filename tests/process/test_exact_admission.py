"""However many requests come at once, a key is admitted exactly as often as its limit says."""

import asyncio
from collections import Counter

import pytest

from support.process import ServerProcess
from support.swarm import request_at_once

pytestmark = pytest.mark.anyio


async def test_a_limit_of_50_admits_50_of_200_concurrent_requests(server: ServerProcess) -> None:
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "50")
    responses = await request_at_once(server.port, token, 200, "/v1/pets")
    assert Counter(response.status for response in responses) == {200: 50, 429: 150}
