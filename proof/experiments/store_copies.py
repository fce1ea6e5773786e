"""Backups and copies of a store in use, and restores that are killed."""

import asyncio
import os
import shutil
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.judging import judge_feed, judge_numbers, judge_store, judge_traders
from proof.ledger import Ledger
from proof.processes import Program
from proof.traders import Traders
from support.postgres import PostgresServer, postgres_server
from support.process import petstore
from support.waiting import within

_RECOVERY_SECONDS = 30.0


def _run(trial: Trial) -> None:
    with postgres_server() as postgres:
        for number in trial.rounds():
            with deployed(trial.folder / f"store-{number}") as deployment:
                uvloop.run(_copy_under_load(trial, deployment, postgres))


async def _copy_under_load(trial: Trial, store: Deployment, postgres: PostgresServer) -> None:
    """Back up, copy and restore a store in use, and judge each copy."""
    traders = Traders(store.port, store.token, Ledger(), trial.random, callers=24)
    traders.start()
    await traders.acknowledge_more(100, _RECOVERY_SECONDS)
    backup, database = store.folder / "backup.db", store.server.database
    copy = await asyncio.to_thread(postgres.new_database)
    commands = {
        "a backup": ("backup", str(backup), "--database", database),
        "a copy to PostgreSQL": ("copy", "--from", database, "--to", copy),
    }
    for name, command in commands.items():
        await asyncio.to_thread(store.register_category, name)
        done = await asyncio.to_thread(petstore, *command, cwd=store.folder)
        trial.expect(done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr}")
        trial.count(f"times: {name}")
    restore = ("restore", str(backup), "--force", "--database", database)
    refused = await asyncio.to_thread(petstore, *restore, cwd=store.folder)
    trial.expect(refused.returncode == 1, f"a restore of a store in use: {refused}")
    trial.count("times: a restore of a store in use")
    await traders.acknowledge_more(20, _RECOVERY_SECONDS)
    await traders.stop()
    await asyncio.to_thread(judge_store, trial, store, traders, "after the copies")
    feed = await judge_feed(trial, store, [], "after the copies")
    restored = store.folder.with_name(f"{store.folder.name}-restored")
    restored.mkdir()
    shutil.copy(backup, restored / "petstore.db")
    parts: dict[str, dict[str, Any]] = {
        "a backup": {"folder": restored},
        "a copy to PostgreSQL": {"postgres": postgres, "database": copy},
    }
    for name, part in parts.items():
        folder = store.folder.with_name(f"{store.folder.name}-{name}")
        await _judge_copy(trial, {"folder": folder, **part}, feed, name)
    judge_traders(trial, traders)


async def _judge_copy(
    trial: Trial, parts: dict[str, Any], feed: list[dict[str, Any]], name: str
) -> None:
    """Expect a copy to be the store as it was at one moment, after the command began."""
    with deployed(parts.pop("folder"), **parts) as copied:
        rows = await asyncio.to_thread(judge_numbers, trial, copied, name)
        events = await judge_feed(trial, copied, [], name)
    trial.expect(events == feed[: len(events)], f"{name} has other events than the store")
    trial.expect(
        any(category.name == name for category in rows.categories),
        f"{name} lacks what was acknowledged before it began",
    )


# Restores that are killed


def _run_restores(trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds
    with deployed(trial.folder / "store") as store:
        _add_pets(store)
        kept, backup, database = store.rows(), store.folder / "backup.db", store.server.database
        done = petstore("backup", str(backup), "--database", database, cwd=store.folder)
        assert done.returncode == 0, done.stderr
        command = ("-m", "petstore", "restore", str(backup), "--force", "--database", database)
        log = store.folder / "restore.log"
        restore = Program(store.folder, log, os.environ, lambda: command)
        longest = 0.1
        while time.monotonic() < ends:
            _add_pets(store)
            before = store.rows()
            store.kill()
            files = _files(store)
            restore.start()
            within(_RECOVERY_SECONDS, partial(_has_begun, restore, store, files))
            began = time.monotonic()
            if within(trial.random.uniform(0, 1.5 * longest), lambda: not restore.is_running):
                longest = time.monotonic() - began
            trial.count("kills", restore.is_running)
            restore.stop()
            store.start()
            after = store.rows()
            trial.count("restores that were done", after == kept)
            there = f"{len(after.pets)} pets, expected {len(before.pets)} or {len(kept.pets)}"
            trial.expect(after in (before, kept), f"after a killed restore there are {there}")
            trial.expect(store.is_sound(), "SQLite finds damage in the file")


def _has_begun(restore: Program, store: Deployment, files: dict[Path, int]) -> bool:
    """Return whether a restore has begun to write, or has ended."""
    return not restore.is_running or _files(store) != files


def _files(store: Deployment) -> dict[Path, int]:
    """Return when each file of the database was written last; none if one goes meanwhile."""
    with suppress(FileNotFoundError):
        return {one: one.stat().st_mtime_ns for one in store.folder.glob("petstore.db*")}
    return {}


def _add_pets(store: Deployment) -> None:
    headers = {"Authorization": f"Bearer {store.token}"}
    with httpx.Client(base_url=f"{store.server.url}/v1", headers=headers, timeout=20) as http:
        for number in range(20):
            new = {"name": f"Bella {number}", "categoryId": 1, "status": "available"}
            http.post("/pets", json=new).raise_for_status()


EXPERIMENTS = [
    Experiment(
        "backups and copies under load",
        "`petstore backup` and `petstore copy` of a store in use have the store as it was at one"
        " moment after they began. A restore over a store in use is refused.",
        "24 clients send requests meanwhile. A service on the backup, and one on the copy in"
        " PostgreSQL, must have the beginning of the feed of the store, with what was acknowledged"
        " before the command began, and the rows and sales that this beginning leads to.",
        _run,
        1,
        min_seconds=20,
    ),
    Experiment(
        "killed restores",
        "A `petstore restore` that is killed leaves the store as it was, with all that was"
        " acknowledged, or the backup as a whole.",
        "20 pets are added, and the service is killed. A restore of an older backup is killed at"
        " a random moment, once it has begun to write. The service starts, and its rows are"
        " compared.",
        _run_restores,
        1,
        min_seconds=5,
    ),
]
