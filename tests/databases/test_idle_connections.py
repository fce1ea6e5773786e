"""Idle connections that a firewall between the service and its databases ends, or forgets."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from petstore.databases import postgres_connection
from support.postgres import PostgresServer
from support.redis_server import RedisServer
from support.service import running_service
from support.silent_server import Way, way_to

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1}


@pytest.mark.parametrize("end", [Way.cut, Way.forget])
async def test_no_request_fails_after_an_idle_time(
    end: Callable[[Way], None],
    postgres: PostgresServer,
    postgres_url: str,
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with way_to(postgres.port) as database, way_to(redis.port) as limits:
        url = postgres_url.replace(str(postgres.port), str(database.entrance))
        # In between, no background work uses the connections.
        quiet: dict[str, Any] = {"key_refresh_seconds": 3600, "limits_save_seconds": 3600}
        async with running_service(url, redis=limits.url, **quiet) as service:
            token = (await service.issue()).token
            for idle, (method, path) in enumerate(2 * [("POST", "/v1/pets"), ("GET", "/v1/pets")]):
                moment = monotonic() + 31 * idle
                monkeypatch.setattr(f"{postgres_connection.__name__}.monotonic", lambda m=moment: m)
                calls = [service.request(method, path, token, json=BELLA) for _ in range(10)]
                statuses = {each.status_code for each in await asyncio.gather(*calls)}
                assert statuses <= {200, 201}
                end(database)
                if end is Way.cut:  # the kernel keeps those of Redis alive
                    end(limits)
    assert "Redis" not in caplog.text
