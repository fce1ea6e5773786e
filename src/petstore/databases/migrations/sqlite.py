"""Migrations of a SQLite file, and the check that it has exactly the schema of its version."""

from contextlib import closing
from functools import cache
from typing import TypeAlias

import apsw

from petstore.databases.contract import Row
from petstore.databases.migrations import APPLICATION_ID, Schema, require_known, scripts
from petstore.errors import UnusableDatabase

_Object: TypeAlias = tuple[str, str, str, str | None]
"""Type, name, table and SQL."""

# Any operator may have run ANALYZE, which makes tables for its statistics.
_OBJECTS = """
    SELECT type, name, tbl_name, sql FROM sqlite_schema
    WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')
"""
_KEY = "SELECT group_concat(name) FROM pragma_table_info(?) WHERE pk"


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date, safely when several processes do so at once.

    It raises what ``inspect`` does. If it fails, close the connection: that undoes everything.
    """
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
    """Return the version of the schema; change nothing.

    Raises:
        UnusableDatabase: a newer petstore or another program made the database, or somebody added,
            changed or removed something in it.
    """
    _refuse_foreign(connection)
    version, known = _version(connection), scripts("sqlite")
    difference = _difference(connection, known[:version])
    if difference is not None:
        msg = f"the database does not have the schema of version {version}: {difference}"
        raise UnusableDatabase(msg)
    return Schema(version, len(known))


def _version(connection: apsw.Connection) -> int:
    return require_known(connection.pragma("user_version"), len(scripts("sqlite")))


def _refuse_foreign(connection: apsw.Connection) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    in_use = tables or connection.pragma("user_version")
    if in_use and connection.pragma("application_id") != APPLICATION_ID:
        msg = "the database was made by another program, not by petstore"
        raise UnusableDatabase(msg)


def _difference(connection: apsw.Connection, known: tuple[str, ...]) -> str | None:
    """Return the first difference from a database that the scripts ``known`` made.

    A foreign index or trigger may change what our statements do.
    """
    (expected, filled), found = _made_by(known), _objects(connection)
    names = {item[:2] for item in expected}
    for kind, name, table, _ in sorted(found - expected, key=str):
        if (kind, name) in names:
            return f"the {kind} {name} differs from petstore's"
        return f"the {kind} {name} on {table} is not one of petstore's"
    for kind, name, *_ in sorted(expected - found, key=lambda one: (one[0] != "table", str(one))):
        return f"the {kind} {name} is missing"
    for table, rows in filled.items():
        if _keys(connection, table, len(rows) + 1) != rows:
            return f"the table {table} does not have the rows that every store has"
    return None


@cache
def _made_by(known: tuple[str, ...]) -> tuple[frozenset[_Object], dict[str, list[Row]]]:
    """Return the objects of a new store, and the keys of rows in tables that are not empty."""
    with closing(apsw.Connection(":memory:")) as connection:
        for script in known:
            connection.execute(script)
        objects = _objects(connection)
        tables = sorted(name for kind, name, *_ in objects if kind == "table")
        keys = {table: _keys(connection, table, 100) for table in tables}
    return objects, {table: rows for table, rows in keys.items() if rows}


def _objects(connection: apsw.Connection) -> frozenset[_Object]:
    return frozenset(connection.execute(_OBJECTS))


def _keys(connection: apsw.Connection, table: str, limit: int) -> list[Row]:
    """Return the primary keys of up to ``limit`` rows, each ``(1,)`` if there is no key."""
    key = connection.execute(_KEY, (table,)).get or "1"
    return connection.execute(
        f"SELECT {key} FROM {table} ORDER BY {key} LIMIT ?",  # noqa: S608 - names of our schema
        (limit,),
    ).fetchall()
