"""An application between a stop signal and its end."""

import pytest

from support.service import Service

pytestmark = pytest.mark.anyio


async def test_a_draining_process_is_alive_but_not_ready(service: Service) -> None:
    service.app.shut_down()
    ready = await service.request("GET", "/readyz")
    assert (ready.status_code, ready.json()) == (503, {"status": "stopping"})
    live = await service.request("GET", "/healthz")
    assert (live.status_code, live.json()) == (200, {"status": "alive"})


async def test_a_draining_process_closes_the_connection_with_every_response(
    service: Service,
) -> None:
    key = await service.issue()
    pet = {"name": "Bella", "categoryId": 1}
    requests = [
        ("GET", "/v1/pets", 200),
        ("HEAD", "/docs", 307),
        ("POST", "/v1/pets", 201),
        ("DELETE", "/v1/pets/1", 204),
        ("GET", "/v1/pets/1", 404),
        ("GET", "/nowhere", 404),
    ]
    before = await service.request("GET", "/v1/pets", key.token)
    assert "Connection" not in before.headers
    service.app.shut_down()
    for method, path, status in requests:
        body = pet if method == "POST" else None
        response = await service.request(method, path, key.token, json=body)
        assert response.status_code == status
        assert response.headers.get_list("Connection") == ["close"]
