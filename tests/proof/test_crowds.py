"""Load beside a good client: requests at a fixed rate, and their results."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from attackers import Target, attack
from good_client import Requests
from proof.crowd import judge_good_client
from proof.experiment import Trial
from proof.experiments.crowds import _Counting, _open_loop
from support.served import Echo, served

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def test_requests_are_sent_by_the_clock_and_their_responses_counted() -> None:
    with served(Echo()) as server:
        target, began = Target(server.port, 0, "", ""), time.monotonic()
        seen = asyncio.run(attack(_open_loop(GET, 200), target, 2, 1, 1))
        most = 2 * 200 * (time.monotonic() - began)
    assert 50 < seen["due"] <= most
    assert seen["sent"] == seen["due"]
    assert 0 < seen["200"] <= seen["sent"]


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_statuses_are_counted_wherever_responses_are_cut(size: int) -> None:
    seen: Counter[str] = Counter()
    counting = _Counting(seen)
    data = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 201 Created\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    for at in range(0, len(data), size):
        counting.data_received(data[at : at + size])
    assert seen == {"200": 2, "201": 1}


@pytest.mark.parametrize(
    ("good", "said"),
    [
        (Requests([5.0] * 100, 1, 1), "beside: 1 of 100 requests failed"),
        (Requests([5.0] * 90 + [3_000.0] * 10, 0, 1), "beside: p99 of the good client is 3.00 s"),
    ],
)
def test_a_good_client_that_fails_or_waits_breaks_the_promise(
    good: Requests, said: str, tmp_path: Path
) -> None:
    trial = Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret
    judge_good_client(trial, "beside", good, 2)
    assert trial.broken == [said]
