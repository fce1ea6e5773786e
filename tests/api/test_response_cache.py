"""Answers are kept no longer than they are true, and no more of them than there is room for."""

import pytest

from petstore.api.messages import Response
from petstore.api.response_cache import ResponseCache
from petstore.domain.pets import NewPet
from petstore.store.pets import create_pet
from support.service import Service

pytestmark = pytest.mark.anyio

MEGABYTE = 2**20


class Reader:
    """Makes answers of so many bytes, and counts how many it was asked for."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.reads = 0

    async def __call__(self) -> Response:
        self.reads += 1
        return Response(200, b"x" * self.size, [])


async def test_an_answer_is_not_kept_over_a_change(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()
    for expected in (1, 2):
        await cache.of("/v1/pets", b"", read)
        await cache.of("/v1/pets", b"", read)
        assert read.reads == expected
        await service.store.write(create_pet(NewPet("Bella", 1)))


async def test_an_answer_to_one_query_is_not_given_to_another(service: Service) -> None:
    cache, read = ResponseCache(service.store), Reader()
    for query in (b"limit=1", b"limit=2", b"limit=1&x", b""):
        await cache.of("/v1/pets", query, read)
    assert read.reads == 4


@pytest.mark.parametrize(("size", "queries"), [(9, 1), (3, 5), (1, 50)])
async def test_what_there_is_no_room_for_is_read_again(
    service: Service, size: int, queries: int
) -> None:
    cache, read = ResponseCache(service.store), Reader(size * MEGABYTE)
    for _ in range(2):
        for n in range(queries):
            await cache.of("/v1/pets", b"%d" % n, read)
    kept = 2 * queries - read.reads
    assert kept * size <= 8
