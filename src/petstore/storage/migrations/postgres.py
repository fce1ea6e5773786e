"""The schema on PostgreSQL: numbered SQL files, run under a lock, each once."""

from typing import Any

import asyncpg  # type: ignore[import-untyped]

from petstore.storage.migrations import UnusableDatabase, scripts

_LOCK = 0x50455453  # "PETS"
_VERSION = "SELECT coalesce(max(version), 0) FROM petstore_schema"


async def migrate(connection: Any) -> None:
    """Bring the schema up to date, safely when several processes do so at once.

    Raises:
        UnusableDatabase: a newer version made the database, or another program did, or it is not
            to be changed by this user.
    """
    known = scripts("postgres")
    is_there = await connection.fetchval("SELECT to_regclass('petstore_schema') IS NOT NULL")
    if is_there and await connection.fetchval(_VERSION) == len(known):
        return
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            await _upgrade(connection, known)
    except (
        asyncpg.SyntaxOrAccessError,  # no right to make tables, or tables of these names
        asyncpg.InvalidSchemaNameError,
    ) as error:
        msg = f"the database cannot be brought up to date: {error}"
        raise UnusableDatabase(msg) from error


async def _upgrade(connection: Any, known: list[str]) -> None:
    # Unlike a look at the catalogue, this sees for certain what was made while we waited.
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS petstore_schema (version INTEGER NOT NULL)"
    )
    version = await connection.fetchval(_VERSION)
    if version > len(known):
        msg = (
            f"the database has schema version {version}, made by a newer petstore;"
            f" this one knows versions up to {len(known)}: install the newer version"
        )
        raise UnusableDatabase(msg)
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        msg = f"the database has the encoding {encoding}; make it anew with ENCODING 'UTF8'"
        raise UnusableDatabase(msg)
    for script in known[version:]:
        await connection.execute(script)
    await connection.execute("DELETE FROM petstore_schema")
    await connection.execute("INSERT INTO petstore_schema VALUES ($1)", len(known))
