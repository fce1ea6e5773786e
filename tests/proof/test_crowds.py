"""Load beside a good client: requests at a fixed rate, and what is expected of the good client."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from attackers import Target, attack
from good_client import Requests
from proof.crowd import judge_good_client
from proof.experiment import Trial
from proof.experiments.crowds import _open_loop
from support.served import Echo, served

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def test_requests_are_sent_on_schedule_without_waiting_for_responses() -> None:
    app = Echo()
    app.is_free = lambda: False
    with served(app) as server:
        seen = asyncio.run(attack(_open_loop(GET, 200), Target(server.port, 0, "", ""), 2, 1, 0.5))
        app.is_free = lambda: True
    assert 2 < seen["sent"] <= seen["due"]
    assert seen["200"] == 0


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
