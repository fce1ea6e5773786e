"""The programs of docs/sync.md copy a store and keep the copy equal."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from petstore_client import Client
from petstore_client.models import NewPet
from support.console import blocks
from support.process import ServerProcess, StartServer, servers_in
from support.programs import needs
from support.waiting import within

PAGE = (Path(__file__).parent.parent / "docs/sync.md").read_text()
DLT, TAP, _ = (block.text for block in blocks(PAGE) if block.language == "python")
PACKAGES = Path(sys.prefix) / "pipelines"
# What is in the warehouse, as JSON, after the program of the page.
ROWS = """
with pipeline.sql_client() as sql:
    rows = sql.execute_sql("SELECT id, name, category_id, status FROM pets ORDER BY id")
print(__import__("json").dumps([list(row) for row in rows]))
"""
MANY = 150  # more than a page
Rows = list[list[Any]]


class Pipeline:
    """A program of the page, in a folder of its own, for a store that has more than a page."""

    def __init__(self, server: ServerProcess, client: Client, token: str, folder: Path) -> None:
        self.server = server
        self.client = client
        self.folder = folder
        self.environment = {
            **os.environ,
            "DLT_DATA_DIR": str(folder / "dlt"),
            "HOME": str(folder),
            "PETSTORE_KEY": token,
            "PETSTORE_URL": client.base_url,
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        }
        pets = [NewPet(name=f"Pet {n}", category_id=n, status="sold") for n in range(MANY)]
        self.ids = [
            pet.id
            for start in range(0, MANY, 100)
            for pet in self.client.pets.create_many(pets[start : start + 100])
        ]

    def save(self, program: str) -> None:
        (self.folder / "program.py").write_text(program)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        with (self.folder / "errors").open("a") as errors:
            return subprocess.Popen(
                [PACKAGES / "bin/python", "program.py", *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, *arguments: str) -> list[str]:
        """Run the program to its end, and return the lines that it prints."""
        with self.start(*arguments) as process:
            printed, _ = process.communicate(timeout=200)
        assert process.returncode == 0, (self.folder / "errors").read_text()
        return printed.splitlines()

    def errors_with_another_store(self, *arguments: str) -> str:
        """Run the program with the address and key of another store; return how that fails."""
        folder = self.folder / "another"
        folder.mkdir()
        ours = self.environment
        with servers_in(folder) as start:
            other = start()
            own = {"PETSTORE_KEY": other.issue(), "PETSTORE_URL": f"{other.url}/v1"}
            self.environment = ours | own
            with self.start(*arguments) as process:
                process.communicate(timeout=200)
        self.environment = ours
        assert process.returncode
        return (self.folder / "errors").read_text()

    def change(self) -> None:
        renamed, plain, twice, deleted = self.ids[:4]
        pets = self.client.pets
        pets.update(renamed, name="Bella")
        pets.update(plain, status="available")
        pets.update(plain, status=None)
        for name in ("Rex", "Max"):
            pets.update(twice, name=name)
        pets.delete(deleted)
        pets.delete(pets.create(name="Gone", category_id=1).id)
        pets.create(name="New", category_id=2)

    def store(self) -> Rows:
        return [[p.id, p.name, p.category_id, p.status] for p in self.client.pets.list()]

    def reads_of_the_feed(self) -> int:
        """Return how many requests for events the service has logged."""
        return sum(line.get("operation") == "listEvents" for line in self.server.log_lines())


@pytest.fixture
def pipeline(start: StartServer, tmp_path: Path) -> Iterator[Pipeline]:
    if not (PACKAGES / "installed").exists():
        pytest.skip(needs("dlt and Singer"))
    server = start()
    token = server.issue()
    with Client(token, f"{server.url}/v1") as client:
        yield Pipeline(server, client, token, tmp_path)


def test_dlt_loads_everything_then_changes_and_a_killed_run_leaves_nothing_out(
    pipeline: Pipeline,
) -> None:
    pipeline.save(DLT + ROWS)
    assert json.loads(pipeline.run()[-1]) == pipeline.store()
    pipeline.change()
    reads = pipeline.reads_of_the_feed()
    assert reads == 1  # the paginator ends by itself
    with pipeline.start() as killed:
        assert within(200, lambda: pipeline.reads_of_the_feed() > reads)
        killed.kill()
    assert json.loads(pipeline.run()[-1]) == pipeline.store()
    assert "410 Client Error" in pipeline.errors_with_another_store()
    assert json.loads(pipeline.run("--full")[-1]) == pipeline.store()


def loaded(rows: dict[int, list[Any]], lines: list[str]) -> dict[str, Any]:
    """Load what a tap prints as a target does, and return the last state."""
    state: dict[str, Any] = {}
    for message in map(json.loads, lines):
        if message["type"] == "RECORD":
            pet = message["record"]
            rows[pet["id"]] = [pet[name] for name in ("id", "name", "categoryId", "status")]
            if pet["_sdc_deleted_at"]:
                del rows[pet["id"]]
        elif message["type"] == "STATE":
            state = message["value"]
    return state


def test_a_singer_tap_reads_everything_then_changes_and_a_killed_run_leaves_nothing_out(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    rows: dict[int, list[Any]] = {}
    pipeline.save(TAP)
    with pipeline.start() as killed:  # while it prints its records
        assert killed.stdout
        killed.stdout.readline()
        killed.kill()
    state = loaded(rows, pipeline.run())
    assert sorted(rows.values()) == pipeline.store()
    pipeline.change()
    (tmp_path / "state.json").write_text(json.dumps(state))
    lines = pipeline.run("--state", "state.json")
    loaded(rows, lines)
    assert sorted(rows.values()) == pipeline.store()
    assert sum('"RECORD"' in line for line in lines) == 9
    assert "410 Client Error" in pipeline.errors_with_another_store("--state", "state.json")
