"""All the wiring: the service put together, started and stopped."""

import io
import logging
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.app import periodic_tasks_of, serve_settings
from petstore.cli.serve import announce
from petstore.clock import DAY
from petstore.databases.contract import Statement
from petstore.errors import Unavailable
from petstore.interface.application import Application
from petstore.interface.bodies import BodyReader
from petstore.interface.documentation import Documentation
from petstore.logs import is_for_person
from petstore.settings import Settings
from support.keys import revoke
from support.service import bare_app, running_service
from support.stores import do, locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_a_missing_database_stops_the_start(database: Path) -> None:
    bare = bare_app(database)
    database.unlink()
    with pytest.raises(Unavailable):
        await bare.app.lifespan().__aenter__()


async def test_old_rows_and_buyers_are_deleted_and_owners_of_keys_told_in_the_background(
    database: Path,
) -> None:
    async with running_service(database, event_days=8, buyer_days=30) as service:
        await service.issue(expires_in=3600)
        services = service.app.services
        tasks = periodic_tasks_of(services, BodyReader(1024, 1))
        actions = {task.failure: task.action for task in tasks}
        assert services.limiter.heartbeat in actions.values()
        today = service.clock() // DAY
        order = (
            "INSERT INTO orders (pet_id, status, placed_at, delivered_at, buyer)"
            " VALUES (1, 'delivered', ?1, ?1, 'Jane')"
        )
        for days in (29, 31):
            await services.store.write(do(order, service.clock() - days * DAY))
        event = "INSERT INTO events (id, at, type, resource, data, actor)"
        event += " VALUES (?1, ?2, '', '', '', '')"
        for days in (731, 730, 9, 8):
            await services.store.write(do("INSERT INTO usage VALUES (1, ?1, 5)", today - days))
            moment = service.clock() - days * DAY
            await services.store.write(do(event, f"evt_{days}", moment))
        await actions["old records not deleted"]()
        await actions["cannot delete expired buyer data"]()
        await actions["cannot record key notices"]()
        used = await services.store.read(Statement("SELECT day FROM usage ORDER BY day"))
        events = await services.store.read(Statement("SELECT id FROM events WHERE resource = ''"))
        buyers = await services.store.read(
            Statement("SELECT id FROM orders WHERE buyer IS NOT NULL")
        )
        told = await services.store.read(Statement("SELECT type FROM events WHERE key_id > 0"))
    assert used == [(today - 730,), (today - 9,), (today - 8,)]
    assert events == [("evt_8",)]
    assert buyers == [(1,)]
    assert told == [("key.expiring",)]


async def test_counts_are_saved_and_the_log_is_complete_at_the_stop(database: Path) -> None:
    async with running_service(database, limits_save_seconds=60) as service:
        key = await service.issue("free")
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
        connection = apsw.Connection(str(database))
        assert connection.execute("SELECT count(*) FROM rate_limits").get == 0
    assert connection.execute("SELECT day_used FROM rate_limits").get == 3
    assert service.log.getvalue().count(b"\n") == 3
    connection.close()


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


def test_a_service_can_be_created_from_settings_alone(
    database: Path,
    root: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stderr = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stderr", stderr)
    settings = Settings(database=f"sqlite:///{database}", log_format="text")
    assert isinstance(serve_settings(settings), Application)
    root.error("it fell")
    root.handlers[0].close()
    assert " error    it fell\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("log_format", "for_person"), [("text", True), ("json", False), ("auto", False)]
)
def test_the_log_has_the_configured_format_or_without_a_terminal_json(
    log_format: Any, monkeypatch: pytest.MonkeyPatch, *, for_person: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert is_for_person(log_format) is for_person


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
