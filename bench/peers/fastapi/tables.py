"""The tables that the peer uses, and the pools of connections to them.

The schema is the service's own: it is mapped here, never created.
"""

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ForeignKey, Integer, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import ConnectionPoolEntry

# SQLite numbers a primary key by itself only where its type is INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables; a Python int is an integer of 64 bits."""

    type_annotation_map = {int: BigInteger}  # noqa: RUF012 - as SQLAlchemy has it


class Pet(Base):
    """A pet."""

    __tablename__ = "pets"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    category_id: Mapped[int]
    status: Mapped[str | None]


class Inventory(Base):
    """Counts of pets by status, kept by triggers: on PostgreSQL several rows of each status."""

    __tablename__ = "inventory"

    status: Mapped[str] = mapped_column(primary_key=True)
    pets: Mapped[int]


class Order(Base):
    """An order; times are milliseconds since 1970, ``ship_date`` is ISO 8601."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    pet_id: Mapped[int]
    status: Mapped[str]
    ship_date: Mapped[str | None]
    placed_at: Mapped[int]
    reserved_until: Mapped[int | None]


class ApiKey(Base):
    """An API key; times are milliseconds since 1970."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    plan: Mapped[str]
    per_minute: Mapped[int | None]
    per_day: Mapped[int | None]
    environment: Mapped[str]
    expires_at: Mapped[int | None]
    revoked_at: Mapped[int | None]


class ApiKeyToken(Base):
    """A token of a key, by its SHA-256 digest."""

    __tablename__ = "api_key_tokens"

    digest: Mapped[bytes] = mapped_column(primary_key=True)
    key_id: Mapped[int] = mapped_column(ForeignKey("api_keys.id"))
    expires_at: Mapped[int | None]


class Sessions:
    """Makes sessions on a pool of ``size`` connections, for as many callers at a time.

    The pool itself serves new callers before waiting ones: of 32 callers some wait half a second.
    """

    def __init__(self, url: str, size: int, **options: Any) -> None:
        self.engine = create_async_engine(url, pool_size=size, max_overflow=0, **options)
        self._new = async_sessionmaker(self.engine, expire_on_commit=False)
        self._turns = Semaphore(size)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[AsyncSession]:
        """Yield a session."""
        async with self._turns, self._new() as session:
            yield session


class Database(NamedTuple):
    """Sessions that read, each statement by itself, and sessions that write, in transactions."""

    reading: Sessions
    writing: Sessions


@asynccontextmanager
async def opened_database(database: str) -> AsyncIterator[Database]:
    """Yield the database at a ``postgresql://`` URL, or in the SQLite file at a path.

    SQLite has one writer at a time: waiting for one's turn is better than SQLITE_BUSY. What only
    reads needs no BEGIN and ROLLBACK around its one statement, hence AUTOCOMMIT.
    """
    if database.startswith("postgresql://"):
        url, readers, writers = database.replace("postgresql", "postgresql+asyncpg", 1), 10, 10
    else:
        url, readers, writers = f"sqlite+aiosqlite:///{database}", 4, 1
    alone = {"isolation_level": "AUTOCOMMIT", "skip_autocommit_rollback": True}
    sessions = Database(Sessions(url, readers, **alone), Sessions(url, writers))
    for one in sessions:
        if one.engine.dialect.name == "sqlite":
            event.listen(one.engine.sync_engine, "connect", _set_pragmas)
    try:
        yield sessions
    finally:
        for one in sessions:
            await one.engine.dispose()


def _set_pragmas(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
