"""Many endpoints at once: one that is dead keeps no other waiting."""

import pytest

from petstore.clock import system_clock
from petstore.pets.model import NewPet
from support.changes import create_pets
from support.delivering import add_webhook, delivering, issue_with_webhooks
from support.memory_folder import folder_in_memory
from support.receivers import OK, Request, Writer, receiving, silent
from support.stores import open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

WEBHOOKS = 200


async def test_a_dead_endpoint_among_200_does_not_delay_the_others() -> None:
    took = 0

    async def count(_: Request, writer: Writer) -> None:
        nonlocal took
        took += 1
        writer.write(OK)

    with folder_in_memory() as folder:
        async with (
            open_store(folder / "petstore.db") as store,
            receiving(count) as alive,
            receiving(silent) as dead,
        ):
            key_id = await issue_with_webhooks(store, system_clock)
            await add_webhook(store, key_id, dead.url)
            for number in range(1, WEBHOOKS):
                await add_webhook(store, key_id, f"{alive.url}/{number}")
            async with delivering(store, system_clock, seconds=300):
                await store.write(create_pets([NewPet("Bella", 1, "available")] * 2))
                await eventually(lambda: dead.under_way == 2, 30)
                await store.write(create_pets([NewPet("Bella", 1, "available")] * 2))
                await eventually(lambda: took == 4 * (WEBHOOKS - 1), 30)
                # All others have their events, and not one attempt of the dead one has ended.
                await eventually(lambda: dead.under_way == 4)
                assert (dead.connections, dead.under_way) == (4, 4)
