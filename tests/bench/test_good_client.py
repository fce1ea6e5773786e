"""The good client times each request from when it was due, and counts those that fail."""

import asyncio
from functools import partial
from threading import Timer

import pytest

from good_client import Requests, request_steadily
from support.served import Echo, served

SECONDS = 0.2


def asked(port: int, *, keeps_alive: bool = True, timeout: float = 30) -> Requests:
    return asyncio.run(
        request_steadily(port, "token", SECONDS, keeps_alive=keeps_alive, timeout=timeout)
    )


@pytest.mark.parametrize("keeps_alive", [True, False])
def test_lists_and_gets_alternate_and_none_fails(*, keeps_alive: bool) -> None:
    app = Echo()
    with served(app) as server:
        requests = asked(server.port, keeps_alive=keeps_alive)
    assert requests.failed == 0
    paths = [request.path for request in app.seen]
    assert paths.count("/v1/pets") == paths.count("/v1/pets/7") == 10
    assert 0 < requests.percentile(0.5) <= requests.percentile(0.99) == max(requests.times)


def test_all_requests_that_a_freeze_delays_are_late() -> None:
    app = Echo()
    free = Timer(0.5, partial(setattr, app, "is_free", lambda: True))
    app.is_free = lambda: False
    with served(app) as server:
        free.start()
        requests = asked(server.port)
    assert requests.failed == 0
    # The last was due after 0.19 s. Only the first eight were sent before the freeze ended.
    assert min(requests.times) > 250


def test_requests_without_a_response_fail_and_their_waiting_time_is_counted() -> None:
    app = Echo()
    app.is_free = lambda: False
    with served(app) as server:
        requests = asked(server.port, timeout=0.3)
        app.is_free = lambda: True
    assert requests.failed == len(requests.times) == 20
    assert min(requests.times) >= 300
