"""Whether a SQLite database has the schema of its version: nothing less, nothing else."""

from functools import cache
from typing import NamedTuple, TypeAlias

import apsw

from petstore.databases.contract import Row

_Object: TypeAlias = tuple[str, str, str, str | None]
"""The kind of it, its name, its table and its SQL."""

# But for the statistics of ANALYZE, which any operator may have run.
_OBJECTS = """
    SELECT type, name, tbl_name, sql FROM sqlite_schema
    WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')
"""
_KEY = "SELECT group_concat(name) FROM pragma_table_info(?) WHERE pk"


class _Schema(NamedTuple):
    """What a new store has: its objects, and the keys of the rows in tables that are not empty."""

    objects: frozenset[_Object]
    rows: dict[str, list[Row]]


def difference(connection: apsw.Connection, scripts: tuple[str, ...]) -> str | None:
    """Return in words what tells a database from one that ``scripts`` have made, if anything does.

    An index or a trigger that is not ours may change what our statements do.
    """
    expected, found = _made_by(scripts), _objects(connection)
    names = {item[:2] for item in expected.objects}
    for kind, name, table, _ in sorted(found - expected.objects, key=str):
        if (kind, name) in names:
            return f"the {kind} {name} differs from petstore's"
        return f"the {kind} {name} on {table} is not one of petstore's"
    for kind, name, *_ in sorted(
        expected.objects - found, key=lambda one: (one[0] != "table", str(one))
    ):
        return f"the {kind} {name} is missing"
    for table, rows in expected.rows.items():
        if _keys(connection, table, len(rows) + 1) != rows:
            return f"the table {table} does not have the rows that every store has"
    return None


@cache
def _made_by(scripts: tuple[str, ...]) -> _Schema:
    connection = apsw.Connection(":memory:")
    try:
        for script in scripts:
            connection.execute(script)
        objects = _objects(connection)
        tables = sorted(name for kind, name, *_ in objects if kind == "table")
        keys = {table: _keys(connection, table, 100) for table in tables}
    finally:
        connection.close()
    return _Schema(objects, {table: rows for table, rows in keys.items() if rows})


def _objects(connection: apsw.Connection) -> frozenset[_Object]:
    return frozenset(connection.execute(_OBJECTS))


def _keys(connection: apsw.Connection, table: str, limit: int) -> list[Row]:
    """Return the primary keys of up to ``limit`` rows, each ``(1,)`` where there is none."""
    key = connection.execute(_KEY, (table,)).get or "1"
    return connection.execute(
        f"SELECT {key} FROM {table} ORDER BY {key} LIMIT ?",  # noqa: S608 - names of our schema
        (limit,),
    ).fetchall()
