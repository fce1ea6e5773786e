"""``petstore serve --demo``: something to see, and a line to paste."""

import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from petstore.clock import system_clock
from petstore.databases.contract import read_unit
from petstore.keys.model import Environment, is_token
from petstore.people.store import find_account_by_login, find_invited, list_people
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings
from support.command import Command
from support.keys import revoke
from support.manual_clock import ManualClock
from support.people import alter
from support.postgres import database_name
from support.process import ServerProcess, servers_in
from support.stores import open_store

FORM = "application/x-www-form-urlencoded"


class Demo:
    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        assert server.process.stdout is not None
        self.said = [server.process.stdout.readline() for _ in range(6)]
        self.token = self.said[5].split("Bearer ")[1].split('"')[0]
        self.key_file = server.folder / "petstore.db.demo-key"

    def list_pets(self) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.server.url}/v1/pets?limit=100", headers=headers)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo store that was started, stopped and started again."""
    with servers_in(tmp_path_factory.mktemp("demo")) as start:
        first = Demo(start("--demo"))
        pets = first.list_pets().json()
        assert first.server.stop() == 0
        second = Demo(start("--demo"))
        assert second.token == first.token
        assert second.list_pets().json() == pets
        yield second


def test_the_second_start_keeps_the_store_and_its_key(demo: Demo) -> None:
    response = demo.list_pets()
    assert response.status_code == 200
    assert len(response.json()) == 100


def test_the_sample_pets_belong_to_registered_categories(demo: Demo) -> None:
    headers = {"Authorization": f"Bearer {demo.token}"}
    categories = httpx.get(f"{demo.server.url}/v1/categories", headers=headers).json()
    pets = httpx.get(f"{demo.server.url}/v1/pets?limit=100", headers=headers).json()
    assert [category["name"] for category in categories[:2]] == ["Dogs", "Cats"]
    assert {pet["categoryId"] for pet in pets} <= {category["id"] for category in categories}


def test_only_the_owner_can_read_the_demo_key_file(demo: Demo) -> None:
    assert demo.key_file.read_text() == demo.token + "\n"
    assert stat.S_IMODE(demo.key_file.stat().st_mode) == 0o600


def test_the_demo_prints_its_address(demo: Demo) -> None:
    assert [*demo.said[:3], demo.said[4]] == [
        f"Petstore is at  {demo.server.url}/v1\n",
        f"Docs are at     {demo.server.url}/docs\n",
        f"Console is at   {demo.server.url}/console\n",
        "Try it:\n",
    ]


def test_the_demo_prints_the_invitation_of_its_administrator(demo: Demo) -> None:
    name, link = demo.said[3].split(":", 1)
    assert name == "Sign in"
    assert link.strip().startswith(f"{demo.server.url}/console/invitation/")
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=True) as person:
        page = person.post(link.strip(), data={"password": "correct horse"})
        assert page.url.path == "/console/today"
        account = person.get(f"{demo.server.url}/console/account")
    assert "<bdi>demo</bdi>" in account.text
    assert "Administrator" in account.text


def test_the_demo_key_signs_in_to_the_console_that_the_demo_names(demo: Demo) -> None:
    console = demo.said[2].split()[-1]
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=True) as person:
        page = person.post(f"{console}/sign-in", data={"key": demo.token})
    assert page.url.path == "/console/usage"
    assert page.status_code == 200


def test_a_webhook_of_the_demo_may_lead_to_the_same_machine(demo: Demo) -> None:
    token = demo.server.issue("free", "--scope", "pets:read", "--scope", "webhooks:write")
    headers = {"Authorization": f"Bearer {token}"}
    webhook = {"url": "http://127.0.0.1:9999/hooks"}
    created = httpx.post(f"{demo.server.url}/v1/webhooks", json=webhook, headers=headers)
    assert created.status_code == 201


