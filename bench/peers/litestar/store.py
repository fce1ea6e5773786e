"""The pet store in a SQLite file, through aiosqlite: one connection that reads, one that writes.

Each connection has a thread of its own, and works on one statement at a time. One reader is as fast
as several: they would wait for the interpreter's lock.
"""

from asyncio import Lock
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import aiosqlite
from msgspec import UNSET
from records import Inventory, NewOrder, NewPet, Pet

_PETS = "SELECT id, name, category_id, status FROM pets"
_KEY = (
    "SELECT k.id, k.plan, k.per_minute, k.per_day FROM api_key_tokens t"
    " JOIN api_keys k ON k.id = t.key_id WHERE t.digest = ?1 AND k.environment = 'production'"
    " AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2)"
    " AND (t.expires_at IS NULL OR t.expires_at > ?2)"
)


class Store:
    """The tables of one file; ``opened`` makes one."""

    def __init__(self, reader: aiosqlite.Connection, writer: aiosqlite.Connection) -> None:
        self._read = reader.execute_fetchall
        self._write = writer.execute_fetchall
        self._turn = Lock()

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: str) -> AsyncIterator[Self]:
        """Yield the store in the file ``path``."""
        async with AsyncExitStack() as stack:
            # Transactions are begun by hand: a statement outside of one commits itself.
            reader, writer = [
                await stack.enter_async_context(aiosqlite.connect(path, isolation_level=None))
                for _ in range(2)
            ]
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                await writer.execute(f"PRAGMA {pragma}")
            await reader.execute("PRAGMA query_only=ON")
            yield cls(reader, writer)

    async def find_key(self, digest: bytes, now: int) -> tuple[Any, ...] | None:
        """Return id, plan and own limits of the key with this token, if it is valid."""
        return next(iter(await self._read(_KEY, (digest, now))), None)

    async def list_pets(
        self, status: str | None, category_id: int | None, after: int | None, count: int
    ) -> list[Pet]:
        """Return the first ``count`` pets with an id above ``after``."""
        wanted = {"status = ?": status, "category_id = ?": category_id, "id > ?": after}
        given = {term: value for term, value in wanted.items() if value is not None}
        where = f" WHERE {' AND '.join(given)}" if given else ""
        sql = f"{_PETS}{where} ORDER BY id LIMIT ?"
        return [_pet(row) for row in await self._read(sql, (*given.values(), count))]

    async def get_pet(self, pet_id: int) -> Pet | None:
        """Return one pet, if it exists."""
        return next(map(_pet, await self._read(f"{_PETS} WHERE id = ?", (pet_id,))), None)

    async def get_inventory(self) -> Inventory:
        """Return how many pets there are of each status."""
        return Inventory(**dict(await self._read("SELECT status, pets FROM inventory", ())))

    async def add_pet(self, new: NewPet) -> Pet:
        """Add a pet."""
        status = None if new.status is UNSET else new.status
        async with self._turn:
            ((pet_id,),) = await self._write(
                "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?) RETURNING id",
                (new.name, new.category_id, status),
            )
        return Pet(pet_id, new.name, new.category_id, new.status)

    async def place_order(self, new: NewOrder, placed_at: int, reserved_until: int) -> int | None:
        """Reserve an available pet and return the id of the order, or None if it is not one."""
        async with self._turn:
            await self._write("BEGIN IMMEDIATE", ())
            try:
                order_id = await self._reserve(new, placed_at, reserved_until)
            except BaseException:
                await self._write("ROLLBACK", ())
                raise
            await self._write("COMMIT", ())
        return order_id

    async def _reserve(self, new: NewOrder, placed_at: int, reserved_until: int) -> int | None:
        reserved = await self._write(
            "UPDATE pets SET status = 'pending' WHERE id = ? AND status = 'available' RETURNING id",
            (new.pet_id,),
        )
        if not reserved:
            return None
        ship_date = None if new.ship_date is UNSET else new.ship_date.isoformat()
        ((order_id,),) = await self._write(
            "INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)"
            " VALUES (?, 'placed', ?, ?, ?) RETURNING id",
            (new.pet_id, ship_date, placed_at, reserved_until),
        )
        return order_id


def _pet(row: tuple[Any, ...]) -> Pet:
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)
