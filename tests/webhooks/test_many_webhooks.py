"""Many endpoints at once: one that is dead keeps no other waiting."""

import time
from contextlib import AsyncExitStack
from statistics import median

import pytest

from petstore.clock import system_clock
from petstore.domain.pets import NewPet
from support.changes import create_pets
from support.delivering import add_webhook, delivering, issue_with_webhooks
from support.memory_folder import folder_in_memory
from support.receivers import OK, Receiver, Request, Writer, receiving, silent
from support.stores import open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

WEBHOOKS = 200


async def test_a_dead_endpoint_among_200_does_not_delay_the_others() -> None:
    arrived: dict[str, list[float]] = {}

    async def note(request: Request, writer: Writer) -> None:
        arrived.setdefault(request.line, []).append(time.monotonic())
        writer.write(OK)

    with folder_in_memory() as folder:
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(open_store(folder / "petstore.db"))
            alive: Receiver = await opened.enter_async_context(receiving(note))
            dead: Receiver = await opened.enter_async_context(receiving(note))
            key_id = await issue_with_webhooks(store, system_clock)
            for number in range(WEBHOOKS - 1):
                await add_webhook(store, key_id, f"{alive.url}/{number}")
            await add_webhook(store, key_id, f"{dead.url}/dead")
            await opened.enter_async_context(delivering(store, system_clock))

            async def lag(count: int) -> float:
                """Add animals; return the median of when each endpoint that lives had them all."""
                arrived.clear()
                began = time.monotonic()
                await store.write(create_pets([NewPet("Bella", 1, "available")] * count))
                wanted = count * (WEBHOOKS - 1)
                await eventually(lambda: sum(map(len, arrived.values())) >= wanted, 60)
                return median(moments[-1] for moments in arrived.values()) - began

            with_all = await lag(4)
            dead.behaviour = silent
            with_one_dead = await lag(4)
            await eventually(lambda: dead.under_way == 4)
    assert with_one_dead < 2 * with_all + 1
