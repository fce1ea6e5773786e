"""Liveness and readiness."""

from pathlib import Path

import pytest

from support.service import Service, running_service

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("path", "status"), [("/healthz", "alive"), ("/readyz", "ready")])
async def test_a_healthy_service_says_so_without_a_key(
    service: Service, path: str, status: str
) -> None:
    response = await service.request("GET", path)
    assert response.status_code == 200
    assert response.json() == {"status": status}
    assert "X-RateLimit-Limit" not in response.headers
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_health_costs_nothing(service: Service) -> None:
    key = await service.issue(per_minute=5)
    for _ in range(5):
        await service.request("GET", "/healthz", key.token)
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.headers["X-RateLimit-Remaining"] == "4"


async def test_a_service_whose_redis_is_out_of_reach_is_ready_all_the_same(database: Path) -> None:
    async with running_service(database, redis="redis://127.0.0.1:1") as service:
        response = await service.request("GET", "/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})
