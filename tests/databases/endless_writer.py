"""A process that adds pets to the file it is given, and prints each id that is acknowledged."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.events.store import Change
from petstore.pets.model import NewPet
from petstore.pets.store import create_pet


async def write_for_ever(store: SqliteStore) -> None:
    while True:
        with suppress(Unavailable):
            pet = await store.write(create_pet(Change(0), NewPet("Bella", 1)))
            os.write(sys.stdout.fileno(), b"%d\n" % pet.id)


async def main(database: Path) -> None:
    """Write from several tasks at once, so that commits are shared."""
    store = SqliteStore(database)
    store.migrate()
    await store.open()
    await asyncio.gather(*(write_for_ever(store) for _ in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
