"""All the wiring: the service put together, started and stopped."""

import io
import logging
import re
import shutil
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.api.application import Application
from petstore.api.bodies import BodyReader
from petstore.app import chores_of, database_of, serve_settings
from petstore.clock import DAY
from petstore.databases.contract import Statement
from petstore.errors import Unavailable
from petstore.logs import is_for_person
from petstore.settings import SettingError, Settings
from support.bare_app import bare_app, fields
from support.keys import revoke
from support.service import running_service
from support.stores import do, locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio


async def test_a_database_that_is_not_there_stops_the_start(database: Path) -> None:
    bare = bare_app(database)
    database.unlink()
    with pytest.raises(Unavailable):
        await bare.app.lifespan().__aenter__()


@pytest.mark.parametrize(
    ("address", "is_looked_after"), [("sqlite:///p.db", True), ("postgresql://db/shop", False)]
)
async def test_only_a_database_in_files_is_looked_after_each_second(
    database: Path,
    address: str,
    is_looked_after: bool,  # noqa: FBT001 - what is expected
) -> None:
    bare = bare_app(database)
    services = bare.app.services
    chores = chores_of(replace(bare.settings, database=address), services, BodyReader(1024, 1))
    assert (services.store.check in [chore.action for chore in chores]) == is_looked_after


async def test_what_is_old_is_deleted_in_the_background(database: Path) -> None:
    async with running_service(database, history_days=31) as service:
        await service.issue("free")
        services = service.app.services
        today = service.clock() // DAY
        for day in (today - 32, today - 31):
            await services.store.write(do("INSERT INTO usage VALUES (1, ?1, 5)", day))
        chores = chores_of(service.settings, services, BodyReader(1024, 1))
        (prune,) = (chore for chore in chores if chore.failure == "old records not deleted")
        await prune.action()
        rows = await services.store.read(Statement("SELECT day FROM usage"))
    assert rows == [(today - 31,)]


async def test_counts_are_saved_at_the_stop(database: Path) -> None:
    async with running_service(database, limits_save_seconds=60) as service:
        key = await service.issue("free")
        for _ in range(3):
            await service.request("GET", "/v1/pets", key.token)
        connection = apsw.Connection(str(database))
        assert connection.execute("SELECT count(*) FROM rate_limits").get == 0
    assert connection.execute("SELECT day_used FROM rate_limits").get == 3
    connection.close()


async def test_holders_of_keys_are_told_what_was_saved(database: Path) -> None:
    async with running_service(database) as service:
        await service.issue(expires_in=3600)
        services = service.app.services
        chores = chores_of(service.settings, services, BodyReader(1024, 1))
        (tell,) = (chore for chore in chores if chore.failure == "holders of keys not told")
        await tell.action()
        events = await service.store.read(Statement("SELECT type FROM events"))
    assert events == [("key.expiring",)]


async def test_counts_are_saved_while_the_service_runs(database: Path) -> None:
    async with running_service(database) as service:
        key = await service.issue("free")
        await service.request("GET", "/v1/pets", key.token)
        connection = apsw.Connection(str(database))
        await eventually(lambda: connection.execute("SELECT requests FROM usage").get == 1)
        connection.close()


async def test_a_stop_while_the_database_is_locked_says_so_and_ends(
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
    for line, unsaved in zip(sorted(logged), ["counts", "responses by status"], strict=True):
        assert re.fullmatch(f"{unsaved} not saved: {reason}", line)


async def test_the_log_is_whole_after_the_stop(database: Path) -> None:
    async with running_service(database) as service:
        for _ in range(100):
            await service.request("GET", "/docs")
    assert service.log.getvalue().count(b"\n") == 100


async def test_background_work_survives_a_fault_it_does_not_expect(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(database) as service:
        key = await service.issue()
        other = apsw.Connection(str(database))
        other.execute("ALTER TABLE api_key_revision RENAME TO mislaid")
        await eventually(lambda: "changes to keys not seen" in caplog.text)
        other.execute("ALTER TABLE mislaid RENAME TO api_key_revision")
        other.close()
        assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200
        await revoke(service.store, service.clock, key.key.id)
        await service.status_becomes(key.token, 401)


async def test_a_client_that_goes_away_within_its_body_adds_nothing(database: Path) -> None:
    bare = bare_app(database)
    async with bare.app.lifespan():
        token = (await bare.issue()).token
        headers = [(b"host", b"petstore.test"), (b"authorization", f"Bearer {token}".encode())]
        headers.append((b"content-length", b"31"))
        started = b'{"name":"Bella",'
        response = await bare.call("POST", b"/v1/pets", headers, started, is_cut_off=True)
    assert response.status == 400
    connection = apsw.Connection(str(database))
    assert connection.execute("SELECT count(*) FROM pets").get == 0
    connection.close()


async def test_the_settings_reach_the_service(database: Path) -> None:
    bare = bare_app(database, anonymous_per_minute=7)
    async with bare.app.lifespan():
        response = await bare.call("GET", b"/v1/pets", [])
    assert (b"x-ratelimit-limit", b"7") in fields(response)


def test_settings_alone_make_a_service(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    stderr = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stderr", stderr)
    assert isinstance(serve_settings(Settings(database=f"sqlite:///{database}")), Application)


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(SettingError, match="database: expected sqlite:///"):
        database_of(Settings(database="mysql:///x"))


@pytest.mark.parametrize(("log_format", "for_person"), [("text", True), ("json", False)])
def test_the_log_takes_the_form_that_was_set(log_format: Any, *, for_person: bool) -> None:
    assert is_for_person(log_format) is for_person


def test_without_a_terminal_the_log_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not is_for_person("auto")


async def test_a_deleted_log_is_recovered_without_a_write(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(database) as service:
        await service.issue()
        database.with_name("petstore.db-wal").unlink()
        await eventually(lambda: "petstore.db-wal: deleted while in use" in caplog.text)
        alone = shutil.copyfile(database, database.with_name("alone.db"))
        connection = apsw.Connection(str(alone))
        assert connection.execute("SELECT count(*) FROM api_keys").get == 1
        connection.close()
