"""The program of the guide that keeps two stores equal, and a shop in which pets change."""

import os
import re
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from random import Random

from petstore_client import Client, PetstoreError
from petstore_client.models import PetStatus
from proof.deployments import Deployment
from proof.processes import Program
from support.callers import Callers

GUIDE = Path(__file__).parent.parent / "docs/sync.md"
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
