"""``petstore serve --demo``: something to see of each page, and a line to paste."""

import csv
import shlex
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, HOUR, MINUTE, system_clock
from petstore.databases.contract import Statement, read_unit
from petstore.events.store import publish_all
from petstore.keys.model import Environment, is_token
from petstore.people.store import find_invited, list_people
from petstore.pets.model import NewPet
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings, is_postgres
from support.changes import create_category, create_pet
from support.keys import revoke
from support.manual_clock import ManualClock
from support.people import add, alter
from support.postgres import database_name
from support.process import ServerProcess, StartServer
from support.stores import do, open_store

pytestmark = pytest.mark.anyio


def said_by(server: ServerProcess) -> list[str]:
    assert server.process.stdout is not None
    return [server.process.stdout.readline().strip() for _ in range(6)]


def test_a_demo_says_what_to_do_and_keeps_its_store_and_key(start: StartServer) -> None:
    server = start("--demo")
    line = said_by(server)[5]
    curl, *options, header, url = shlex.split(line)
    assert (curl, options) == ("curl", ["-i", "-H"])
    headers, token = dict([header.split(": ")]), header.rpartition(" ")[2]
    pets = httpx.get(f"{server.url}/v1/pets?limit=100", headers=headers).json()
    assert len(pets) == 100
    assert server.stop() == 0
    server = start("--demo")
    assert httpx.get(f"{server.url}/v1/pets?limit=100", headers=headers).json() == pets
    *said, sign_in, try_it, again = said_by(server)
    assert [*said, try_it, again.replace(server.url, "")] == [
        f"Petstore is at  {server.url}/v1",
        f"Docs are at     {server.url}/docs",
        f"Console is at   {server.url}/console",
        *("Try it:", line.replace(url.partition("/v1")[0], "")),
    ]
    link = sign_in.removeprefix("Sign in:").strip()
    assert link.startswith(f"{server.url}/console/invitation/")
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=True) as person:
        page = person.post(link, data={"password": "correct horse"})
        assert page.url.path == "/console/today"
        account = person.get(f"{server.url}/console/account")
        assert "<bdi>demo</bdi>" in account.text
        assert "Administrator" in account.text
        page = person.post(f"{server.url}/console/sign-in", data={"key": token})
        assert (page.status_code, page.url.path) == (200, "/console/usage")
    assert len(httpx.get(shlex.split(again)[-1], headers=headers).json()) == 3
    if shutil.which("curl"):
        pasted = ["/bin/sh", "-c", f"{again} --silent"]
        response = subprocess.run(pasted, capture_output=True, text=True, check=True).stdout
        assert response.startswith("HTTP/1.1 200")
        assert response.count('"id"') == 3
    key_file = server.folder / "petstore.db.demo-key"
    assert key_file.read_text() == token + "\n"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert token not in server.log_path.read_text()
    # On their own machine, people try webhooks there.
    token = server.issue("free", "--scope", "pets:read", "--scope", "webhooks:write")
    headers, webhook = {"Authorization": f"Bearer {token}"}, {"url": "http://127.0.0.1:9999/hooks"}
    created = httpx.post(f"{server.url}/v1/webhooks", json=webhook, headers=headers)
    assert created.status_code == 201


async def prepared(settings: Settings) -> str:
    """Prepare a demo as a start does, and return the token of its key."""
    async with open_store(settings.database) as store:
        return (await prepare_demo(store, settings)).token


async def test_each_environment_has_a_demo_administrator_until_they_are_disabled(
    database: Path, clock: ManualClock
) -> None:
    async with open_store(database) as store:
        logins: dict[Environment, str] = {"production": "demo", "staging": "staging-demo"}
        for environment, login in (*logins.items(), *logins.items()):
            settings = Settings(database=f"sqlite:///{database}", environment=environment)
            link = (await prepare_demo(store, settings)).link
            account = await read_unit(store, find_invited(link, environment, system_clock()))
            assert account is not None
            assert (account.login, account.caller.role) == (login, "administrator")
            person_id = account.caller.id
        assert len((await list_people(store, None, None, 10)).items) == 2 + 3
        await alter(store, clock, person_id, state="disabled")
        assert (await prepare_demo(store, settings)).link == ""


