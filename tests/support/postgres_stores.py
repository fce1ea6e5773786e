"""Stores on a PostgreSQL server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from petstore.databases.postgres import PostgresStore


@asynccontextmanager
async def open_postgres_store(
    url: str, timeout_ms: int = 10_000, connections: int = 10
) -> AsyncIterator[PostgresStore]:
    """Open the store at ``url``, which is there; on a busy machine slow is no failure."""
    store = PostgresStore(url, timeout_ms, connections)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
