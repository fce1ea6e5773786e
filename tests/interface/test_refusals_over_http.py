"""The refusals and the responses of a key, counted as they are shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from petstore.clock import HOUR
from petstore.keys.store import MAX_OWN_ROTATIONS
from petstore.usage.operations import list_statuses
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import signed_in

pytestmark = pytest.mark.anyio

NOON = "2026-12-01T12:00:00Z"


async def refused(service: Service, token: str) -> list[Mapping[str, Any]]:
    usage = await service.request("GET", "/v1/usage", token)
    found: list[Mapping[str, Any]] = usage.json()["refused"]
    return found


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


async def counted(service: Service, key_id: int) -> dict[int, int]:
    found = await list_statuses(service.app.services, key_id)
    return {each.status: each.requests for each in found}


async def test_responses_to_a_key_are_counted_by_status(service: Service) -> None:
    key = await service.issue(plan="free", scopes=frozenset({"pets:read"}))
    for method, path in (
        ("GET", "/v1/pets"),
        ("GET", "/v1/pets"),
        ("GET", "/v1/nothing"),
        ("PUT", "/v1/pets"),
        ("POST", "/v1/pets"),
        ("GET", "/v1/usage"),
    ):
        await service.request(method, path, key.token)
    await service.request("GET", "/v1/pets", "not-a-key")
    assert await counted(service, key.id) == {200: 3, 403: 1, 404: 1, 405: 1}
    assert await refused(service, key.token) == []  # only those by a limit are shown
    for _ in range(60):
        await service.request("GET", "/v1/pets", key.token)
    assert (await counted(service, key.id))[429] == 5
    elsewhere = await service.issue(allowed_networks=("203.0.113.0/24",))
    await service.request("GET", "/v1/pets", elsewhere.token)
    assert await counted(service, elsewhere.id) == {403: 1}


async def test_the_console_and_requests_without_a_key_are_not_counted(service: Service) -> None:
    person = await signed_in(service, per_minute=1)
    for _ in range(10):
        await person.get("/pets")
    for _ in range(301):
        await service.request("GET", "/v1/pets")
        await service.request("GET", "/docs")
    assert await counted(service, person.key_id) == {}
    assert await refused(service, person.token) == []


async def test_the_counts_survive_a_restart(database: Path, clock: ManualClock) -> None:
    async with running_service(database, clock) as service:
        key = await service.issue(per_minute=1)
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
    async with running_service(database, clock) as service:
        (row,) = await refused(service, key.token)
        assert row["requests"] == 2
        assert await counted(service, key.id) == {200: 2, 429: 2}
