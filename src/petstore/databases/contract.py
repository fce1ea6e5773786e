"""What every database does for the service.

SQL is the portable subset of SQLite and PostgreSQL, with parameters ``?1``, ``?2``, …. PostgreSQL
alone reads ``/*pg … */``, a comment to SQLite. The locks go there: SQLite runs one unit of work
after another and needs none. SQLite alone reads what is between ``/*sqlite*/`` and ``/*end*/``.

On PostgreSQL units run concurrently, and each statement sees what was committed when it began. So
a unit locks the rows that it relies on (``/*pg FOR UPDATE */``), or leaves the decision to one
statement with a condition (``UPDATE … WHERE status = 'available' RETURNING …``). All units lock in
the same order, so that no two wait for each other: idempotency records, the revision of the keys,
a key, its imports, its webhooks, their deliveries, orders, pets, categories.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from petstore.errors import NotFound, Unavailable

Value: TypeAlias = int | str | bytes | None
Row: TypeAlias = tuple[Any, ...]
OnProgress: TypeAlias = Callable[[int, int], object]
"""Takes how much of a database is copied and checked, and of how much."""
S = TypeVar("S")
T = TypeVar("T")


class Statement(Struct, frozen=True, gc=False):
    """One SQL statement and its parameters.

    With ``rows``, it runs once for each of them, with the values of the row as its parameters.

    With ``returns_id``, the name of a table, it inserts one row there and returns the id. SQLite
    tells the id afterwards. PostgreSQL gets it as one more parameter, the last one.

    With ``deferrable``, or an id, the unit of work needs nothing that the statement finds, and has
    locked the rows that it changes, unless they are new. PostgreSQL may run it together with others
    that may wait, of other names: in no order, and none of them sees what another one changes. A
    unit of such statements alone may share its transaction with others.

    With ``by_id``, it is a SELECT that ends in ``WHERE id = ?1``, and its first column is that id.
    PostgreSQL may read the rows of many callers with one query.

    ``if_taken`` makes the error of a unit on PostgreSQL that another one beside it has outrun with
    the same unique value.

    Metrics and traces show ``name``: no data of a client is in it.
    """

    sql: str
    parameters: Sequence[Value] = ()
    rows: Sequence[Row] | None = None
    by_id: bool = False
    returns_id: str = ""
    deferrable: bool = False
    if_taken: Callable[[], Exception] | None = None
    name: str = "unnamed"


Unit: TypeAlias = Generator[Statement, list[Row], T]
"""A unit of work: yields statements, receives their rows, returns its result.

It does no I/O and may raise a domain error, which undoes it. So any database can run it inside a
transaction, and a test can drive it by hand.
"""


def mapped(unit: Unit[S], function: Callable[[S], T]) -> Unit[T]:
    return function((yield from unit))


def placeholders(width: int, rows: int = 1) -> str:
    numbers = count(1)
    row = range(width)
    return ", ".join(f"({', '.join(f'?{next(numbers)}' for _ in row)})" for _ in range(rows))


def placeholder_list(first: int, values: Sized) -> str:
    """Return such as ``?5, ?6``, or ``NULL`` for none: PostgreSQL rejects an empty list."""
    return ", ".join(f"?{number}" for number in range(first, first + len(values))) or "NULL"


@contextmanager
def as_unavailable(
    kinds: tuple[type[Exception], ...], context: str = "the database is not available"
) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise unavailable(error, context) from error


def unavailable(error: Exception, context: str = "the database is not available") -> Unavailable:
    # The lines after the first one advise programmers, or show the refused row.
    reason = str(error).partition("\n")[0] or "it did not respond in time"
    if sqlstate := getattr(error, "sqlstate", None):
        reason += f" (SQLSTATE {sqlstate})"
    return Unavailable(f"{context}: {reason}")


class Reader(Protocol):
    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on committed data."""


class Schema(NamedTuple):
    """The version of a database's schema, 0 for none, and the newest that this program knows."""

    version: int
    newest: int


async def read_unit(store: Reader, unit: Unit[T]) -> T:
    """Return the result of a unit that only reads, and needs no transaction."""
    try:
        statement = next(unit)
        while True:
            statement = unit.send(await store.read(statement))
    except StopIteration as done:
        result: T = done.value
        return result


class Store(Reader, Protocol):
    """A database. Every method but ``close`` raises ``Unavailable`` if it is failing."""

    def migrate(self) -> None:
        """Create the schema if necessary, and bring it up to date. It blocks."""

    def schema(self) -> Schema:
        """Return the version of the schema, which stays as it is. It blocks."""

    async def open(self) -> None:
        """Connect. The schema must be up to date (see ``migrate``)."""

    async def close(self) -> None: ...

    async def check(self) -> None:
        """Return if the database can be read."""

    async def version(self) -> object:
        """Return what changes with every commit of any process, as of now or later."""

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in a transaction and return its result once it is durable."""


def upsert(
    table: str, columns: Sequence[str], rows: Iterable[Row], conflict: str
) -> Unit[list[Row]]:
    """Insert ``rows``, whose first values are their keys, and return what ``conflict`` returns.

    ``conflict`` is the SQL that follows ``ON CONFLICT``. No page of a list shows the ``table``.
    """
    sql = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {placeholders(len(columns))}"  # noqa: S608
        f" ON CONFLICT {conflict}"
    )
    # In order of the keys, so that processes that do this at once do not deadlock.
    return (yield Statement(sql, rows=sorted(rows), name=f"upsert_{table}"))


def found(rows: list[Row], item_of: Callable[[Row], T], kind: str, item_id: int) -> T:
    if not rows:
        raise NotFound(f"there is no {kind} {item_id}")
    return item_of(rows[0])
