"""The tables of a store, and what a database does to copy all of them."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from petstore.databases.contract import Row
from petstore.databases.schema import TABLES, TABLES_BY_NAME


class CopiedTable(NamedTuple):
    """A table, the columns of its key, and the other columns once ``Side.columns`` read them."""

    name: str
    key: tuple[str, ...]
    values: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All the columns, in the order of a copied row."""
        return (*self.key, *self.values)

    @property
    def select(self) -> str:
        """The query of all rows, by the key."""
        columns, key = ", ".join(self.columns), ", ".join(self.key)
        return f"SELECT {columns} FROM {self.name} ORDER BY {key}"  # noqa: S608 - only names

    @property
    def has_ids(self) -> bool:
        """Whether the database gives each new row an id that was never used."""
        return self.key == ("id",) and not TABLES_BY_NAME[self.name].ids_of


COPIED = tuple(CopiedTable(table.name, table.key) for table in TABLES if table.is_copied)

PRESET = "api_key_revision"
"""The table that has a row even in a new store."""


class Side(Protocol):
    """One transaction on a store: it sees the store at one moment, and changes all or nothing.

    Its schema is up to date (see ``Store.migrate``). Others see the rows once the block of
    ``open_sqlite`` or ``open_postgres`` ends without an error.

    Every method raises ``Unavailable`` if the database is unreachable, full or failing, or refuses
    the rows.
    """

    async def run(self, sql: str) -> list[Row]:
        """Run one statement that every database understands, and return its rows."""
        ...

    async def columns(self, name: str) -> list[str]:
        """Return the names of the columns of a table."""
        ...

    def pages(self, table: CopiedTable) -> AsyncIterator[list[Row]]:
        """Yield every row of ``table``, by its key, some thousands at a time."""
        ...

    async def add(self, table: CopiedTable, rows: Sequence[Row]) -> None:
        """Add ``rows`` to ``table`` as they are."""
        ...

    async def last_id(self, table: CopiedTable) -> int:
        """Return the highest id that ``table`` ever gave, or 0."""
        ...

    async def set_sequence(self, table: CopiedTable, last_id: int) -> None:
        """Let ``table`` give ids above ``last_id`` from now on."""
        ...
