"""Liveness and readiness."""

import pytest

from support.service import Service

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
