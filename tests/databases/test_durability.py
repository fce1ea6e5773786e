"""A process is killed while it writes: acknowledged changes are there."""

from pathlib import Path

import pytest

from petstore.pets.model import PETS, NewPet
from support.changes import create_pet
from support.other_processes import EndlessWriter
from support.rows import select_pets
from support.stores import open_store

pytestmark = pytest.mark.anyio


async def test_kill_9_loses_nothing_that_was_acknowledged(database: Path) -> None:
    acknowledged: list[int] = []
    for count in (1, 50, 333):
        with EndlessWriter(database) as writer:
            writer.wait_for(count)
        assert min(writer.acknowledged) > max(acknowledged, default=0)
        acknowledged += sorted(writer.acknowledged)
    async with open_store(database) as store:
        rows = await store.read(select_pets(1_000_000))
        found = [PETS.read(row).id for row in rows]
        assert set(acknowledged) <= set(found)
        assert (await store.write(create_pet(NewPet("Oskar", 1)))).id > max(found)
