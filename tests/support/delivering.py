"""Webhooks, and what delivers to them, in the process of a test."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

from petstore.clock import Clock
from petstore.databases.contract import Row, Statement, Store
from petstore.webhooks.deliverer import Deliverer, Rules
from petstore.webhooks.model import DeliveryState
from petstore.webhooks.sender import Resolver, Sender
from petstore.webhooks.store import LeasedWebhook
from support.history import forget_keys
from support.keys import issue
from support.stores import do

SECRET = b"s" * 32
SCOPES = frozenset({"pets:read", "orders:read", "webhooks:write"})
_NETWORKS = [ip_network("127.0.0.0/8")]


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
    quick = Rules(
        "production",
        publishes=True,
        poll_seconds=0.005,
        refresh_seconds=0.01,
        stop_seconds=0,
        chance=lambda: 0.5,
    )
    quick = quick._replace(**rules)
    if "sqlite" in type(store).__module__:
        quick = quick._replace(publishes=False)
    deliverer = Deliverer(store, sender, secrets_of, clock, (watcher or Watched()).attempted, quick)
    async with deliverer.running():
        yield deliverer


async def issue_with_webhooks(store: Store, clock: Clock, **wanted: Any) -> int:
    """Create a key that may have webhooks, and return its id.

    That is no event here: those of a test are numbered from 1.
    """
    issued = await issue(store, clock, **({"scopes": SCOPES} | wanted))
    await forget_keys(store)
    return issued.id


async def add_webhook(store: Store, key_id: int, url: str, types: str = "") -> int:
    """Add a webhook that gets every event from the first one on, and return its id."""
    ((webhook_id,),) = await store.write(
        do(
            "INSERT INTO webhooks (key_id, url, types, created_at, enabled, secret_version,"
            " position, failures, environment) VALUES (?1, ?2, ?3, 0, 1, 1, 0, 0,"
            " (SELECT environment FROM api_keys WHERE id = ?1)) RETURNING id",
            *(key_id, url, types),
        )
    )
    return int(webhook_id)


async def webhook_row(store: Store, columns: str, webhook_id: int = 1) -> Row:
    sql = f"SELECT {columns} FROM webhooks WHERE id = ?1"  # noqa: S608 - of a test
    (row,) = await store.read(Statement(sql, (webhook_id,)))
    return row


async def deliveries(store: Store, columns: str = "sequence, state, attempts") -> list[Row]:
    return await store.read(Statement(f"SELECT {columns} FROM webhook_deliveries ORDER BY id"))  # noqa: S608
