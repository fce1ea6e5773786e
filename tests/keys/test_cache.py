"""Which tokens open the service, now and after changes made elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from petstore.clock import SECOND
from petstore.databases.contract import Row, Statement
from petstore.databases.sqlite import SqliteStore
from petstore.keys.model import Environment, new_token
from petstore.keys.store import ApiKeyCache
from support.keys import change, issue, revoke, rotate, stored_key
from support.manual_clock import ManualClock
from support.stores import do, open_store

pytestmark = pytest.mark.anyio


class WatchedStore(SqliteStore):
    """A store that counts its reads, and returns rows late once ``slow`` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads = 0
        self.slow = False
        self.under_way = asyncio.Event()
        self.may_arrive = asyncio.Event()

    async def read(self, statement: Statement) -> list[Row]:
        self.reads += 1
        rows = await super().read(statement)
        if self.slow:
            self.slow = False
            self.under_way.set()
            await self.may_arrive.wait()
        return rows


@pytest.fixture
async def store(database: Path) -> AsyncIterator[WatchedStore]:
    store = WatchedStore(database)
    store.migrate()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def ring(store: WatchedStore, clock: ManualClock) -> ApiKeyCache:
    return ApiKeyCache(store, clock, "production")


async def opens(ring: ApiKeyCache, token: str) -> bool:
    return await ring.find(token.encode()) is not None


async def test_only_a_well_formed_token_that_was_never_found_is_new_and_looked_up(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    typo = bytearray(new_token("production").encode())
    typo[-1] = ord("a" if typo[-1] == ord("b") else "b")
    staging = new_token("staging").encode()
    for malformed in (b"", b"ps_live_x", b"\xff" * 46, b"x" * 10_000, bytes(typo), staging):
        assert not ring.is_new(malformed)
        assert await ring.find(malformed) is None
    assert store.reads == 0
    made_up = new_token("production").encode()
    for _ in range(2):
        assert ring.is_new(made_up)
        assert await ring.find(made_up) is None
    assert store.reads == 2
    token = (await issue(store, clock)).token.encode()
    assert ring.is_new(token)
    assert await ring.find(token) is not None
    assert not ring.is_new(token)
    # As after an older backup was restored.
    await store.write(do("DELETE FROM api_key_tokens"))
    await store.write(do("UPDATE api_key_revision SET revision = revision + 1"))
    await ring.refresh()
    assert await ring.find(token) is None
    assert ring.is_new(token)


@pytest.mark.parametrize(("here", "there"), [("production", "staging"), ("staging", "production")])
async def test_a_key_of_one_environment_is_refused_in_the_other_whatever_its_token(
    store: WatchedStore, clock: ManualClock, here: Environment, there: Environment
) -> None:
    issued = await issue(store, clock, environment=there)
    assert not await opens(ApiKeyCache(store, clock, here), issued.token)
    assert await opens(ApiKeyCache(store, clock, there), issued.token)
    await store.write(do("UPDATE api_keys SET environment = ?1", here))
    assert not await opens(ApiKeyCache(store, clock, there), issued.token)


async def test_a_key_is_read_again_only_after_a_change_by_any_process(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock, database: Path
) -> None:
    issued = await issue(store, clock)
    token = issued.token.encode()
    await ring.refresh()
    assert await ring.find(token) == await stored_key(store, issued.id)
    await ring.refresh()
    reads = store.reads
    for _ in range(5):
        assert await opens(ring, issued.token)
    assert store.reads == reads
    await change(store, clock, issued.id, plan="business")
    await ring.refresh()
    found = await ring.find(token)
    assert found == await stored_key(store, issued.id)
    assert found.plan == "business"
    async with open_store(database) as other:
        await revoke(other, clock, issued.id)
    await ring.refresh()
    assert not await opens(ring, issued.token)


@pytest.mark.parametrize("asks_between", [False, True])
async def test_a_row_that_was_read_during_a_revocation_is_neither_cached_nor_shared(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock, *, asks_between: bool
) -> None:
    issued = await issue(store, clock)
    await ring.refresh()
    store.slow = True
    finding = asyncio.create_task(opens(ring, issued.token))
    await store.under_way.wait()
    await revoke(store, clock, issued.id)
    await ring.refresh()
    if asks_between:
        assert not await opens(ring, issued.token)
    store.may_arrive.set()
    await finding
    assert not await opens(ring, issued.token)


async def test_concurrent_requests_share_one_lookup(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    token = (await issue(store, clock)).token.encode()
    await ring.refresh()
    store.slow = True
    reads = store.reads
    assert ring.is_new(token)
    finding = [asyncio.create_task(ring.find(token)) for _ in range(1000)]
    await store.under_way.wait()
    assert not ring.is_new(token)
    store.may_arrive.set()
    assert None not in await asyncio.gather(*finding)
    assert store.reads == reads + 1


@pytest.mark.parametrize(
    ("life", "graces", "lives"),
    [
        (60, [], [60]),
        (9_000, [0], [0, 9_000]),
        (9_000, [60], [60, 9_000]),
        (60, [3_600], [60, 60]),
        (9_000, [100, 10], [10, 10, 9_000]),
        (9_000, [100, 5_000], [100, 5_000, 9_000]),
    ],
)
async def test_a_token_lives_as_long_as_its_key_and_once_replaced_for_the_grace_period(
    ring: ApiKeyCache,
    store: WatchedStore,
    clock: ManualClock,
    life: int,
    graces: list[int],
    lives: list[int],
) -> None:
    began = clock()
    issued = await issue(store, clock, expires_at=began + life * SECOND)
    tokens = [issued.token]
    tokens += [(await rotate(store, clock, issued.id, each * SECOND)).token for each in graces]
    await ring.refresh()
    for end in sorted(lives):
        for now in (end * SECOND - 1, end * SECOND):
            clock.now = max(began + now, clock.now)
            for token, lives_for in zip(tokens, lives, strict=True):
                assert await opens(ring, token) == (clock() < began + lives_for * SECOND)
