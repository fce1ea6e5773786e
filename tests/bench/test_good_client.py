"""The good client times each request from when it was due, and counts those that fail."""

import asyncio
import socket
from functools import partial
from threading import Timer

import pytest

from good_client import Requests, Wire, request_steadily
from support.served import Echo, served
from support.waiting import eventually
from works import get

SECONDS = 0.2


def asked(port: int, *, keeps_alive: bool = True, timeout: float = 30) -> Requests:
    return asyncio.run(
        request_steadily(port, "token", SECONDS, keeps_alive=keeps_alive, timeout=timeout)
    )


@pytest.mark.parametrize("keeps_alive", [True, False])
def test_a_service_that_responds_fails_no_request(*, keeps_alive: bool) -> None:
    app = Echo()
    with served(app) as server:
        requests = asked(server.port, keeps_alive=keeps_alive)
    assert requests.failed == 0
    assert len(requests.times) == len(app.seen) == 20


def test_lists_and_gets_are_asked_in_turn() -> None:
    app = Echo()
    with served(app) as server:
        asked(server.port)
    paths = [request.path for request in app.seen]
    assert paths.count("/v1/pets") == paths.count("/v1/pets/7") == 10


def test_all_requests_that_a_freeze_holds_up_are_late() -> None:
    app = Echo()
    free = Timer(0.5, partial(setattr, app, "is_free", lambda: True))
    app.is_free = lambda: False
    with served(app) as server:
        free.start()
        requests = asked(server.port)
    assert requests.failed == 0
    # The last was due after 0.19 s. Only the first eight were sent before the freeze ended.
    assert min(requests.times) > 250
    assert requests.percentile(0.5) > 300


def test_requests_without_a_response_fail_and_count_with_the_time_they_waited() -> None:
    app = Echo()
    app.is_free = lambda: False
    with served(app) as server:
        requests = asked(server.port, timeout=1)
        app.is_free = lambda: True
    assert requests.failed == len(requests.times) == 20
    assert min(requests.times) >= 1000


def test_requests_fail_where_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert asked(bound.getsockname()[1]).failed == 20


@pytest.mark.anyio
async def test_a_connection_that_the_service_closed_between_requests_is_opened_again() -> None:
    with served(Echo(), seconds=0.005) as server:
        wire = Wire(server.port)
        for _ in range(2):
            assert await wire.ask(get("/v1/pets/7", "token"))
            await eventually(wire.was_closed)
        wire.close()


def test_a_percentile_is_the_time_within_which_so_many_had_a_response() -> None:
    requests = Requests([float(number) for number in range(100, 0, -1)], 0, 1)
    assert (requests.percentile(0.5), requests.percentile(0.99)) == (51, 100)
