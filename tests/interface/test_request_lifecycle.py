"""What holds for every request, however it ends."""

from pathlib import Path
from typing import Any

import pytest

from petstore.clock import utc_second
from petstore.keys.store import get_key
from support.service import Service, running_service

pytestmark = pytest.mark.anyio


async def test_the_seconds_to_a_reset_are_counted_from_the_decision(database: Path) -> None:
    """It is older than the headers where a body took its time; so nobody comes too early."""
    async with running_service(database) as service:
        key = await service.issue("free")

        async def slow_body() -> Any:
            yield b'{"name": "Bella",'
            service.clock.advance(90)
            yield b'"categoryId": 1}'

        response = await service.request("POST", "/v1/pets", key.token, content=slow_body())
        assert response.status_code == 201
        assert response.headers["RateLimit"].startswith('"minute";r=59;t=60, ')


async def test_a_usage_request_updates_the_last_use_of_the_key(service: Service) -> None:
    key = await service.issue("free")
    await service.request("GET", "/v1/usage", key.token)
    await service.limiter.save()
    seen = await get_key(service.store, key.id, None, service.clock)
    assert seen.last_used_at == utc_second(service.clock())
