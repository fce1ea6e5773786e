"""Copy a whole store from one database to another, and check that all of it arrived."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple, TypeAlias, get_args

import msgspec

from petstore.databases.contract import Row
from petstore.databases.copies.contract import COPIED, PRESET, CopiedTable, Side
from petstore.errors import Conflict, InternalError
from petstore.pets.model import PetStatus

OnProgress: TypeAlias = Callable[[int, int], object]
"""Takes the steps done, and all steps. Each row is copied, and then checked."""

_DIGEST_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode


class Contents(NamedTuple):
    """The number of rows in a table, and a digest of them in any order."""

    rows: int = 0
    digest: int = 0

    def __str__(self) -> str:
        return f"{self.digest:0{2 * _DIGEST_BYTES}x}"

    def and_also(self, rows: Iterable[Row]) -> "Contents":
        """Return the contents with ``rows`` added.

        The digest is the sum of the digests of rows: databases sort texts in different ways.
        """
        count, digest = self
        for row in rows:
            hashed = blake2b(_encode(row), digest_size=_DIGEST_BYTES).digest()
            digest += int.from_bytes(hashed)
            count += 1
        return Contents(count, digest % 256**_DIGEST_BYTES)


async def copy_store(source: Side, target: Side, on_progress: OnProgress) -> dict[str, Contents]:
    """Copy all rows of ``source`` to ``target``, which is empty; return the contents by table.

    Ids stay as they are. The target does not reuse ids of deleted rows.

    Raises:
        Conflict: the target is not empty.
        InternalError: the rows that arrived differ from the rows sent.
        Unavailable: a database is unreachable, full or failing, or refuses the rows.
    """
    filled = [
        table.name
        for table in COPIED
        if table.name != PRESET and await target.run(f"SELECT 1 FROM {table.name} LIMIT 1")  # noqa: S608
    ]
    if filled:
        msg = f"the target is not empty: it has rows in {', '.join(filled)}"
        raise Conflict(msg)
    await target.run(f"DELETE FROM {PRESET}")  # noqa: S608 - a name
    tables = [await _with_columns(target, table) for table in COPIED]
    total = 0
    for table in tables:
        ((count,),) = await source.run(f"SELECT count(*) FROM {table.name}")  # noqa: S608 - a name
        total += 2 * count
    sent, done = {}, 0
    for table in tables:
        contents = Contents()
        async for rows in source.pages(table):
            await target.add(table, rows)
            contents = contents.and_also(rows)
            on_progress(done + contents.rows, total)
        if table.has_ids:
            last_ids = [await side.last_id(table) for side in (source, target)]
            await target.set_sequence(table, max(last_ids))
        sent[table.name] = contents
        done += contents.rows
    await _count_animals(target)
    for table in tables:
        copied, found = sent[table.name], Contents()
        async for rows in target.pages(table):
            found = found.and_also(rows)
            on_progress(done + found.rows, total)
        if found != copied:
            msg = (
                f"{table.name} did not arrive as it was sent: {copied.rows} rows with digest"
                f" {copied} were sent, {found.rows} with {found} are there; nothing was copied"
            )
            raise InternalError(msg)
        done += found.rows
    return sent


async def _with_columns(side: Side, table: CopiedTable) -> CopiedTable:
    names = await side.columns(table.name)
    return table._replace(values=tuple(name for name in names if name not in table.key))


async def _count_animals(target: Side) -> None:
    """Count the inventory again, even if the triggers of the database have counted animals."""
    statuses = get_args(PetStatus)
    await target.run("DELETE FROM inventory")
    for status in statuses:
        counted = f"SELECT '{status}', count(*) FROM pets WHERE status = '{status}'"  # noqa: S608
        await target.run(f"INSERT INTO inventory (status, pets) {counted}")
    await target.run("DELETE FROM category_inventory")
    counts = [f"sum(CASE status WHEN '{status}' THEN 1 ELSE 0 END)" for status in statuses]
    await target.run(
        f"INSERT INTO category_inventory (category_id, {', '.join(statuses)})"  # noqa: S608 - only names
        f" SELECT category_id, {', '.join(counts)} FROM pets WHERE status IS NOT NULL"
        " GROUP BY category_id"
    )
