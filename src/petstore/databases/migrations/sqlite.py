"""Migrations of a SQLite file, and the check that it has what its version needs."""

from contextlib import closing
from functools import cache

import apsw

from petstore.databases.contract import Schema
from petstore.databases.migrations import APPLICATION_ID, require_known, scripts
from petstore.errors import UnusableDatabase

_PARTS = """
    SELECT type || ' ' || name FROM sqlite_schema UNION ALL
    SELECT 'column ' || t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
    WHERE t.type = 'table'
"""


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date, safely when several processes do so at once."""
    known = scripts("sqlite")
    if connection.pragma("user_version") != len(known):
        connection.execute("BEGIN IMMEDIATE")
        _refuse_foreign(connection)
        for script in known[_version(connection) :]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(known))
    inspect(connection)
    if connection.in_transaction:
        connection.execute("COMMIT")


def inspect(connection: apsw.Connection) -> Schema:
    _refuse_foreign(connection)
    version, known = _version(connection), scripts("sqlite")
    if missing := _parts_made_by(known[:version]) - _parts(connection):
        part = max(missing)  # rather a table than its columns
        msg = f"the database does not have the schema of version {version}: {part} is missing"
        raise UnusableDatabase(msg)
    return Schema(version, len(known))


def _version(connection: apsw.Connection) -> int:
    return require_known(connection.pragma("user_version"), len(scripts("sqlite")))


def _refuse_foreign(connection: apsw.Connection) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    in_use = tables or connection.pragma("user_version")
    if in_use and connection.pragma("application_id") != APPLICATION_ID:
        raise UnusableDatabase("the database was made by another program, not by petstore")


@cache
def _parts_made_by(known: tuple[str, ...]) -> frozenset[str]:
    with closing(apsw.Connection(":memory:")) as connection:
        for script in known:
            connection.execute(script)
        return _parts(connection)


def _parts(connection: apsw.Connection) -> frozenset[str]:
    return frozenset(part for (part,) in connection.execute(_PARTS))
