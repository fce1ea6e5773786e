"""Every event must reach the receiver, signed, and in order for each resource."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import httpx
import msgspec
import pytest

from petstore.webhooks.signatures import signed_headers
from proof.deployments import Deployment, deployed
from proof.experiment import Trial
from proof.judging import judge_feed
from proof.ledger import Ledger
from proof.receiver import Received, read_received
from proof.traders import Traders
from proof.webhooks import Webhooks, delivering, judge_deliveries, wrong_deliveries
from support.memory_folder import folder_in_memory
from support.receivers import Request

SECRET = b"s" * 32
FEED = [
    {"id": f"evt_{number}", "resource": f"pet/{number % 2}", "sequence": number}
    for number in range(1, 5)
]
FIRST, SECOND, THIRD, FOURTH = FEED


def delivery(event: dict[str, Any], *, is_accepted: bool = True) -> Received:
    body = msgspec.json.encode(event)
    return Received(signed_headers(event["id"], 1, body, [SECRET]), body, is_accepted)


def verify(one: Received) -> dict[str, Any]:
    return Request("", one.headers, one.body).verified(SECRET)


@pytest.mark.parametrize(
    "received",
    [
        [*map(delivery, (SECOND, FIRST, FIRST, THIRD, FIRST, FOURTH, SECOND))],
        [delivery(THIRD, is_accepted=False), delivery(FIRST), delivery(THIRD)],
    ],
    ids=["twice and in the order of each resource", "again after a refusal"],
)
def test_correctly_delivered_events_break_no_promise(received: list[Received]) -> None:
    assert list(wrong_deliveries(verify, received, FEED)) == []


@pytest.mark.parametrize(
    ("received", "said"),
    [
        ([delivery(THIRD), delivery(FIRST)], "pet/1: event 1 arrived after event 3"),
        (
            [delivery(FIRST)._replace(headers=delivery(SECOND).headers)],
            "the delivery of evt_2 is not verified: ",
        ),
        ([delivery(FIRST | {"sequence": 9})], "evt_1 arrived as {'id': 'evt_1', "),
    ],
    ids=["out of order", "wrong signature", "not in the feed"],
)
def test_a_wrong_delivery_is_reported(received: list[Received], said: str) -> None:
    (found,) = wrong_deliveries(verify, received, FEED)
    assert found.startswith(said)


def test_a_half_written_request_of_a_killed_receiver_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "received.jsonl"
    whole = msgspec.json.encode(delivery(FIRST))
    file.write_bytes(whole + b"\n" + whole[:40])
    assert read_received(file) == [delivery(FIRST)]


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with folder_in_memory() as folder, deployed(folder / "store", webhooks=True) as deployment:
        yield deployment


@pytest.fixture
def webhooks(deployment: Deployment) -> Iterator[Webhooks]:
    with delivering(deployment) as webhooks:
        yield webhooks


def ids_by_lot() -> dict[int, str]:
    """Return an id of an event for each lot that the receiver may draw."""
    return {crc32(f"evt_{number}".encode()) % 100: f"evt_{number}" for number in range(2_000)}


def test_the_receiver_refuses_resets_or_delays_an_event_at_most_once(webhooks: Webhooks) -> None:
    client = httpx.Client()

    def send(lot: int) -> int | str:
        event_id = ids_by_lot()[lot]
        event = FIRST | {"id": event_id}
        content = msgspec.json.encode(event)
        headers = signed_headers(event_id, 1, content, [SECRET])
        try:
            return client.post(webhooks.url, content=content, headers=headers).status_code
        except httpx.ReadError:
            return "reset"

    assert [send(lot) for lot in range(7)] == [500, 500, "reset", "reset", 204, 204, 204]
    assert [send(lot) for lot in range(7)] == [204] * 7
    received = webhooks.received()
    assert [one.is_accepted for one in received] == [False] * 3 + [True] * 11
    client.close()


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


async def trade(traders: Traders, changes: int, then: Callable[[], object]) -> None:
    traders.start()
    assert await traders.acknowledge_more(changes, 30)
    await asyncio.to_thread(then)
    assert await traders.acknowledge_more(changes, 30)
    await traders.stop()


def test_every_event_arrives_even_if_the_receiver_fails_and_is_killed(
    trial: Trial, deployment: Deployment, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    traders = Traders(deployment.port, deployment.token, Ledger(), trial.random, 4, pause=0.01)

    async def run() -> list[dict[str, Any]]:
        await trade(traders, 30, webhooks.kill_receiver)
        feed = await judge_feed(trial, deployment, [], "now")
        await judge_deliveries(trial, webhooks, feed, "now")
        return feed

    feed = asyncio.run(run())
    assert trial.broken == []
    assert trial.seen["deliveries compared"] >= len(feed) > 60
    monkeypatch.setattr("proof.webhooks._DELIVERY_SECONDS", 0)
    asyncio.run(judge_deliveries(trial, webhooks, [*feed, FIRST], "then"))
    (said,) = trial.broken
    assert said.startswith(f"then: 1 of {len(feed) + 1} events did not arrive, such as [{{'id': ")
