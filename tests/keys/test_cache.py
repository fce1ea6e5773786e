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


@pytest.mark.parametrize("token", [b"", b"ps_live_x", b"\xff" * 46, b"x" * 10_000])
async def test_an_invalid_token_is_refused(ring: ApiKeyCache, token: bytes) -> None:
    assert await ring.find(token) is None


async def test_a_typo_is_refused_without_a_query(ring: ApiKeyCache, store: WatchedStore) -> None:
    token = new_token("production")
    assert not await opens(ring, token[:-1] + ("a" if token[-1] == "b" else "b"))
    assert store.reads == 0
    assert not await opens(ring, token)
    assert store.reads == 1


@pytest.mark.parametrize(("here", "there"), [("production", "staging"), ("staging", "production")])
async def test_a_key_of_one_environment_is_refused_in_the_other(
    store: WatchedStore, clock: ManualClock, here: Environment, there: Environment
) -> None:
    issued = await issue(store, clock, environment=there)
    assert not await opens(ApiKeyCache(store, clock, here), issued.token)
    assert await opens(ApiKeyCache(store, clock, there), issued.token)


async def test_the_environment_of_the_key_overrides_that_of_its_token(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    await store.write(do("UPDATE api_keys SET environment = 'staging'"))
    assert not await opens(ring, issued.token)


async def test_a_key_revoked_by_another_process_is_refused_after_the_next_refresh(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock, database: Path
) -> None:
    issued = await issue(store, clock)
    assert await opens(ring, issued.token)
    async with open_store(database) as other:
        await revoke(other, clock, issued.id)
    await ring.refresh()
    assert not await opens(ring, issued.token)


async def revoked_while_it_is_looked_up(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> tuple[str, asyncio.Task[bool]]:
    """Revoke a key and refresh; return its token, and its look-up, whose row is still to arrive."""
    issued = await issue(store, clock)
    await ring.refresh()
    store.slow = True
    finding = asyncio.create_task(opens(ring, issued.token))
    await store.under_way.wait()
    await revoke(store, clock, issued.id)
    await ring.refresh()
    return issued.token, finding


async def test_a_row_that_was_read_during_a_revocation_is_not_cached(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    token, finding = await revoked_while_it_is_looked_up(ring, store, clock)
    store.may_arrive.set()
    await finding
    assert not await opens(ring, token)


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


async def test_a_lookup_from_before_a_revocation_is_not_shared_after_it(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    token, finding = await revoked_while_it_is_looked_up(ring, store, clock)
    assert not await opens(ring, token)
    store.may_arrive.set()
    await finding


async def test_a_change_takes_effect_after_the_next_refresh(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    token = issued.token.encode()
    assert await ring.find(token) == await stored_key(store, issued.id)
    await change(store, clock, issued.id, plan="business")
    await ring.refresh()
    found = await ring.find(token)
    assert found is not None
    assert found.plan == "business"
    assert found == await stored_key(store, issued.id)


async def test_unchanged_keys_are_found_in_memory(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    await ring.refresh()
    assert await opens(ring, issued.token)
    await ring.refresh()
    reads = store.reads
    for _ in range(5):
        assert await opens(ring, issued.token)
    assert store.reads == reads


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


async def test_a_revocation_ends_rotated_tokens(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    old = await issue(store, clock)
    new = await rotate(store, clock, old.id, 60 * SECOND)
    await revoke(store, clock, old.id)
    assert not await opens(ring, old.token)
    assert not await opens(ring, new.token)


async def test_only_a_well_formed_token_that_was_never_found_is_new(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    token = (await issue(store, clock)).token.encode()
    assert not ring.is_new(b"malformed")
    assert not ring.is_new(new_token("staging").encode())
    assert ring.is_new(new_token("production").encode())
    assert ring.is_new(token)
    await ring.find(token)
    assert not ring.is_new(token)


async def test_a_token_that_was_deleted_from_the_database_is_new_again(
    ring: ApiKeyCache, store: WatchedStore, clock: ManualClock
) -> None:
    """As after an older backup was restored."""
    token = (await issue(store, clock)).token.encode()
    await ring.find(token)
    await store.write(do("DELETE FROM api_key_tokens"))
    await store.write(do("UPDATE api_key_revision SET revision = revision + 1"))
    await ring.refresh()
    assert await ring.find(token) is None
    assert ring.is_new(token)
