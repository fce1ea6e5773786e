"""Cached responses are never stale, and the cache has a maximum size."""

import asyncio

import pytest

from petstore.http.messages import Response
from petstore.interface.response_cache import ResponseCache
from petstore.limits.contract import State
from petstore.limits.database import StoredRateLimits
from petstore.pets.model import NewPet
from support.changes import create_pet
from support.service import Service
from support.waiting import eventually

pytestmark = pytest.mark.anyio

GENERATION = 10_000


class Reader:
    """Makes responses of ``size`` bytes and counts them."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.reads = 0

    async def __call__(self) -> Response:
        self.reads += 1
        return Response(200, b"x" * self.size, [])


async def test_a_change_empties_the_cache(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()
    for expected in (1, 2):
        await cache.get(("", "/v1/pets", b""), read)
        await cache.get(("", "/v1/pets", b""), read)
        assert read.reads == expected
        await service.store.write(create_pet(NewPet("Bella", 1)))


async def test_a_response_read_before_a_change_is_not_cached_after_it(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()

    async def read_slowly() -> Response:
        await service.store.write(create_pet(NewPet("Bella", 1)))
        await asyncio.sleep(0)
        await cache.get(("", "/v1/store/inventory", b""), read)
        return await read()

    await cache.get(("", "/v1/pets", b""), read_slowly)
    await cache.get(("", "/v1/pets", b""), read)
    assert read.reads == 3


async def test_each_query_has_its_own_response(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()
    for query in (b"limit=1", b"limit=2", b"limit=1&x", b""):
        await cache.get(("", "/v1/pets", query), read)
    assert read.reads == 4


async def test_used_responses_stay_cached_longer_than_unused_ones(service: Service) -> None:
    cache, read = ResponseCache(service.store, GENERATION), Reader(1000)
    for n in range(20):
        await cache.get(("", "/v1/pets", b"in use"), read)
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    assert read.reads == 21
    await cache.get(("", "/v1/pets", b"0"), read)
    assert read.reads == 22


@pytest.mark.parametrize(("size", "queries"), [(GENERATION, 1), (3000, 20), (100, 50)])
async def test_the_cache_has_at_most_two_generations(
    service: Service, size: int, queries: int
) -> None:
    cache, read = ResponseCache(service.store, GENERATION), Reader(size)
    for n in range(queries):
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    for n in reversed(range(queries)):
        await cache.get(("", "/v1/pets", b"%d" % n), read)
    cached = 2 * queries - read.reads
    assert cached * size <= 2 * GENERATION


async def test_saving_rate_limits_does_not_empty_the_cache(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()
    states = StoredRateLimits(service.store)
    await service.issue()
    for used in range(1, 4):
        await states.save([(1, State(day_used=used, used_at=used))])
        await eventually(service.store.version)
        await cache.get(("", "/v1/pets", b""), read)
    assert read.reads == 1
