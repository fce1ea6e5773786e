"""Responses to the requests of each key are counted by their status."""

from pathlib import Path

import pytest

from petstore.usage.operations import list_statuses
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import signed_in

pytestmark = pytest.mark.anyio


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
    assert await counted(service, key.id) == {200: 3, 403: 1, 404: 1, 405: 1}
    for _ in range(60):
        await service.request("GET", "/v1/pets", key.token)
    assert (await counted(service, key.id))[429] == 5


async def test_refusals_outside_the_networks_of_a_key_are_counted(service: Service) -> None:
    key = await service.issue(allowed_networks=("203.0.113.0/24",))
    await service.request("GET", "/v1/pets", key.token)
    assert await counted(service, key.id) == {403: 1}


async def test_the_console_and_requests_without_a_key_are_not_counted(service: Service) -> None:
    person = await signed_in(service)
    for _ in range(3):
        await person.get("/pets")
        await service.request("GET", "/docs")
        await service.request("GET", "/v1/pets")
    assert await counted(service, person.key_id) == {}


async def test_the_counts_survive_a_restart(database: Path, clock: ManualClock) -> None:
    async with running_service(database, clock) as service:
        key = await service.issue()
        await service.request("GET", "/v1/pets", key.token)
    async with running_service(database, clock) as service:
        await service.request("GET", "/v1/pets", key.token)
        assert await counted(service, key.id) == {200: 2}
