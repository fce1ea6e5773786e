"""The metrics of deliveries."""

import socket
from pathlib import Path

import pytest

from petstore.clock import SECOND
from petstore.observability.deliveries import DeliveryMetrics
from petstore.observability.registry import Registry, SharedMetrics
from support.manual_clock import ManualClock

pytestmark = pytest.mark.anyio


async def test_attempts_are_counted_by_outcome_and_what_is_left_by_its_age(
    tmp_path: Path, clock: ManualClock
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        registry = Registry(SharedMetrics(listener, tmp_path), "1.2.3", serves=False)
        metrics = DeliveryMetrics(registry, clock)

        async def lines() -> list[str]:
            return (await registry.exposition())[1].decode().splitlines()

        assert "petstore_oldest_delivery_seconds 0.0" in await lines()
        for state in ("succeeded", "succeeded", "pending", "failed"):
            metrics.attempted(state, 0.02)
        metrics.remaining(clock() - 90 * SECOND, 2)
        found = await lines()
    for line in (
        'petstore_deliveries_total{outcome="succeeded"} 2.0',
        'petstore_deliveries_total{outcome="failed"} 1.0',
        'petstore_deliveries_total{outcome="abandoned"} 1.0',
        'petstore_delivery_duration_seconds_bucket{le="0.01"} 0.0',
        'petstore_delivery_duration_seconds_bucket{le="0.025"} 4.0',
        "petstore_oldest_delivery_seconds 90.0",
        "petstore_webhooks_disabled 2.0",
        "petstore_workers 0.0",
    ):
        assert line in found
