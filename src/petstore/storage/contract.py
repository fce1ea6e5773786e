"""What every database does for the service.

SQL is the portable subset of SQLite and PostgreSQL, with parameters ``?1``, ``?2``, …
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

Value: TypeAlias = int | str | bytes | None
Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Statement(NamedTuple):
    """One SQL statement and its parameters."""

    sql: str
    parameters: Sequence[Value] = ()


Unit: TypeAlias = Generator[Statement, list[Row], T]
"""A unit of work: yields statements, receives their rows, returns its result.

It does no I/O and may raise a domain error, which undoes it; so any database can run it inside a
transaction, and a test can drive it by hand.
"""


class Store(Protocol):
    """A database."""

    async def open(self) -> None:
        """Connect. The schema must be there (see ``migrate``).

        Raises:
            Unavailable: the database is out of reach.
        """
        ...

    async def close(self) -> None:
        """Finish the units of work under way and disconnect."""
        ...

    async def check(self) -> None:
        """Return if the database is there and can be read.

        Raises:
            Unavailable: it is not, or can not.
        """
        ...

    async def version(self) -> int:
        """Return a number that is another one after every commit, whoever made it.

        Raises:
            Unavailable: the database is out of reach or failing.
        """
        ...

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the database is out of reach or failing.
        """
        ...

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in a transaction and return its result once it is durable.

        Raises:
            Unavailable: the database is out of reach, full or failing; not acknowledged.
            PetstoreError: what the unit itself raised; it changed nothing.
        """
        ...
