"""An old version beside a new one on the same PostgreSQL, as ``docs/upgrading.md`` has it."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.postgres import PostgresServer
from support.process import ServerProcess, free_port, is_ready, petstore, serving
from support.waiting import within

PAGE = (Path(__file__).parents[2] / "docs/upgrading.md").read_text()
# As a newer minor version has it: only additions.
MIGRATION = """
    BEGIN;
    ALTER TABLE pets ADD COLUMN added_later TEXT;
    ALTER TABLE orders ADD COLUMN added_later BOOLEAN NOT NULL DEFAULT FALSE;
    ALTER TABLE api_keys ADD COLUMN added_later TEXT NOT NULL DEFAULT '';
    ALTER TABLE idempotency_records ADD COLUMN added_later BYTEA;
    CREATE TABLE made_later (id BIGINT PRIMARY KEY);
    UPDATE petstore_schema SET version = version + 1;
    COMMIT;
"""


@pytest.fixture
def old(postgres: PostgresServer, tmp_path: Path) -> Iterator[ServerProcess]:
    """A service whose database a newer version is about to migrate."""
    with serving(tmp_path, database=postgres.new_store()) as service:
        yield service


def use(client: httpx.Client, number: int) -> list[int]:
    added = client.post(
        "/pets",
        json={"name": "Bella", "categoryId": 1, "status": "available"},
        headers={"Idempotency-Key": f"request-{number}"},
    )
    pet_id = added.json()["id"]
    return [
        added.status_code,
        client.get("/pets", params={"status": "available"}).status_code,
        client.post("/store/orders", json={"petId": pet_id}).status_code,
        client.patch(f"/pets/{pet_id}", json={"name": "Ada"}).status_code,
        client.get(f"/pets/{pet_id}").status_code,
        client.get("/store/orders").status_code,
        client.get("/usage").status_code,
    ]


def without_numbers(text: str) -> str:
    return re.sub("[0-9]+", "N", text)


def test_a_running_older_service_works_with_a_newer_schema_but_does_not_start(
    postgres: PostgresServer, old: ServerProcess, tmp_path: Path
) -> None:
    headers = {"Authorization": f"Bearer {old.issue()}"}
    with httpx.Client(base_url=f"{old.url}/v1", headers=headers) as client:
        assert use(client, 1) == [201, 200, 201, 200, 200, 200, 200]
        postgres.sql(MIGRATION, old.database.rpartition("/")[2])
        assert use(client, 2) == [201, 200, 201, 200, 200, 200, 200]
    before = old.worker
    os.kill(before, signal.SIGKILL)  # the next worker is one of the old version, too
    assert within(30, lambda: before not in old.workers() and is_ready(old.url))
    with httpx.Client(base_url=f"{old.url}/v1", headers=headers) as client:
        assert use(client, 3) == [201, 200, 201, 200, 200, 200, 200]
    options = ("--port", str(free_port()), "--database", old.database)
    started = petstore("serve", *options, cwd=tmp_path)
    assert started.returncode == 1
    assert without_numbers(started.stderr.splitlines()[-1]) in without_numbers(PAGE)
