"""Deliveries by processes of their own, which are killed in the middle."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import pytest

from petstore.clock import system_clock
from petstore.databases.contract import Store, Unit
from petstore.events.store import Change
from petstore.pets.model import NewPet, PetPatch
from petstore.pets.store import update_pet
from petstore.webhooks.deliveries import recover
from petstore.webhooks.model import WebhookPatch
from petstore.webhooks.signing import text_of_master, webhook_secrets
from petstore.webhooks.store import change_webhook
from support.changes import create_pets
from support.process import StartServer, free_port
from support.receivers import Receiver, receiving
from support.stores import do, open_store
from support.waiting import eventually
from support.webhooks import add_webhook, deliveries, issue_key, publish

pytestmark = pytest.mark.anyio

MASTER = b"m" * 32


def secret_in(folder: Path) -> Path:
    """Return the secret file of a service there."""
    secret = folder / "petstore.db.secret"
    secret.touch(0o600)
    secret.write_bytes(text_of_master(MASTER))
    return secret


PETS = 20
CHANGES = 10
KILLS = 3


class Deliverer:
    """A process that delivers until it is stopped, or the block ends."""

    def __init__(self, folder: Path, address: str, *options: str) -> None:
        self.log = folder / f"deliver-{id(self)}.jsonl"
        arguments = ("--database", address, "--secret-file", str(secret_in(folder)))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "petstore", "deliver", *arguments),
                    *("--webhook-network", "127.0.0.0/8", "--log-format", "json", *options),
                ],
                cwd=folder,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def logged(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.read_text().splitlines()]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


async def change_all(store: Store) -> None:
    def rename(name: str) -> Unit[None]:
        for pet_id in range(1, PETS + 1):
            yield from update_pet(Change(system_clock()), pet_id, PetPatch(name=name))

    await store.write(create_pets([NewPet("0", 1, "available")] * PETS))
    for number in range(1, CHANGES):
        await store.write(rename(str(number)))
        await asyncio.sleep(0)


def assert_complete_and_in_order(receiver: Receiver) -> None:
    """Check that the events of each pet, each when it first arrived, have all names in order."""
    names: dict[str, dict[str, None]] = {}
    for request in receiver.requests:
        event = request.verified(webhook_secrets(MASTER, 1, 1, None, 0)[0])
        names.setdefault(event["resource"], {})[event["data"]["name"]] = None
    expected = [*map(str, range(CHANGES))]
    assert {resource: [*found] for resource, found in names.items()} == {
        f"pet/{number}": expected for number in range(1, PETS + 1)
    }


@pytest.mark.each_database
async def test_events_arrive_at_least_once_and_in_order_if_a_deliverer_is_killed(
    tmp_path: Path, address: str, store: Store
) -> None:
    async with receiving() as receiver:
        await add_webhook(store, await issue_key(store), url=receiver.url)
        with ExitStack() as opened:
            first = opened.enter_context(Deliverer(tmp_path, address))
            changing = asyncio.create_task(change_all(store))
            await eventually(lambda: len(receiver.requests) > PETS, 30)
            second = opened.enter_context(Deliverer(tmp_path, address))
            await eventually(lambda: second.logged() == ["deliveries_started"], 30)
            first.process.kill()
            await changing

            async def are_all_delivered() -> bool:
                states = [row[0] for row in await deliveries(store, "state")]
                return states.count("succeeded") == PETS * CHANGES

            await eventually(are_all_delivered, 60)
            assert_complete_and_in_order(receiver)
            assert await asyncio.to_thread(second.stop) == 0
            assert second.logged() == ["deliveries_started"]


async def test_a_recovery_whose_processes_are_killed_sends_everything_once_and_in_order(
    tmp_path: Path, address: str, store: Store
) -> None:
    async with receiving() as receiver:
        await add_webhook(store, await issue_key(store), url=receiver.url)
        await store.write(change_webhook(Change(0), 1, WebhookPatch(enabled=False)))
        await change_all(store)
        await publish(store)
        await store.write(change_webhook(Change(0), 1, WebhookPatch(enabled=True)))
        await store.write(recover(Change(0), 1, 0))
        for kills in range(1, KILLS + 1):
            with Deliverer(tmp_path, address):
                enough = kills * PETS * CHANGES // (KILLS + 1)
                await eventually(lambda least=enough: len(receiver.requests) > least)  # type: ignore[misc]
            # Else the next one waits until the lease has ended.
            await store.write(do("UPDATE webhooks SET leased_by = NULL, leased_until = NULL"))
            await store.write(recover(Change(0), 1, 0))
        with Deliverer(tmp_path, address):

            async def is_recovered() -> bool:
                states = {row[0] for row in await deliveries(store, "state")}
                return states == {"succeeded"} and len(receiver.requests) >= PETS * CHANGES

            await eventually(is_recovered, 60)
    assert_complete_and_in_order(receiver)
    sequences = [row[0] for row in await deliveries(store, "sequence")]
    assert sequences == [*range(1, PETS * CHANGES + 1)]
    # A kill repeats only what was under way: attempts, and outcomes that are not saved yet.
    assert len(receiver.requests) <= PETS * CHANGES + KILLS * 16


async def test_a_service_starts_a_process_for_deliveries_replaces_it_and_reports_its_lag(
    start: StartServer, database: Path
) -> None:
    secret_in(database.parent)
    metrics = f"http://127.0.0.1:{(port := free_port())}/metrics"
    options = ("--webhook-network", "127.0.0.0/8", "--metrics-port", str(port))

    async def page() -> str:
        async with httpx.AsyncClient(timeout=1) as client:
            try:
                return (await client.get(metrics)).text
            except httpx.TimeoutException:  # the frozen process has the connection
                return ""

    async def is_late() -> bool:
        ages = re.findall(r"^petstore_oldest_delivery_seconds (.*)", await page(), re.MULTILINE)
        return any(float(age) > 1 for age in ages)

    async def are_counted() -> bool:
        counted = 'petstore_deliveries_total{outcome="succeeded"} 3.0\n'
        return counted in (text := await page()) and "petstore_workers 1.0\n" in text

    async with receiving() as receiver, open_store(database) as store:
        await add_webhook(store, await issue_key(store), url=receiver.url)
        server = await asyncio.to_thread(start, *options, delivers=True)
        await store.write(create_pets([NewPet("Bella", 1)]))
        await eventually(lambda: len(receiver.requests) == 1, 30)
        _, deliverer = server.workers()  # the one that was started last

        def added() -> Unit[object]:
            os.kill(deliverer, signal.SIGSTOP)  # it does not have the lock: this unit has
            return (yield from create_pets([NewPet("Ada", 1)], system_clock()))

        await store.write(added())
        await eventually(is_late, 30)
        os.kill(deliverer, signal.SIGCONT)
        await eventually(lambda: len(receiver.requests) == 2, 30)
        os.kill(deliverer, signal.SIGTERM)
        await store.write(create_pets([NewPet("Rex", 1)]))
        await eventually(lambda: len(receiver.requests) == 3, 30)
        await eventually(are_counted, 30)
    assert await asyncio.to_thread(server.stop) == 0


@pytest.mark.each_database
async def test_a_service_starts_its_process_for_deliveries_once_there_is_a_webhook(
    start: StartServer, tmp_path: Path, address: str, store: Store
) -> None:
    secret = str(secret_in(tmp_path))
    options = ("--webhook-network", "127.0.0.0/8", "--secret-file", secret)
    server = await asyncio.to_thread(start, *options, database=address, delivers=True)
    (worker,) = server.workers()
    async with receiving() as receiver:
        await add_webhook(store, await issue_key(store), url=receiver.url)
        await eventually(lambda: len(server.workers()) == 2, 30)
        await store.write(create_pets([NewPet("Bella", 1)]))
        await eventually(lambda: len(receiver.requests) == 1, 30)
        _, deliverer = server.workers()
        os.kill(deliverer, signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        await eventually(lambda: len({*server.workers()} - {worker, deliverer}) == 2, 30)
    assert await asyncio.to_thread(server.stop) == 0


async def test_a_standalone_deliverer_reports_metrics(tmp_path: Path, postgres_url: str) -> None:
    port = free_port()
    with Deliverer(tmp_path, postgres_url, "--metrics-port", str(port)) as started:
        await eventually(lambda: "deliveries_started" in started.logged(), 30)
        async with httpx.AsyncClient() as client:
            page = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        assert "petstore_oldest_delivery_seconds 0.0\n" in page
        assert "petstore_workers 0.0\n" in page
        assert await asyncio.to_thread(started.stop) == 0
