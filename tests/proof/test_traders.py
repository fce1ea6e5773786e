"""Traders record their responses, and notice if the store differs from them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw
import pytest

from proof.deployments import Deployment, deployed
from proof.experiment import Trial
from proof.judging import judge_feed, judge_store, judge_traders
from proof.ledger import Ledger
from proof.traders import Traders
from proof.wire import Response
from support.memory_folder import folder_in_memory


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with folder_in_memory() as folder, deployed(folder / "store") as deployment:
        yield deployment


@pytest.fixture(scope="module")
def traders(deployment: Deployment) -> Traders:
    """Traders that have finished."""
    random = Random(3)  # noqa: S311 - what is drawn is no secret
    traders = Traders(deployment.port, deployment.token, Ledger(), random, callers=12)

    async def trade() -> None:
        traders.start()
        assert await traders.acknowledge_more(250, 30)
        await traders.stop()

    asyncio.run(trade())
    return traders


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_traders_use_every_operation_and_the_store_matches_the_responses(
    trial: Trial, deployment: Deployment, traders: Traders
) -> None:
    assert {200, 201, 204, 409} <= set(traders.statuses)
    assert {"approved", "delivered", "cancelled"} <= {
        status for order in traders.ledger.orders.values() for status in order.statuses
    }
    judge_store(trial, deployment, traders, "at the end")
    judge_traders(trial, traders)
    assert trial.broken == []
    assert trial.seen["acknowledged changes"] >= 250
    assert deployment.is_sound()


def test_a_lost_row_and_a_wrong_inventory_are_noticed(
    trial: Trial, deployment: Deployment, traders: Traders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.judging._SETTLE_SECONDS", 0)
    lost = next(iter(traders.ledger.orders))
    connection = apsw.Connection(str(deployment.file))
    connection.execute("DELETE FROM orders WHERE id = ?", (lost,))
    connection.execute("UPDATE inventory SET pets = pets + 1 WHERE status = 'sold'")
    connection.close()
    judge_store(trial, deployment, traders, "now")
    assert trial.broken[0].startswith("now: the inventory is ")
    assert f"now: order {lost} is gone" in trial.broken


def test_an_unreadable_feed_is_noticed(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.judging._WALK_SECONDS", 0.2)
    with deployed(tmp_path / "stopped") as stopped:
        assert stopped.token
        stopped.kill()
        assert asyncio.run(judge_feed(trial, stopped, [], "now")) == []
        stopped.start()
    assert trial.broken == ["now: the feed cannot be read to its end"]


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response(500, b"", b"oops"), "POST /v1/pets: 500 b'oops'"),
        (Response(503, b"HTTP/1.1 503\r\n", b""), "POST /v1/pets: 503 without Retry-After"),
    ],
)
def test_an_unexpected_response_is_recorded(
    deployment: Deployment, response: Response, said: str
) -> None:
    traders = Traders(deployment.port, "", Ledger(), Random(1))  # noqa: S311
    traders.note(response, "POST /v1/pets", 0.1)
    assert traders.unexpected == [said]
