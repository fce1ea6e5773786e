"""What every database does for the service.

SQL is the portable subset of SQLite and PostgreSQL, with parameters ``?1``, ``?2``, …. What only
PostgreSQL is to read stands in ``/*pg … */``, a comment to SQLite: the locks that SQLite, which
runs one unit of work after another, has no need of.

On PostgreSQL units run side by side, and each statement sees what had been committed when it began.
So a unit locks what it relies on in reading it (``/*pg FOR UPDATE */``), or lets one statement with
a condition settle the matter (``UPDATE … WHERE status = 'available' RETURNING …``). Lest two wait
for each other, all lock in this order: kept answers, the revision of the keys, orders, animals,
categories.
"""

from collections.abc import Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

Value: TypeAlias = int | str | bytes | None
Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Statement(Struct, frozen=True, gc=False):
    """One SQL statement and its parameters.

    With ``gives_id`` it inserts one row and gives the id: PostgreSQL is told so in ``sql``, SQLite
    tells it in any case. Metrics and traces call it ``name``: it holds nothing of a caller's.
    """

    sql: str
    parameters: Sequence[Value] = ()
    gives_id: bool = False
    name: str = "unnamed"


Unit: TypeAlias = Generator[Statement, list[Row], T]
"""A unit of work: yields statements, receives their rows, returns its result.

It does no I/O and may raise a domain error, which undoes it; so any database can run it inside a
transaction, and a test can drive it by hand.
"""


class Duplicate(Exception):
    """Raised inside a unit where PostgreSQL finds a value taken by a unit that ran beside it.

    The unit cannot go on; it may raise another error instead.
    """


class Reader(Protocol):
    """A database, or what stands for one, that can be read."""

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the database is out of reach or failing.
        """
        ...


class Store(Reader, Protocol):
    """A database."""

    def migrate(self) -> None:
        """Make the schema if there is none, and bring it up to date. It waits; call it in no loop.

        Raises:
            UnusableDatabase: a newer version made the database, or another program did.
            Unavailable: the database is out of reach.
        """
        ...

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

    async def version(self) -> int | None:
        """Return a number that is another one after every commit, whoever made it.

        ``None`` if the database cannot tell.

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
