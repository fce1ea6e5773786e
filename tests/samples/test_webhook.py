"""The webhook of the demo store that the service has disabled."""

from pathlib import Path

import pytest
from msgspec import UNSET

from petstore.clock import DAY
from petstore.databases.contract import Statement
from petstore.databases.private_files import create
from petstore.events.store import publish_all
from petstore.keys.model import Caller
from petstore.samples.demo import prepare_demo
from petstore.settings import Settings, is_postgres
from petstore.webhooks.deliveries import list_deliveries
from petstore.webhooks.signing import text_of_master
from petstore.webhooks.store import list_webhooks
from support.manual_clock import ManualClock
from support.stores import open_store

pytestmark = pytest.mark.anyio

ADMINISTRATOR = 2
OWNER = Caller("demo", id=ADMINISTRATOR, environment="production", created_at=0)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.each_database
async def test_a_webhook_to_nowhere_was_disabled_after_five_days(
    address: str, clock: ManualClock, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    with create(secret) as file:
        file.write(text_of_master(bytes(32)))
    async with open_store(address) as store:
        settings = Settings(database=address, secret_file=str(secret))
        await prepare_demo(store, settings, clock)
        (webhook,) = (await list_webhooks(store, OWNER, None, 10)).items
        deliveries = (await list_deliveries(store, webhook.id, UNSET, None, 100)).items
        if is_postgres(address):
            await publish_all(store)
        newest = "SELECT type, at, key_id FROM events ORDER BY sequence DESC LIMIT 1"
        event = await store.read(Statement(newest))
    assert (webhook.enabled, webhook.disabled_reason) == (False, "failing")
    assert event == [("webhook.disabled", clock.now, ADMINISTRATOR)]
    assert len(deliveries) == 20
    assert {each.state for each in deliveries} == {"pending", "failed"}
    assert all(each.attempts and each.error for each in deliveries)
    assert clock.now - webhook.created_at.timestamp() * 1000 > 5 * DAY


async def test_the_secret_of_the_webhook_is_made_beside_the_database(
    database: Path, clock: ManualClock
) -> None:
    async with open_store(database) as store:
        await prepare_demo(store, Settings(database=f"sqlite:///{database}"), clock)
    assert database.with_name("petstore.db.secret").exists()


@pytest.mark.parametrize("database_kind", ["postgresql"])
async def test_a_service_without_a_secret_for_webhooks_gets_none(
    address: str, clock: ManualClock
) -> None:
    async with open_store(address) as store:
        await prepare_demo(store, Settings(database=address), clock)
        assert (await list_webhooks(store, OWNER, None, 10)).items == []
        assert await store.read(Statement("SELECT count(*) FROM orders")) == [(153,)]
