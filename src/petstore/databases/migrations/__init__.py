"""The schema, as numbered SQL files, and the runner that brings a database up to date."""

import re
from importlib.resources import files
from typing import NamedTuple

import apsw

from petstore.databases.migrations.schemas import difference
from petstore.errors import PetstoreError

APPLICATION_ID = 0x50455453  # "PETS": marks a SQLite file as a store of ours, and names our lock


class Schema(NamedTuple):
    """Which version of the schema a database has, 0 for none, and the newest this program knows."""

    version: int
    newest: int


class UnusableDatabase(PetstoreError):
    """The database cannot be used by this version; the message says why."""


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date, safely when several processes do so at once.

    Raises:
        UnusableDatabase: a newer version made the database, or another program did, or changed it.
        apsw.Error: the database is out of reach, full or failing.
    """
    known = scripts("sqlite")
    if connection.pragma("user_version") == len(known):
        _refuse_foreign(connection)
        check_schema(connection)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _upgrade(connection, known)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _upgrade(connection: apsw.Connection, known: list[str]) -> None:
    _refuse_foreign(connection)
    for script in known[_version(connection, len(known)) :]:
        connection.execute(script)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", len(known))
    check_schema(connection)


def inspect(connection: apsw.Connection) -> Schema:
    """Return which version of the schema there is; change nothing.

    Raises:
        UnusableDatabase: a newer version made the database, or another program did, or changed it.
    """
    _refuse_foreign(connection)
    check_schema(connection)
    return Schema(connection.pragma("user_version"), len(scripts("sqlite")))


def check_schema(connection: apsw.Connection) -> None:
    """Refuse a store whose schema is not that of its version.

    Raises:
        UnusableDatabase: a newer version made it, or something is missing in it, or was changed or
            added by somebody else.
    """
    known = scripts("sqlite")
    version = _version(connection, len(known))
    found = difference(connection, tuple(known[:version]))
    if found is not None:
        msg = f"the database does not have the schema of version {version}: {found}"
        raise UnusableDatabase(msg)


def _version(connection: apsw.Connection, newest: int) -> int:
    """Return the version of the schema, which is at most ``newest``."""
    version: int = connection.pragma("user_version")
    if version > newest:
        msg = (
            f"the database has schema version {version}, made by a newer petstore;"
            f" this one knows versions up to {newest}: install the newer version"
        )
        raise UnusableDatabase(msg)
    return version


def _refuse_foreign(connection: apsw.Connection) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    in_use = tables or connection.pragma("user_version")
    if in_use and connection.pragma("application_id") != APPLICATION_ID:
        msg = "the database was made by another program, not by petstore"
        raise UnusableDatabase(msg)


def scripts(database: str) -> list[str]:
    """Return the SQL of each version of the schema of ``database``, the first one first."""
    folder = files(__name__)
    is_script = re.compile(rf"{database}_[0-9]+\.sql").fullmatch
    names = sorted(entry.name for entry in folder.iterdir() if is_script(entry.name))
    return [folder.joinpath(name).read_text("utf-8") for name in names]
