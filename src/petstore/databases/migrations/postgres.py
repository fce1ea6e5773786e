"""Migrations of a PostgreSQL database: each script runs once, under a lock."""

from petstore.databases.contract import Schema
from petstore.databases.migrations import APPLICATION_ID, require_known, scripts
from petstore.databases.postgres_connection import Connection, unusable
from petstore.databases.schema import TABLES_BY_NAME
from petstore.errors import UnusableDatabase

_EXISTS = "SELECT to_regclass('petstore_schema') IS NOT NULL"
_VERSION = "SELECT coalesce(max(version), 0) FROM petstore_schema"
_WITHOUT_RIGHTS = """
    SELECT string_agg(name, ', ') FROM unnest($1::TEXT[]) AS name WHERE NOT (
        has_table_privilege(name, 'SELECT') AND has_table_privilege(name, 'INSERT')
        AND has_table_privilege(name, 'UPDATE') AND has_table_privilege(name, 'DELETE')
    )
"""


async def migrate(connection: Connection) -> None:
    known = scripts("postgres")
    with unusable():
        if await _version(connection, len(known)) < len(known):
            async with connection.transaction(isolation="read_committed"):
                await connection.execute("SET LOCAL statement_timeout = 0")
                await connection.execute("SELECT pg_advisory_xact_lock($1)", APPLICATION_ID)
                await _upgrade(connection, known)
        await _require_rights(connection)


async def inspect(connection: Connection) -> Schema:
    known = scripts("postgres")
    with unusable():
        version = await _version(connection, len(known))
        if version == len(known):
            await _require_rights(connection)
    return Schema(version, len(known))


async def _version(connection: Connection, newest: int) -> int:
    exists = await connection.fetchval(_EXISTS)
    return require_known(await connection.fetchval(_VERSION) if exists else 0, newest)


async def _upgrade(connection: Connection, known: tuple[str, ...]) -> None:
    # Unlike a look at the catalogue, this surely sees what another process has just created.
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS petstore_schema (version INTEGER PRIMARY KEY)"
    )
    version = require_known(await connection.fetchval(_VERSION), len(known))
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        msg = f"the database has the encoding {encoding}; create it again with ENCODING 'UTF8'"
        raise UnusableDatabase(msg)
    for script in known[version:]:
        await connection.execute(script)
    await connection.execute("DELETE FROM petstore_schema")
    await connection.execute("INSERT INTO petstore_schema VALUES ($1)", len(known))


async def _require_rights(connection: Connection) -> None:
    tables = await connection.fetchval(_WITHOUT_RIGHTS, [*TABLES_BY_NAME])
    if tables:
        raise UnusableDatabase(
            "the database cannot be used: its user needs"
            f" GRANT SELECT, INSERT, UPDATE, DELETE ON {tables}"
        )
