"""The metrics of deliveries."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.clock import SECOND
from petstore.databases.contract import Statement, Store, Unit
from petstore.errors import Unavailable
from petstore.observability.measured import report_attempts, report_backlog
from petstore.observability.registry import Registry, SharedMetrics
from petstore.webhooks.deliveries import make_deliveries
from petstore.webhooks.store import active_webhooks, take_leases
from support.manual_clock import ManualClock
from support.webhooks import add_events, add_webhook, issue_key

pytestmark = pytest.mark.anyio


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Registry(SharedMetrics(listener, tmp_path), "1.2.3", serves=False)


async def lines(registry: Registry) -> list[str]:
    return (await registry.exposition())[1].decode().splitlines()


def move_back() -> Unit[None]:
    """Let no process have seen any event."""
    yield Statement("UPDATE webhooks SET position = 0")


async def test_attempts_are_counted_by_outcome(registry: Registry) -> None:
    note_attempt = report_attempts(registry)
    for state in ("succeeded", "succeeded", "pending", "failed"):
        note_attempt(state, 0.02)
    found = await lines(registry)
    for line in (
        'petstore_deliveries_total{outcome="succeeded"} 2.0',
        'petstore_deliveries_total{outcome="failed"} 1.0',
        'petstore_deliveries_total{outcome="abandoned"} 1.0',
        'petstore_delivery_duration_seconds_bucket{le="0.01"} 0.0',
        'petstore_delivery_duration_seconds_bucket{le="0.025"} 4.0',
        "petstore_workers 0.0",
    ):
        assert line in found


@pytest.mark.each_database
async def test_the_age_of_the_oldest_undelivered_event_is_reported(
    registry: Registry, store: Store, clock: ManualClock
) -> None:
    report_backlog(registry, store, "production", clock)
    (measure,) = registry.periodic_tasks
    await measure.action()
    assert "petstore_oldest_delivery_seconds 0.0" in await lines(registry)

    await add_webhook(store, await issue_key(store))
    await add_events(store, [clock() - 90 * SECOND, clock() - 80 * SECOND])
    await measure.action()
    assert "petstore_oldest_delivery_seconds 0.0" in await lines(registry)
    await store.write(move_back())
    await measure.action()
    assert "petstore_oldest_delivery_seconds 90.0" in await lines(registry)

    webhooks = await active_webhooks(store, "production", clock())
    await store.write(take_leases("me", webhooks, clock()))
    await store.write(make_deliveries("me", webhooks, 2, clock()))
    clock.advance(70)
    await measure.action()
    assert "petstore_oldest_delivery_seconds 70.0" in await lines(registry)


async def test_disabled_webhooks_are_counted(
    registry: Registry, store: Store, clock: ManualClock
) -> None:
    await add_webhook(store, await issue_key(store))
    await store.write(disable())
    report_backlog(registry, store, "production", clock)
    await registry.periodic_tasks[0].action()
    assert "petstore_webhooks_disabled 1.0" in await lines(registry)


async def test_the_age_grows_while_the_database_cannot_be_read(
    registry: Registry, store: Store, clock: ManualClock
) -> None:
    report_backlog(registry, store, "production", clock)
    (measure,) = registry.periodic_tasks
    await measure.action()
    await store.close()
    clock.advance(60)
    with pytest.raises(Unavailable):
        await measure.action()
    assert "petstore_oldest_delivery_seconds 60.0" in await lines(registry)
    await store.open()
    await measure.action()
    assert "petstore_oldest_delivery_seconds 0.0" in await lines(registry)


def disable() -> Unit[None]:
    yield Statement("UPDATE webhooks SET enabled = 0, disabled_reason = 'failing'")
