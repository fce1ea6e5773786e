"""Two stores that a program keeps equal, while it and both services are killed."""

import os
import re
import socket
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random

from petstore_client import Client, PetstoreError
from petstore_client.models import PetStatus
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.processes import Program
from support.callers import Callers
from support.waiting import within

GUIDE = Path(__file__).parents[2] / "docs/sync.md"
_STATUSES: tuple[PetStatus | None, ...] = ("available", "pending", "sold", None)
_PAUSE_SECONDS = 0.005


def program() -> str:
    """Return the program that the guide shows."""
    (found,) = re.findall(r"```python\n(# mirror\.py\n.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(found)


def client_of(deployment: Deployment) -> Client:
    """Return a client of a service, with a key without limits."""
    return Client(deployment.token, f"{deployment.server.url}/v1")


def pets(client: Client) -> Counter[tuple[str, int, str | None]]:
    """Return what is in a store, whatever the ids are."""
    return Counter((pet.name, pet.category_id, pet.status) for pet in client.pets.list())


def start_mirror(folder: Path, shop: Deployment, copy: Deployment) -> Program:
    """Start the program of the guide in ``folder``, where it keeps its state."""
    (folder / "mirror.py").write_text(program())
    environment = {
        **os.environ,
        "PETSTORE_URL": f"{shop.server.url}/v1",
        "PETSTORE_KEY": shop.token,
        "COPY_URL": f"{copy.server.url}/v1",
        "COPY_KEY": copy.token,
    }
    started = Program(folder, folder / "mirror.log", environment, lambda: ("mirror.py",))
    started.start()
    return started


def kept_rows(folder: Path) -> int:
    """Return how many pets the program in ``folder`` keeps in its state."""
    with closing(sqlite3.connect(folder / "mirror.db")) as state:
        ((rows,),) = state.execute("SELECT count(*) FROM pets")
    return int(rows)


class Shop(Callers):
    """Adds, changes and deletes pets of a store until the block ends."""

    def __init__(self, client: Client, random: Random) -> None:
        self._client = client
        self._random = random
        self._ids: list[int] = []
        super().__init__(self._trade, 1)

    def _trade(self, _: int) -> None:
        while not self.stop.wait(_PAUSE_SECONDS):
            with suppress(PetstoreError):  # the service was killed, or a status cannot follow
                self._change()

    def _change(self) -> None:
        draw, pets = self._random, self._client.pets
        kind, status = draw.random(), draw.choice(_STATUSES)
        name, category_id = f"Pet {draw.getrandbits(30)}", draw.randint(1, 5)
        if kind < 0.4 or not self._ids:
            pet = pets.create(name=name, category_id=category_id, status=status)
            self._ids.append(pet.id)
        elif kind < 0.5:
            pets.delete(self._ids.pop(draw.randrange(len(self._ids))))
        elif kind < 0.75:
            pets.update(draw.choice(self._ids), status=status)
        else:
            pets.update(draw.choice(self._ids), name=name, category_id=category_id)


_KILLS = 12
_EQUAL_SECONDS = 60.0


@contextmanager
def _stores(trial: Trial, number: int) -> Iterator[tuple[Deployment, Deployment]]:
    """Run two services, each at an address that outlives kills, until the block ends."""
    with ExitStack() as stack:
        shop, copy = (
            stack.enter_context(
                deployed(
                    trial.folder / f"{name}-{number}",
                    listener=stack.enter_context(socket.create_server(("127.0.0.1", 0))),
                )
            )
            for name in ("shop", "copy")
        )
        yield shop, copy


def _run(trial: Trial) -> None:
    for number in trial.rounds():
        with _stores(trial, number) as (shop, copy):
            # The state of the program belongs to these two stores.
            folder = trial.folder / f"mirror-{number}"
            folder.mkdir()
            keep_equal(trial, folder, shop, copy)


def keep_equal(trial: Trial, folder: Path, shop: Deployment, copy: Deployment) -> None:
    """Kill the program and the services in turn while pets change, then compare the stores.

    The program keeps its state in ``folder``.
    """
    with client_of(shop) as client, client_of(copy) as other:
        mirror = start_mirror(folder, shop, copy)
        targets = {
            "the program": mirror.stop_and_start,
            "the service of the shop": shop.kill_service,
            "the service of the copy": copy.kill_service,
        }
        try:
            with Shop(client, trial.random) as trading:
                for turn in range(_KILLS):
                    trading.stop.wait(trial.random.uniform(0.1, 0.6))
                    name = [*targets][turn % 4 % 3]  # the program twice as often
                    targets[name]()
                    trial.count(f"kills of {name}")
                    trial.count("kills")
            is_equal = within(_EQUAL_SECONDS, lambda: pets(client) == pets(other))
            trial.expect(is_equal, "the stores are not equal")
            if is_equal:
                total = pets(client).total()
                is_lean = within(_EQUAL_SECONDS, lambda: kept_rows(folder) == total)
                trial.expect(is_lean, "the program keeps rows of deleted pets")
            trial.expect(mirror.is_running, "the program ended by itself")
            trial.count("pets compared", pets(client).total())
        finally:
            mirror.stop()


EXPERIMENTS = [
    Experiment(
        "two equal stores",
        "The program of [the guide](../docs/sync.md) keeps a store equal to"
        " another, whatever is killed: it misses no change and adds no pet twice.",
        "Pets are added, changed and deleted without pause. Every 0.1 to 0.6 s the program or"
        " one of the two services gets `kill -9` and starts again. At the end the pets of both"
        " stores are compared by name, category and status.",
        _run,
        1,
        20,
    )
]
