"""The guide to generated clients: its projects pass the type checkers and sell pets.

``python`` and ``typescript`` are the projects that the guide shows. Its commands are run in copies.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from textwrap import dedent
from time import monotonic

import pytest

from petstore.events.model import EVENT_TYPES
from petstore.interface.openapi.events import example_of
from support.odd_service import odd_service, response
from support.process import ServerProcess
from support.programs import PACKAGES, node_program

HERE = Path(__file__).parent
GUIDE = (HERE.parent.parent / "docs/generated-clients.md").read_text()
SERVICE = "https://shop.example"
CACHES = {
    # Most of what the type checker reads is the same in each run: the libraries of the client.
    "MYPY_CACHE_DIR": str(HERE.parent.parent / ".mypy_cache/generated_clients"),
    "NODE_COMPILE_CACHE": str(PACKAGES.parent / "compiled"),
}
INSTALLS = ("pip", "npm")  # what they install is in the lock files


def section(heading: str) -> str:
    """Return a section of the guide, without those under it."""
    return re.split(r"^#+ (?=\S)", GUIDE.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


class Project:
    """A copy of one of the projects, for the running service."""

    def __init__(self, source: Path, folder: Path, server: ServerProcess, token: str) -> None:
        ignored = ignore_patterns("__pycache__")  # another test imports from there
        self.folder = copytree(source, folder / source.name, ignore=ignored)
        self._url = server.url
        self._env = {**os.environ, "PETSTORE_KEY": token, **CACHES}
        for file in self.folder.iterdir():
            file.write_text(file.read_text().replace(SERVICE, server.url))

    def follow(self, heading: str) -> str:
        """Run the commands of a section, and return what the last one prints."""
        printed = ""
        for command in "".join(blocks(section(heading), "sh")).splitlines():
            if not command.startswith(INSTALLS):
                printed = self.run(command)
        return printed

    def move_to(self, url: str) -> None:
        """Let the programs ask another service."""
        for file in (*self.folder.glob("feed.*"), *self.folder.glob("client/client.gen.ts")):
            file.write_text(file.read_text().replace(self._url, url))

    def run(self, command: str) -> str:
        run = subprocess.run(
            self._words(command.replace(SERVICE, self._url)),
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
        return run.stdout

    @staticmethod
    def _words(command: str) -> list[str]:
        program, *arguments = shlex.split(command)
        if program == "npx":
            tool, *arguments = arguments
            return [node_program(), str(PACKAGES / ".bin" / tool), *arguments]
        if program == "node":
            return [node_program(), *arguments]
        return [str(Path(sys.executable).with_name(program)), *arguments]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service of their own: no other test has pets in a category before it is made."""
    server = ServerProcess(tmp_path_factory.mktemp("server"))
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    return server.issue()


def assert_sold_once(printed: str) -> None:
    """Hold what ``sell`` saw to what the service promises."""
    outcome = json.loads(printed)
    first, second, third, fourth = ids = outcome["ids"]
    assert ids == sorted(set(ids))
    assert outcome["again"] == fourth
    assert outcome["seen"] == [[first, second], [third, fourth]]
    assert outcome["order"] == {"petId": first, "status": "placed"}
    assert outcome["conflict"] == {
        "code": "pet_not_available",
        "message": f"pet {first} is pending; only an available one can be ordered",
        "status": 409,
    }


def assert_later_events_are_read(project: Project, command: str) -> None:
    """Run the program that reads events on each type of event, and on two that came later."""
    moved = example_of("pet.updated") | {"type": "pet.moved"}
    sent = {"type": "parcel.sent", "data": {"id": "P-1", "parts": [{}]}, "previous": {"parts": []}}
    events = [example_of(kind) for kind in EVENT_TYPES]
    page = response(200, [moved | sent, *events, moved], Content_Type="application/json")
    with odd_service(page) as service:
        project.move_to(service.url)
        printed = project.run(command)
    pets = [f"{kind} Bella" for kind in EVENT_TYPES if kind.startswith("pet.")]
    orders = [f"{kind} 7" for kind in EVENT_TYPES if kind.startswith("order.")]
    assert printed.splitlines() == [*pets, *orders, "pet.moved Bella"]


@pytest.mark.parametrize("language", ["python", "ts", "js", "yaml", "json"])
def test_the_guide_shows_the_code_that_is_tested(language: str) -> None:
    folders = (HERE / "python", HERE / "typescript")
    paths = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    files = [path.read_text() for path in paths]
    shown = blocks(GUIDE, language)
    assert shown
    assert [block for block in shown if not any(block in file for file in files)] == []


def test_a_python_client_passes_mypy_sells_a_pet_once_and_reads_later_events(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    project = Project(HERE / "python", tmp_path, server, token)
    assert_sold_once(project.follow("Python"))
    assert_later_events_are_read(project, "python feed.py")


def test_typescript_clients_pass_tsc_sell_a_pet_once_and_read_later_events(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    project = Project(HERE / "typescript", tmp_path, server, token)
    (project.folder / "node_modules").symlink_to(PACKAGES)
    sold = json.loads(project.follow("Types only"))
    assert sold == {"status": "placed", "conflict": "pet_not_available"}
    assert_sold_once(project.follow("TypeScript"))
    assert_later_events_are_read(project, "node feed.ts")
    assert project.run("node large-numbers.js") == "9007199254740993\n"


REFUSED = response(429, {}, Retry_After=1)


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_retrying_client_waits_as_long_as_a_429_says(language: str) -> None:
    script = {
        "python": """
            import httpx, sys
            from retry import RetryTransport
            client = httpx.Client(transport=RetryTransport())
            print(client.post(sys.argv[1], content="Bella").status_code)
        """,
        "typescript": """
            import { fetchWithRetry } from './retry.ts';
            const sent = await fetchWithRetry(process.argv[1], { method: 'POST', body: 'Bella' });
            console.log(sent.status);
        """,
    }[language]
    program = {
        "python": [sys.executable, "-c"],
        "typescript": [node_program(), "--input-type=module", "-e"],
    }[language]
    with odd_service(REFUSED, response(201, {})) as service:
        began = monotonic()
        printed = subprocess.check_output(
            [*program, dedent(script), service.url], cwd=HERE / language, text=True, timeout=60
        )
        assert monotonic() - began >= 1
    assert printed == "201\n"
    assert [asked.body for asked in service.asked] == [b"Bella", b"Bella"]
