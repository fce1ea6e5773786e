"""A process is killed while it writes: what it acknowledged is there."""

import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from petstore.domain.pets import NewPet, PetFilter
from petstore.storage.pets import add_pet, pet_of, select_pets
from support.stores import open_store

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("endless_writer.py")


def acknowledged_until_killed(database: Path, count: int) -> list[int]:
    """Let a process write, kill it after ``count`` ids, and return every id it acknowledged."""
    writer = subprocess.Popen([sys.executable, WRITER, database], stdout=subprocess.PIPE)
    with writer:
        assert writer.stdout is not None
        ids = [int(line) for line in islice(writer.stdout, count)]
        writer.send_signal(signal.SIGKILL)
        return ids + [int(line) for line in writer.stdout]


async def test_kill_9_loses_nothing_that_was_acknowledged(database: Path) -> None:
    acknowledged: list[int] = []
    for count in (1, 50, 333):
        ids = acknowledged_until_killed(database, count)
        assert len(ids) >= count
        assert min(ids) > max(acknowledged, default=0)
        acknowledged += sorted(ids)
    async with open_store(database) as store:
        rows = await store.read(select_pets(PetFilter(), None, 1_000_000))
        found = [pet_of(row).id for row in rows]
        assert set(acknowledged) <= set(found)
        assert (await store.write(add_pet(NewPet("Oskar", 1)))).id > max(found)
