"""Webhooks, events and deliveries as a test wants them in a store, and what delivers there."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from ipaddress import ip_network
from typing import Any

import apsw

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Row, Statement, Store, Unit, placeholders
from petstore.events.model import EventType
from petstore.events.store import publish_all, publish_first
from petstore.keys.model import SCOPES, Caller
from petstore.periodic_tasks import PeriodicTask, background
from petstore.webhooks.deliverer import Deliverer
from petstore.webhooks.model import DeliveryState
from petstore.webhooks.sender import Resolver, Sender
from petstore.webhooks.store import LeasedWebhook
from support.history import forget_keys
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.stores import do

URL = "https://shop.example/hooks"
NOW = ManualClock().now
SECRET = b"s" * 32
_NETWORKS = [ip_network("127.0.0.0/8")]
_MOVE = "UPDATE webhooks SET position = ?1"
_ADD = """
    INSERT INTO webhooks (key_id, environment, url, types, created_at, enabled, secret_version,
        position, failures) VALUES (?1, ?2, ?3, ?4, ?5, 1, 1, 0, 0) RETURNING id
"""
_FAILED = """
    INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, resource, state,
        created_at, attempts, due_at, response_status, response_body, error)
    SELECT ?1, sequence, id, type, resource, 'failed', at, 1, at, 500, ?2, ?2 FROM events
    WHERE type = 'pet.created' ORDER BY sequence DESC LIMIT ?3
"""


async def issue_key(store: Store, **wanted: Any) -> Caller:
    """Create a key that may do everything, but for what is wanted. That is no event here."""
    key = await issue_stored(store, ManualClock(), **{"scopes": frozenset(SCOPES), **wanted})
    await forget_keys(store)
    return key


async def add_webhook(store: Store, key: Caller, *types: EventType, url: str = URL) -> int:
    """Add a webhook that gets every event from the first one on, and return its id."""
    parameters = (key.id, key.environment, url, " ".join(types), NOW)
    ((webhook_id,),) = await store.write(do(_ADD, *parameters))
    return int(webhook_id)


async def add_events(
    store: Store,
    times: Sequence[Milliseconds],
    kind: str = "pet.created",
    key_id: int | None = None,
) -> None:
    """Add an event to the feed for each of these times, and move all webhooks behind them."""
    ((last,),) = await store.read(Statement("SELECT coalesce(max(sequence), 0) FROM events"))
    rows = [
        (
            *(sequence, f"evt_{sequence:024x}", kind, at, f"{kind.partition('.')[0]}/7", key_id),
            *("{}", "service"),
        )
        for sequence, at in enumerate(times, last + 1)
    ]
    await store.write(
        _insert("events (sequence, id, type, at, resource, key_id, data, actor)", rows)
    )
    await store.write(do(_MOVE, last + len(rows)))


async def publish(store: Store) -> None:
    """Give all events their places in the feed, and move all webhooks behind them."""
    waiting = Statement("SELECT 0 /*pg + count(*) FROM events_outbox */")
    while await store.read(waiting) != [(0,)]:
        await publish_all(store)
    ((last,),) = await store.read(Statement("SELECT coalesce(max(sequence), 0) FROM events"))
    await store.write(do(_MOVE, last))


async def add_deliveries(
    store: Store, webhook_id: int, *states: str, created_at: Milliseconds = NOW, first: int = 1
) -> None:
    """Add a delivery to a webhook for each of these states, of events from ``first`` on."""
    rows = [
        (
            *(webhook_id, sequence, f"evt_{sequence:024x}", "pet.created", "pet/7", state),
            *(created_at, 3, created_at + 5000, created_at, created_at + 1000),
            *(500, "no", "not 2xx"),
        )
        for sequence, state in enumerate(states, first)
    ]
    table = (
        "webhook_deliveries (webhook_id, sequence, event_id, type, resource, state, created_at,"
        " attempts, due_at, first_attempt_at, last_attempt_at, response_status, response_body,"
        " error)"
    )
    await store.write(_insert(table, rows))


def add_failed_deliveries(database: str, webhook_id: int, said: str, count: int = 1) -> None:
    """Add deliveries of the newest pets, with what the receiver ``said``, to a running store."""
    with closing(apsw.Connection(database.removeprefix("sqlite:///"))) as connection:
        connection.set_busy_timeout(10_000)
        connection.execute(_FAILED, (webhook_id, said, count))


class Watched:
    def __init__(self) -> None:
        self.attempts: list[DeliveryState] = []

    def attempted(self, state: DeliveryState, seconds: float) -> None:
        assert seconds >= 0
        self.attempts.append(state)


@asynccontextmanager
async def delivering(
    store: Store,
    clock: Clock,
    *,
    secrets_of: Callable[[LeasedWebhook], list[bytes]] = lambda _: [SECRET],
    watcher: Watched | None = None,
    seconds: float = 30,
    **rules: Any,
) -> AsyncIterator[Deliverer]:
    """Deliver what is in ``store`` until the block ends; an attempt takes up to ``seconds``."""
    sender = Sender(Resolver(), _NETWORKS, "petstore/test", seconds=seconds)
    quick = {"poll_seconds": 0.005, "refresh_seconds": 0.01, "stop_seconds": 0}
    note = (watcher or Watched()).attempted
    deliverer = Deliverer(store, sender, secrets_of, clock, note, "production", **(quick | rules))
    deliverer.chance = lambda: 0.5
    publish = PeriodicTask(partial(publish_first, store), 0.005, "nothing published")
    async with background(publish), deliverer.running():
        yield deliverer


async def webhook_row(store: Store, columns: str, webhook_id: int = 1) -> Row:
    sql = f"SELECT {columns} FROM webhooks WHERE id = ?1"  # noqa: S608 - of a test
    (row,) = await store.read(Statement(sql, (webhook_id,)))
    return row


async def deliveries(store: Store, columns: str = "sequence, state, attempts") -> list[Row]:
    return await store.read(Statement(f"SELECT {columns} FROM webhook_deliveries ORDER BY id"))  # noqa: S608


def _insert(table: str, rows: Sequence[Row]) -> Unit[None]:
    yield Statement(f"INSERT INTO {table} VALUES {placeholders(len(rows[0]))}", rows=rows)  # noqa: S608
