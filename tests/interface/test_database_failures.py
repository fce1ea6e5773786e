"""The database out of reach: never a false 201, reads where they can, recovery by itself."""

import asyncio
from pathlib import Path

import apsw
import pytest

from support.error_body import assert_error
from support.service import Service, running_service
from support.stores import locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1}


def destroy(database: Path) -> None:
    """Overwrite ``database`` while it is in use, so that its readers notice."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(30_000)  # the service may be saving just now
    connection.pragma("wal_checkpoint(truncate)")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO pets (name, category_id) VALUES ('last', 1)")
    with database.open("r+b") as file:
        file.write(b"\xff" * database.stat().st_size)
    connection.execute("COMMIT")
    connection.close()


async def test_reads_succeed_while_the_database_is_locked(database: Path) -> None:
    async with running_service(database) as service:
        key = await service.issue()
        await service.request("POST", "/v1/pets", key.token, json=BELLA)
        fresh = await service.issue()
        with locked(database):
            post = service.request("POST", "/v1/pets", key.token, json=BELLA)
            waiting = asyncio.create_task(post)
            for path in ("/v1/pets", "/v1/pets/1", "/v1/usage", "/readyz"):
                assert (await service.request("GET", path, fresh.token)).status_code == 200
            assert not waiting.done()
        assert (await waiting).status_code == 201


async def test_a_change_that_got_503_is_not_stored_and_later_ones_are(
    service: Service, database: Path
) -> None:
    key = await service.issue()
    with locked(database, service.store):
        await asyncio.gather(
            *(service.request("POST", "/v1/pets", key.token, json=BELLA) for _ in range(5))
        )
    response = await service.request("POST", "/v1/pets", key.token, json=BELLA)
    assert response.status_code == 201
    listed = await service.request("GET", "/v1/pets", key.token)
    assert listed.json() == [response.json()]


async def test_counts_kept_while_the_database_was_locked_are_saved(
    service: Service, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = await service.issue()
    with locked(database, service.store):
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
        await eventually(lambda: "counts not saved" in caplog.text)
    connection = apsw.Connection(str(database))
    await eventually(lambda: connection.execute("SELECT day_used FROM rate_limits").get == 3)
    connection.close()


async def test_only_operations_that_need_a_failing_database_get_503(
    service: Service, database: Path
) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json=BELLA)
    await service.app.services.keys.refresh()  # or a later one could forget the key
    await service.request("GET", "/v1/pets", key.token)
    destroy(database)
    for method, path in [
        *(("GET", path) for path in ("/v1/pets", "/v1/pets/1", "/v1/usage", "/readyz")),
        ("POST", "/v1/pets"),
    ]:
        response = await service.request(method, path, key.token, json=BELLA)
        assert_error(response, 503, "service_unavailable")
        assert response.headers.get_list("Retry-After") == ["1"]
        assert str(database) not in response.text
    assert (await service.request("GET", "/healthz")).status_code == 200
    assert (await service.request("GET", "/v1/openapi.json")).status_code == 200
    assert_error(await service.request("GET", "/v1/pets"), 401, "missing_api_key")
    assert_error(await service.request("GET", "/v1/x", key.token), 404, "not_found")


async def test_a_failing_database_makes_an_uncached_key_neither_valid_nor_invalid(
    database: Path,
) -> None:
    """A token that it could not look up is not taken for made up: it uses up no look-up."""
    async with running_service(database, anonymous_per_minute=1) as service:
        key = await service.issue()
        destroy(database)
        for _ in range(3):
            response = await service.request("GET", "/v1/pets", key.token)
            assert_error(response, 503, "service_unavailable")
            assert response.headers["X-RateLimit-Limit"] == "1"
