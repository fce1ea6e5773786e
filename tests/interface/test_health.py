"""Liveness and readiness, also while a process drains."""

import asyncio
from pathlib import Path

import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.interface.documentation import HealthPages
from support.error_body import assert_error
from support.service import Service, http_request, running_service
from support.stores import migrate

pytestmark = pytest.mark.anyio


async def test_health_checks_need_no_key_and_no_redis_and_count_against_none(
    database: Path,
) -> None:
    async with running_service(database, redis="redis://127.0.0.1:1") as service:
        key = await service.issue(per_minute=50)
        for path, status in (("/healthz", "alive"), ("/readyz", "ready")):
            for token in (key.token, None):
                response = await service.request("GET", path, token)
                assert (response.status_code, response.json()) == (200, {"status": status})
                assert "X-RateLimit-Limit" not in response.headers
                assert response.headers["X-Content-Type-Options"] == "nosniff"
        usage = await service.request("GET", "/v1/usage", key.token)
        assert usage.json()["minute"]["remaining"] == 50


class SlowStore(SqliteStore):
    """Counts how often it is checked, which takes some turns of the loop."""

    checks = 0

    async def check(self) -> None:
        self.checks += 1
        for _ in range(10):
            await asyncio.sleep(0)
        await super().check()


async def test_concurrent_health_checks_share_one_query(database: Path) -> None:
    store = SlowStore(database)
    migrate(store, database)
    await store.open()
    # Without a service, whose own checks of the files would be counted too.
    health, request = HealthPages(store), http_request("GET", b"/readyz", [])
    for times in (1, 2):
        responses = await asyncio.gather(*(health.ready(request) for _ in range(50)))
        assert {response.status for response in responses} == {200}
        assert store.checks == times
    await store.close()


async def test_all_concurrent_health_checks_report_a_missing_database(database: Path) -> None:
    async with running_service(database, store=SlowStore(database)) as service:
        database.rename(database.with_suffix(".moved"))
        requests = (service.request("GET", "/readyz") for _ in range(3))
        for response in await asyncio.gather(*requests):
            assert_error(response, 503, "service_unavailable")


async def test_a_draining_process_is_alive_but_not_ready_and_closes_each_connection(
    service: Service,
) -> None:
    key = await service.issue()
    before = await service.request("GET", "/v1/pets", key.token)
    assert "Connection" not in before.headers
    service.app.shut_down()
    for method, path, status in [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 503),
        ("GET", "/v1/pets", 200),
        ("HEAD", "/docs", 307),
        ("POST", "/v1/pets", 201),
        ("DELETE", "/v1/pets/1", 204),
        ("GET", "/v1/pets/1", 404),
        ("GET", "/nowhere", 404),
    ]:
        body = {"name": "Bella", "categoryId": 1} if method == "POST" else None
        response = await service.request(method, path, key.token, json=body)
        assert response.status_code == status
        assert response.headers.get_list("Connection") == ["close"]
        if path == "/readyz":
            assert response.json() == {"status": "stopping"}
