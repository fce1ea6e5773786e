"""The usage of the demo key."""

from pathlib import Path

import pytest

from petstore.clock import DAY
from petstore.databases.contract import Statement
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings
from support.manual_clock import ManualClock
from support.stores import open_store

pytestmark = pytest.mark.anyio


async def test_the_key_was_used_on_each_of_the_last_30_days_before_today(
    database: Path, clock: ManualClock
) -> None:
    today = clock.now // DAY
    async with open_store(database) as store:
        await prepare_demo(store, Settings(database=f"sqlite:///{database}"), clock)
        select = "SELECT day, requests FROM usage WHERE key_id = 1 ORDER BY day"
        used = dict(await store.read(Statement(select)))
        select = (
            "SELECT hour / 24, sum(count) FROM counts WHERE kind = 'response' AND name < '429'"
            " GROUP BY hour"
        )
        responses = dict(await store.read(Statement(select)))
        refused = await store.read(Statement("SELECT count FROM counts WHERE kind = 'refused'"))
        too_many = "SELECT count FROM counts WHERE kind = 'response' AND name = '429'"
        assert refused == await store.read(Statement(too_many))
        select = "SELECT hour / 24 FROM counts WHERE kind = 'deprecated' ORDER BY hour"
        calls = await store.read(Statement(select))
    assert list(used) == list(range(today - 29, today)) == [day for (day,) in calls]
    assert all(0.98 * count <= responses[day] <= count for day, count in used.items())
