"""All the wiring: the service put together, started and stopped."""

import re
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from petstore.app import chores_of
from petstore.cli.serve import announce
from petstore.clock import DAY
from petstore.databases.contract import Statement
from petstore.errors import Unavailable
from petstore.interface.bodies import BodyReader
from petstore.interface.documentation import Documentation
from petstore.settings import Settings
from support.bare_app import bare_app, fields
from support.keys import revoke
from support.service import running_service
from support.stores import do, locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_a_missing_database_stops_the_start(database: Path) -> None:
    bare = bare_app(database)
    database.unlink()
    with pytest.raises(Unavailable):
        await bare.app.lifespan().__aenter__()


async def test_old_rows_are_deleted_in_the_background(database: Path) -> None:
    async with running_service(database, event_days=8, history_days=31) as service:
        await service.issue("free")
        services = service.app.services
        today = service.clock() // DAY
        event = "INSERT INTO events (id, at, type, resource, data) VALUES (?1, ?2, '', '', '')"
        for days in (32, 31, 9, 8):
            await services.store.write(do("INSERT INTO usage VALUES (1, ?1, 5)", today - days))
            moment = service.clock() - days * DAY
            await services.store.write(do(event, f"evt_{days}", moment))
        chores = chores_of(service.settings, services, BodyReader(1024, 1))
        (prune,) = (chore for chore in chores if chore.failure == "old records not deleted")
        await prune.action()
        used = await services.store.read(Statement("SELECT day FROM usage ORDER BY day"))
        events = await services.store.read(Statement("SELECT id FROM events WHERE key_id IS NULL"))
    assert used == [(today - 31,), (today - 9,), (today - 8,)]
    assert events == [("evt_8",)]


async def test_old_buyers_are_forgotten_in_the_background(database: Path) -> None:
    async with running_service(database, buyer_days=30) as service:
        services = service.app.services
        insert = (
            "INSERT INTO orders (pet_id, status, placed_at, delivered_at, buyer, buyer_key)"
            " VALUES (1, 'delivered', ?1, ?1, 'Jane', 'jane')"
        )
        for days in (29, 31):
            await services.store.write(do(insert, service.clock() - days * DAY))
        chores = chores_of(service.settings, services, BodyReader(1024, 1))
        (forget,) = (chore for chore in chores if chore.failure.startswith("old buyers"))
        await forget.action()
        select = Statement("SELECT id FROM orders WHERE buyer IS NOT NULL")
        assert await services.store.read(select) == [(1,)]


async def test_key_notices_are_recorded_from_saved_counts(database: Path) -> None:
    async with running_service(database) as service:
        await service.issue(expires_in=3600)
        services = service.app.services
        chores = chores_of(service.settings, services, BodyReader(1024, 1))
        (tell,) = (chore for chore in chores if chore.failure == "cannot record key notices")
        await tell.action()
        events = await service.store.read(Statement("SELECT type FROM events WHERE key_id > 0"))
    assert events == [("key.expiring",)]


async def test_a_stop_while_the_database_is_locked_is_logged_and_ends(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as opened:
        async with running_service(database, limits_save_seconds=60) as service:
            key = await service.issue()
            await service.request("GET", "/v1/pets", key.token)
            opened.enter_context(locked(database, service.store))
    logged = [record.getMessage() for record in caplog.records if record.name != "httpx"]
    # The store and SQLite wait equally long; either may be the first to say so.
    reason = "the database (did not confirm the change in time|is not available: .*)"
    assert [bool(re.fullmatch(f"counts not saved: {reason}", line)) for line in logged] == [
        True
    ] * 2


async def test_the_log_is_complete_after_the_stop(database: Path) -> None:
    async with running_service(database) as service:
        for _ in range(100):
            await service.request("GET", "/docs")
    assert service.log.getvalue().count(b"\n") == 100


async def test_background_work_survives_an_unexpected_error(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(database) as service:
        key = await service.issue()
        other = apsw.Connection(str(database))
        other.execute("ALTER TABLE api_key_revision RENAME TO mislaid")
        await eventually(lambda: "cannot refresh the API key cache" in caplog.text)
        other.execute("ALTER TABLE mislaid RENAME TO api_key_revision")
        other.close()
        assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200
        await revoke(service.store, service.clock, key.id)
        await service.status_becomes(key.token, 401)


async def test_the_settings_take_effect_in_the_service(database: Path) -> None:
    bare = bare_app(database, anonymous_per_minute=7)
    async with bare.app.lifespan():
        response = await bare.call("GET", b"/v1/pets", [])
    assert (b"x-ratelimit-limit", b"7") in fields(response)


async def test_a_service_without_built_docs_serves_all_the_rest(
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("app", "interface.documentation"):
        monkeypatch.setattr(f"petstore.{module}.Documentation", lambda: Documentation(tmp_path))
    async with running_service(database) as service:
        statuses = [
            (await service.client.get(path)).status_code for path in ("/", "/docs/", "/readyz")
        ]
    assert statuses == [307, 404, 200]
    announce("http://shop.example", Settings(), None)
    assert "Docs are        not built: run `make docs`" in capsys.readouterr().out
