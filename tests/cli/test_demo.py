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

from petstore.domain.api_keys import is_token
from support.command import Command
from support.postgres import database_name
from support.process import ServerProcess
from support.servers import StartServer, servers_in


class Demo:
    """A demo store, and what it said when it started."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        assert server.process.stdout is not None
        self.said = [server.process.stdout.readline() for _ in range(5)]
        self.token = self.said[4].split("Bearer ")[1].split('"')[0]
        self.key_file = server.folder / "petstore.db.demo-key"

    def list_pets(self, token: str | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token}"}
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


def test_the_sample_animals_belong_to_registered_categories(demo: Demo) -> None:
    headers = {"Authorization": f"Bearer {demo.token}"}
    categories = httpx.get(f"{demo.server.url}/v1/categories", headers=headers).json()
    pets = httpx.get(f"{demo.server.url}/v1/pets?limit=100", headers=headers).json()
    assert [category["name"] for category in categories[:2]] == ["Dogs", "Cats"]
    assert {pet["categoryId"] for pet in pets} <= {category["id"] for category in categories}


def test_the_file_of_the_demo_key_is_for_its_owner_alone(demo: Demo) -> None:
    assert demo.key_file.read_text() == demo.token + "\n"
    assert stat.S_IMODE(demo.key_file.stat().st_mode) == 0o600


def test_it_says_where_it_is(demo: Demo) -> None:
    assert demo.said[:4] == [
        f"Petstore is at  {demo.server.url}/v1\n",
        f"Docs are at     {demo.server.url}/docs\n",
        f"Console is at   {demo.server.url}/console\n",
        "Try it:\n",
    ]


def test_its_key_signs_in_at_the_console_that_it_names(demo: Demo) -> None:
    console = demo.said[2].split()[-1]
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=True) as person:
        page = person.post(f"{console}/sign-in", data={"key": demo.token})
    assert page.url.path == "/console/pets"
    assert page.status_code == 200


def test_the_line_it_prints_works_when_it_is_pasted(demo: Demo) -> None:
    line = demo.said[4].strip()
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


def test_an_environment_variable_asks_for_a_demo_too(command: Command) -> None:
    text = " ".join(command.succeed("serve", "--help").split())
    assert "[env var: PETSTORE_DEMO]" in text


def test_a_demo_key_that_was_revoked_is_replaced(start: StartServer, tmp_path: Path) -> None:
    first = Demo(start("--demo"))
    assert first.server.stop() == 0
    Command(tmp_path / "petstore.db").succeed("keys", "revoke", "1")
    second = Demo(start("--demo"))
    assert second.token != first.token
    assert second.list_pets().status_code == 200
    assert second.list_pets(first.token).status_code == 401
    assert stat.S_IMODE(second.key_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("left", [b"", b"\xff\xfe\n", b"ps_live_" + b"0" * 38])
def test_a_demo_key_file_that_holds_no_key_is_replaced(
    start: StartServer, tmp_path: Path, left: bytes
) -> None:
    key_file = tmp_path / "petstore.db.staging-demo-key"
    key_file.write_bytes(left)
    key_file.chmod(0o644)
    demo = Demo(start("--demo", "--environment", "staging"))
    assert is_token(demo.token.encode(), "staging")
    assert demo.list_pets().status_code == 200
    assert key_file.read_text() == demo.token + "\n"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_a_link_in_the_place_of_a_demo_key_file_is_replaced(
    start: StartServer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "petstore.db.demo-key").symlink_to(elsewhere)
    demo = Demo(start("--demo"))
    assert not elsewhere.exists()
    assert demo.key_file.read_text() == demo.token + "\n"


def test_a_demo_on_postgresql_keeps_its_key_where_it_was_started(
    start: StartServer, tmp_path: Path, postgres_url: str
) -> None:
    demo = Demo(start("--demo", "--database", postgres_url))
    assert len(demo.list_pets().json()) == 100
    name = database_name(postgres_url)
    assert (tmp_path / f"{name}.demo-key").read_text() == demo.token + "\n"
