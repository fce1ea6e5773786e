"""One request of a key at a time, and few of all."""

import asyncio

import pytest

from petstore.interface.turns import Turns

pytestmark = pytest.mark.anyio


async def test_requests_of_a_key_run_one_by_one_in_order_beside_those_of_others() -> None:
    turns, begun, may_end = Turns(9, "", ""), list[tuple[int, int]](), asyncio.Event()

    async def run(key_id: int, number: int) -> None:
        async with turns.turn(key_id):
            begun.append((key_id, number))
            await may_end.wait()

    running = [asyncio.create_task(run(key_id, n)) for n in range(3) for key_id in (1, 2)]
    await asyncio.sleep(0)
    assert begun == [(1, 0), (2, 0)]
    may_end.set()
    await asyncio.gather(*running)
    assert [n for key_id, n in begun if key_id == 1] == [0, 1, 2]
