"""The schema on PostgreSQL: numbered SQL files, run under a lock, each once."""

import re
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from petstore.databases.migrations import APPLICATION_ID, Schema, UnusableDatabase, scripts

_IS_THERE = "SELECT to_regclass('petstore_schema') IS NOT NULL"
_VERSION = "SELECT coalesce(max(version), 0) FROM petstore_schema"
_TABLE = re.compile(r"CREATE TABLE (\w+)")
_OUT_OF_REACH = """
    SELECT string_agg(name, ', ') FROM unnest($1::TEXT[]) AS name WHERE NOT (
        has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT')
        AND has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE')
    )
"""


async def migrate(connection: Any) -> None:
    """Bring the schema up to date, safely when several processes do so at once.

    Raises:
        UnusableDatabase: a newer version made the database, or another program did, or this user
            may not change it.
    """
    known = scripts("postgres")
    try:
        is_there = await connection.fetchval(_IS_THERE)
        if not is_there or await _version(connection, len(known)) < len(known):
            async with connection.transaction(isolation="read_committed"):
                await connection.execute("SET LOCAL statement_timeout = 0")
                await connection.execute("SELECT pg_advisory_xact_lock($1)", APPLICATION_ID)
                await _upgrade(connection, known)
        await _require_rights(connection, _TABLE.findall("".join(known)))
    except (
        asyncpg.SyntaxOrAccessError,  # no right to make tables, or other tables of these names
        asyncpg.InvalidSchemaNameError,
    ) as error:
        msg = f"the database cannot be used: {error}"
        raise UnusableDatabase(msg) from error


async def inspect(connection: Any) -> Schema:
    """Return which version of the schema there is; change nothing.

    Raises:
        UnusableDatabase: a newer version made the database, or this user may not change it.
    """
    known = scripts("postgres")
    is_there = await connection.fetchval(_IS_THERE)
    version = await _version(connection, len(known)) if is_there else 0
    if version == len(known):
        await _require_rights(connection, _TABLE.findall("".join(known)))
    return Schema(version, len(known))


async def _version(connection: Any, newest: int) -> int:
    """Return the version of the schema, which is at most ``newest``."""
    version: int = await connection.fetchval(_VERSION)
    if version > newest:
        msg = (
            f"the database has schema version {version}, made by a newer petstore;"
            f" this one knows versions up to {newest}: install the newer version"
        )
        raise UnusableDatabase(msg)
    return version


async def _upgrade(connection: Any, known: list[str]) -> None:
    # Unlike a look at the catalogue, this sees for certain what was made while we waited.
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS petstore_schema (version INTEGER NOT NULL)"
    )
    version = await _version(connection, len(known))
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        msg = f"the database has the encoding {encoding}; make it anew with ENCODING 'UTF8'"
        raise UnusableDatabase(msg)
    for script in known[version:]:
        await connection.execute(script)
    await connection.execute("DELETE FROM petstore_schema")
    await connection.execute("INSERT INTO petstore_schema VALUES ($1)", len(known))


async def _require_rights(connection: Any, tables: list[str]) -> None:
    """Refuse a user who could start the service, but not read or change what is in it."""
    out_of_reach = await connection.fetchval(_OUT_OF_REACH, tables)
    if out_of_reach:
        msg = (
            "the database cannot be used: its user needs"
            f" GRANT SELECT, INSERT, UPDATE, DELETE ON {out_of_reach}"
        )
        raise UnusableDatabase(msg)