def test_the_printed_command_works_when_it_is_pasted(demo: Demo) -> None:
    line = demo.said[5].strip()
    if shutil.which("curl"):
        pasted = ["/bin/sh", "-c", f"{line} --silent"]
        response = subprocess.run(pasted, capture_output=True, text=True, check=True).stdout
        assert re.match(r"HTTP/1\.1 200", response)
        assert response.count('"id"') == 3
    curl, *options, header, url = shlex.split(line)
    assert (curl, options) == ("curl", ["-i", "-H"])
    name, _, value = header.partition(": ")
    assert len(httpx.get(url, headers={name: value}).json()) == 3


def test_the_log_of_a_demo_has_no_token(demo: Demo) -> None:
    assert demo.token not in demo.server.log_path.read_text()


def test_an_environment_variable_starts_a_demo(command: Command) -> None:
    text = " ".join(command.succeed("serve", "--help").split())
    assert "[env var: PETSTORE_DEMO]" in text


async def prepared(settings: Settings) -> str:
    """Prepare a demo as a start does, and return the token of its key."""
    async with open_store(settings.database) as store:
        return (await prepare_demo(store, settings)).token


@pytest.mark.anyio
async def test_each_environment_has_a_demo_administrator(database: Path) -> None:
    async with open_store(database) as store:
        logins: dict[Environment, str] = {"production": "demo", "staging": "staging-demo"}
        for environment, login in (*logins.items(), *logins.items()):
            settings = Settings(database=f"sqlite:///{database}", environment=environment)
            link = (await prepare_demo(store, settings)).link
            invited = find_invited(link, environment, system_clock())
            account = await read_unit(store, invited)
            assert account is not None
            assert account.login == login
            assert account.caller.role == "administrator"
        assert len((await list_people(store, None, None, 10)).items) == 2 + 3


@pytest.mark.anyio
async def test_a_demo_administrator_who_was_disabled_gets_no_link(
    database: Path, clock: ManualClock
) -> None:
    settings = Settings(database=f"sqlite:///{database}")
    async with open_store(database) as store:
        await prepare_demo(store, settings)
        account = await read_unit(store, find_account_by_login("demo", "production"))
        assert account is not None
        await alter(store, clock, account.caller.id, state="disabled")
        assert (await prepare_demo(store, settings)).link == ""


@pytest.mark.anyio
async def test_a_demo_key_that_was_revoked_is_replaced(database: Path, clock: ManualClock) -> None:
    settings = Settings(database=f"sqlite:///{database}")
    revoked = await prepared(settings)
    async with open_store(database) as store:
        await revoke(store, clock, 1)
    token = await prepared(settings)
    assert token != revoked
    assert await prepared(settings) == token


@pytest.mark.anyio
@pytest.mark.parametrize("left", [b"", b"\xff\xfe\n", b"ps_live_" + b"0" * 38])
async def test_a_demo_key_file_without_a_key_is_replaced(database: Path, left: bytes) -> None:
    key_file = database.with_name("petstore.db.staging-demo-key")
    key_file.write_bytes(left)
    key_file.chmod(0o644)
    settings = Settings(database=f"sqlite:///{database}", environment="staging")
    token = await prepared(settings)
    assert is_token(token.encode(), "staging")
    assert key_file.read_text() == token + "\n"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


@pytest.mark.anyio
async def test_a_symlink_in_place_of_the_demo_key_file_is_replaced(database: Path) -> None:
    elsewhere = database.with_name("elsewhere")
    key_file = database.with_name("petstore.db.demo-key")
    key_file.symlink_to(elsewhere)
    token = await prepared(Settings(database=f"sqlite:///{database}"))
    assert not elsewhere.exists()
    assert key_file.read_text() == token + "\n"


@pytest.mark.anyio
async def test_a_demo_on_postgresql_stores_its_key_in_the_working_directory(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    token = await prepared(Settings(database=postgres_url))
    name = database_name(postgres_url)
    assert (tmp_path / f"{name}.demo-key").read_text() == token + "\n"
