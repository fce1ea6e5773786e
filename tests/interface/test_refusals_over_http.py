"""Every 429 of a key is counted, by hour and operation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from petstore.clock import HOUR
from petstore.keys.store import MAX_OWN_ROTATIONS
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import signed_in

pytestmark = pytest.mark.anyio

NOON = "2026-12-01T12:00:00Z"


async def refused(service: Service, token: str) -> list[Mapping[str, Any]]:
    usage = await service.request("GET", "/v1/usage", token)
    found: list[Mapping[str, Any]] = usage.json()["refused"]
    return found


async def test_only_refusals_by_a_limit_count(service: Service) -> None:
    key = await service.issue(per_minute=4, scopes=frozenset())
    for path in ("/v1/pets", "/v1/nothing", "/v1/store/orders"):
        await service.request("GET", path, key.token)
    await service.request("GET", "/v1/pets", "not-a-key")
    assert await refused(service, key.token) == []


async def test_refusals_are_shown_by_hour_and_operation(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await service.request("GET", "/v1/pets", key.token)
    for method, path in (("GET", "/v1/pets"), ("HEAD", "/v1/pets"), ("PATCH", "/v1/pets/7")):
        await service.request(method, path, key.token)
    for path in ("/v1/nothing", "/v1/pets/1/2"):
        await service.request("GET", path, key.token)
    await service.request("PUT", "/v1/pets", key.token)
    expected = [
        {"hour": NOON, "operation": None, "requests": 3},
        {"hour": NOON, "operation": "listPets", "requests": 2},
        {"hour": NOON, "operation": "updatePet", "requests": 1},
    ]
    assert await refused(service, key.token) == expected
    service.clock.now += HOUR
    for _ in range(2):
        await service.request("GET", "/v1/pets", key.token)
    newest = {"hour": "2026-12-01T13:00:00Z", "operation": "listPets", "requests": 1}
    assert await refused(service, key.token) == [newest, *expected]


async def test_the_refusals_of_a_ban_count(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await service.request("GET", "/v1/pets", key.token)
    await service.request("GET", "/v1/pets", key.token)
    service.clock.advance(2)
    for _ in range(service.settings.ban_strikes + 5):
        await service.request("GET", "/v1/pets", key.token)
    ((row),) = await refused(service, key.token)
    assert row["requests"] == service.settings.ban_strikes + 6


async def test_refusals_of_usage_and_of_a_rotation_count(database: Path) -> None:
    async with running_service(database, usage_per_minute=1) as service:
        key = await service.issue()
        token = key.token
        for _ in range(MAX_OWN_ROTATIONS + 1):
            response = await service.request("POST", "/v1/keys/current/rotate", token)
            token = response.json().get("token", token)
        for _ in range(2):
            await service.request("GET", "/v1/usage", token)
        service.clock.advance(60)
        names = [row["operation"] for row in await refused(service, token)]
        assert names == ["getUsage", "rotateCurrentKey"]


async def test_the_console_and_requests_without_a_key_do_not_count(service: Service) -> None:
    person = await signed_in(service, per_minute=1)
    for _ in range(10):
        await person.get("/pets")
    for _ in range(301):
        await service.request("GET", "/v1/pets")
    assert await refused(service, person.token) == []


async def test_refusals_survive_a_restart(database: Path, clock: ManualClock) -> None:
    async with running_service(database, clock) as service:
        key = await service.issue(per_minute=1)
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
    async with running_service(database, clock) as service:
        (row,) = await refused(service, key.token)
        assert row["requests"] == 2
