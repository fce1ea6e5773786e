"""Lists that are read while pets change: no page is older than what was acknowledged before."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

import uvloop

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.wire import Response, Wire, request
from support.postgres import PostgresServer, postgres_server
from support.redis_server import redis_server

_WRITERS = 4
_READERS = 24
_SHELVES = 6
_MOST = 12
_PAUSE_SECONDS = 0.003  # there are more lists than changes
GONE = 2**62
_QUERIES = ("", "&status=available", "&sort=-id", "&sort=-id&status=available")


class Shelf:
    """The pets of one category, which one writer changes.

    ``acknowledged`` has the number of the last change of each, which is in its name, and ``GONE``
    for those that were deleted. What is just being deleted is in ``leaving``.
    """

    def __init__(self, category: int) -> None:
        self.category = category
        self.acknowledged: dict[int, int] = {}
        self.leaving: set[int] = set()

    @property
    def present(self) -> list[int]:
        """The ids of the pets that are there."""
        return [pet_id for pet_id, number in self.acknowledged.items() if number != GONE]

    def stale(self, before: Mapping[int, int], page: list[dict[str, Any]]) -> list[int]:
        """Return the pets of which a page shows less than was acknowledged ``before``."""
        shown = {pet["id"]: int(pet["name"].split()[1]) for pet in page}
        absent = dict.fromkeys(self.leaving, GONE)
        return [one for one, number in before.items() if (absent | shown).get(one, -1) < number]


class _Clients:
    """Those who change pets and those who list them, until the time is over."""

    def __init__(self, trial: Trial, deployment: Deployment) -> None:
        self._trial = trial
        self._port = deployment.port()
        self._token = deployment.token
        self._ends = time.monotonic() + trial.seconds
        self._shelves = [Shelf(category) for category in range(1, _SHELVES + 1)]

    async def run(self) -> None:
        """Let them work, and count what they saw."""
        await asyncio.gather(
            *(self._write(self._shelves[number::_WRITERS]) for number in range(_WRITERS)),
            *(self._read() for _ in range(_READERS)),
        )

    async def _write(self, shelves: list[Shelf]) -> None:
        wire, random = await self._connected(), Random(self._trial.random.random())
        number = 0
        while time.monotonic() < self._ends or number < _MOST:
            number += 1
            await self._change(wire, random, random.choice(shelves), number)
            self._trial.count("acknowledged changes")
            await asyncio.sleep(_PAUSE_SECONDS)
        wire.close()

    async def _change(self, wire: Wire, random: Random, shelf: Shelf, number: int) -> None:
        pet = {"name": f"Bella {number}", "categoryId": shelf.category, "status": "available"}
        present = shelf.present
        if len(present) < random.randint(1, _MOST):
            created = await self._ask(wire, "POST", "/v1/pets", 201, pet)
            shelf.acknowledged[created.content["id"]] = number
            return
        changed = random.choice(present)
        if random.random() < 1 / _MOST:
            shelf.leaving.add(changed)
            await self._ask(wire, "DELETE", f"/v1/pets/{changed}", 204)
            shelf.acknowledged[changed] = GONE
        else:
            await self._ask(wire, "PATCH", f"/v1/pets/{changed}", 200, {"name": pet["name"]})
            shelf.acknowledged[changed] = number

    async def _read(self) -> None:
        wire, random = await self._connected(), Random(self._trial.random.random())
        while True:
            shelf, query = random.choice(self._shelves), random.choice(_QUERIES)
            before = shelf.acknowledged.copy()
            target = f"/v1/pets?categoryId={shelf.category}{query}&limit=100"
            page = (await self._ask(wire, "GET", target, 200)).content
            old = shelf.stale(before, page)
            self._trial.expect(not old, f"{target} was older than a change of {old}")
            self._trial.count("lists")
            if time.monotonic() >= self._ends:
                break
        wire.close()

    async def _connected(self) -> Wire:
        wire = Wire()
        await wire.connect(self._port)
        return wire

    async def _ask(
        self, wire: Wire, method: str, target: str, status: int, body: object = None
    ) -> Response:
        response = await wire.ask(request(method, target, self._token, body))
        assert response.status == status, (method, target, response)
        return response


def _run(workers: int, trial: Trial, postgres: PostgresServer | None = None) -> None:
    with (
        redis_server() as redis,
        deployed(
            trial.folder / "store", workers=workers, redis=redis, postgres=postgres
        ) as deployment,
    ):
        uvloop.run(_Clients(trial, deployment).run())


def _run_on_postgres(trial: Trial) -> None:
    with postgres_server() as postgres:
        _run(2, trial, postgres)


EXPERIMENTS = [
    Experiment(
        f"lists beside changes, {name}",
        "A list that is asked for after a change was acknowledged shows that change, whichever"
        " process responds.",
        f"{_WRITERS} clients add, rename and delete pets of {_SHELVES} categories, and"
        f" {_READERS} list them by category, status and order. The name of a pet has the number"
        " of its change. Before each list, its client notes which changes are acknowledged; a"
        " pet with a lower number, one that was deleted and one that is missing break the"
        " promise.",
        run,
        share=1,
        min_seconds=5,
    )
    for name, run in (
        ("SQLite, one worker", partial(_run, 1)),
        ("SQLite, two workers", partial(_run, 2)),
        ("PostgreSQL, two workers", _run_on_postgres),
    )
]