@pytest.mark.parametrize("left", ["", "\xff\xfe\n", "ps_live_" + "0" * 38, "revoked", "a link"])
async def test_a_demo_key_file_without_a_key_is_replaced(
    database: Path, clock: ManualClock, left: str
) -> None:
    key_file = database.with_name("petstore.db.staging-demo-key")
    elsewhere = database.with_name("elsewhere")
    settings = Settings(database=f"sqlite:///{database}", environment="staging")
    if left == "revoked":
        left = await prepared(settings)
        async with open_store(database) as store:
            await revoke(store, clock, 1)
    elif left == "a link":
        key_file.symlink_to(elsewhere)
    else:
        key_file.write_text(left, "latin-1")
        key_file.chmod(0o644)
    token = await prepared(settings)
    assert token != left
    assert is_token(token.encode(), "staging")
    assert key_file.read_text() == token + "\n"
    assert stat.S_IMODE(key_file.lstat().st_mode) == 0o600
    assert not elsewhere.exists()
    assert await prepared(settings) == token


async def test_a_demo_on_postgresql_stores_its_key_in_the_working_directory(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    token = await prepared(Settings(database=postgres_url))
    assert (tmp_path / f"{database_name(postgres_url)}.demo-key").read_text() == token + "\n"


ORDERS = {"placed": 7, "approved": 11, "delivered": 120, "cancelled": 15}


async def rows(store: Any, sql: str) -> list[Any]:
    found: list[Any] = await store.read(Statement(sql, name="test"))
    return found


async def column(store: Any, sql: str) -> list[Any]:
    return [value for (value,) in await rows(store, sql)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def demo_store(address: str, clock: ManualClock, **settings: Any) -> AsyncIterator[Any]:
    """A demo store, whose events can all be read."""
    async with open_store(address) as store:
        await prepare_demo(store, Settings(database=address, **settings), clock)
        if is_postgres(address):
            await publish_all(store)
        yield store


@pytest.mark.each_database
async def test_the_demo_has_sample_pets_and_orders(address: str, clock: ManualClock) -> None:
    text = (files("petstore.samples") / "pets.csv").read_text("utf-8")
    sample = [
        (row["name"], int(row["categoryId"]), row["status"] or None)
        for row in csv.DictReader(text.splitlines())
    ]
    kinds = {"Polly": "Parrots", "Tweety": "Canaries", "Koi Roy": "Fish", "Donatello": "Turtles"}
    kinds |= {"Gekko": "Lizards", "Kaa": "Snakes", "Shadowfax": "Horses"}
    async with demo_store(address, clock) as store:
        assert sample == await rows(store, "SELECT name, category_id, status FROM pets ORDER BY id")
        joined = "SELECT p.name, c.name FROM pets p JOIN categories c ON c.id = p.category_id"
        assert kinds.items() <= dict(await rows(store, joined)).items()
        events = dict(await rows(store, "SELECT type, count(*) FROM events GROUP BY type"))
        assert (events["order.cancelled"], events["order.lapsed"]) == (9, 6)
        assert await column(store, "SELECT count(cancel_reason) FROM orders") == [9]
        pending = await column(store, "SELECT id FROM pets WHERE status = 'pending' ORDER BY id")
        is_open = "status IN ('placed', 'approved')"
        ordered = f"SELECT pet_id FROM orders WHERE {is_open} ORDER BY pet_id"  # noqa: S608
        assert pending == await column(store, ordered)
        sold = await column(store, "SELECT count(*) FROM pets WHERE status = 'sold'")
        assert sold == [ORDERS["delivered"] + 12]
        times = await column(store, "SELECT at FROM events ORDER BY sequence")
        assert times[0] == clock.now - 60 * DAY
        assert all(earlier <= later for earlier, later in pairwise(times))
        assert times[-1] <= clock.now


@pytest.mark.parametrize(
    ("environment", "minutes", "currency"),
    [
        *(("production", 0, "USD"), ("staging", 10, "JPY")),
        *(("production", 1440, "USD"), ("production", 7 * 1440, "EUR")),
    ],
)
async def test_a_demo_with_any_settings_has_the_same_numbers(
    address: str, clock: ManualClock, environment: Any, minutes: int, currency: str
) -> None:
    settings = {"environment": environment, "currency": currency, "reservation_minutes": minutes}
    counts = "SELECT status, count(*) FROM orders GROUP BY status"
    async with demo_store(address, clock, **settings) as store:
        assert dict(await rows(store, counts)) == ORDERS
        reserved = await rows(
            store, "SELECT placed_at, reserved_until FROM orders WHERE status = 'placed'"
        )
        currencies = await column(store, "SELECT currency FROM orders WHERE amount IS NOT NULL")
        people = (await list_people(store, environment, None, 10)).items
        actors = {*await column(store, "SELECT actor FROM events")}
    for at, until in reserved:
        assert until == (at + minutes * MINUTE if minutes else None)
        assert until is None or until > clock.now
    if minutes == 1440:  # one of them ends soon
        assert min(until for _, until in reserved) < clock.now + 2 * HOUR
    assert {*currencies} == {currency}
    staff = {f"person/{person.id}" for person in people if person.state == "active"}
    assert len(staff) == 2
    assert actors == {*staff, "key/1", "service", "operator"}


async def test_nobody_can_be_the_staff_of_the_demo_and_its_key_was_used_on_30_days(
    address: str, clock: ManualClock
) -> None:
    async with demo_store(address, clock) as store:
        people = (await list_people(store, "production", None, 10)).items
        found = {each.login.partition("@")[0]: each.state for each in people}
        assert found == {"demo": "invited", "amina": "active", "jonas": "active", "mei": "invited"}
        assert not any(each.last_seen_at for each in people if each.state == "invited")
        links = (
            f"SELECT login, expires_at > {clock.now} FROM invitations JOIN people ON id = person_id"  # noqa: S608
        )
        assert dict(await rows(store, links)) == {"demo": 1, "mei@petstore.example": 0}
        used = dict(await rows(store, "SELECT day, requests FROM usage WHERE key_id = 1"))
        select = (
            "SELECT hour / 24, sum(count) FROM counts WHERE kind = 'response' AND name < '429'"
            " GROUP BY hour"
        )
        responses = dict(await rows(store, select))
        calls = await column(store, "SELECT hour / 24 FROM counts WHERE kind = 'deprecated'")
    today = clock.now // DAY
    assert sorted(used) == sorted(calls) == [*range(today - 29, today)]
    assert all(0.98 * count <= responses[day] <= count for day, count in used.items())


async def test_a_second_start_adds_nothing(address: str, clock: ManualClock) -> None:
    counts = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM callers)"
    async with demo_store(address, clock) as store:
        before = await rows(store, counts)
        clock.advance(3600)
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, counts) == before


@pytest.mark.parametrize("what", ["a pet that is gone", "a category", "a login of the demo"])
async def test_a_store_in_which_something_has_happened_is_not_filled(
    address: str, clock: ManualClock, what: str
) -> None:
    async with open_store(address) as store:
        if what == "a category":
            await store.write(create_category(CategoryCreate("Yaks")))
        elif what == "a login of the demo":
            await add(store, clock, login="jonas@petstore.example")
        else:
            await store.write(create_pet(NewPet("Rex", 1)))
            await store.write(do("DELETE FROM pets"))
        await prepare_demo(store, Settings(database=address), clock)
        assert await rows(store, "SELECT id FROM pets") == []
