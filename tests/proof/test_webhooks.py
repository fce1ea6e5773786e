"""Every event must reach the receiver, signed, and in order for each resource."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import apsw
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


def wrong(*received: Received) -> list[str]:
    return list(wrong_deliveries(verify, list(received), FEED))


def test_events_may_arrive_twice_and_in_any_order_of_their_resources() -> None:
    received = map(delivery, (SECOND, FIRST, FIRST, THIRD, FIRST, FOURTH, SECOND))
    assert wrong(*received) == []


def test_a_refused_event_has_arrived_only_once_it_was_accepted() -> None:
    assert wrong(delivery(THIRD, is_accepted=False), delivery(FIRST), delivery(THIRD)) == []


def test_a_later_event_of_a_resource_that_arrives_first_is_noticed() -> None:
    assert wrong(delivery(THIRD), delivery(FIRST)) == ["pet/1: event 1 arrived after event 3"]


def test_a_signature_of_something_else_is_noticed() -> None:
    (said,) = wrong(delivery(FIRST)._replace(headers=delivery(SECOND).headers))
    assert said.startswith("the delivery of evt_2 is not verified: ")


def test_an_event_that_the_feed_does_not_have_is_noticed() -> None:
    (said,) = wrong(delivery(FIRST | {"sequence": 9}))
    assert said.startswith("evt_1 arrived as {'id': 'evt_1', ")


def test_a_request_that_was_half_written_when_the_receiver_was_killed_is_left_out(
    tmp_path: Path,
) -> None:
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


def test_the_receiver_refuses_resets_and_delays_events_and_none_of_them_twice(
    webhooks: Webhooks,
) -> None:
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


def test_a_pending_delivery_behind_many_others_is_found(
    deployment: Deployment, webhooks: Webhooks
) -> None:
    connection = apsw.Connection(str(deployment.file))
    connection.set_busy_timeout(10_000)
    connection.execute(
        "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, resource, state,"
        " created_at, attempts, due_at)"
        " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT 1200)"
        " SELECT (SELECT max(id) FROM webhooks), n, 'evt_' || n, 'pet.created', 'pet/' || n,"
        " iif(n = 1, 'pending', 'succeeded'), 0, 2, 2000000000000 FROM numbers"
    )
    connection.close()
    assert [(one["resource"], one["attempts"]) for one in webhooks.pending()] == [("pet/1", 2)]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


async def trade(traders: Traders, changes: int, then: Callable[[], object]) -> None:
    traders.start()
    assert await traders.acknowledge_more(changes, 30)
    await asyncio.to_thread(then)
    assert await traders.acknowledge_more(changes, 30)
    await traders.stop()


def test_every_event_arrives_although_the_receiver_fails_and_is_killed(
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
