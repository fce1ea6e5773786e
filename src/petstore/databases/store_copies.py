"""Copy a whole store from a SQLite file to PostgreSQL, and check that all of it arrived."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from petstore.clock import SECOND
from petstore.databases.contract import OnProgress, Row, as_unavailable
from petstore.databases.postgres_connection import ERRORS, Connection, connect
from petstore.databases.schema import TABLES
from petstore.databases.sqlite_connection import connected
from petstore.errors import Conflict, InternalError
from petstore.pets.model import STATUSES

COPIED = tuple(table for table in TABLES if table.is_copied)

PRESET = "api_key_revision"  # the table that has a row even in a new store
_COUNTS = {"inventory": ("status", "pets"), "category_inventory": ("category_id", *STATUSES)}
_PAGE = 5000
_COLUMNS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND table_name = $1"
)
_WAIT_SECONDS = 10
_TIMEOUTS = f"""
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'
"""
_NAMES = ", ".join(table.name for table in COPIED)
_DIGEST_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode


class Contents(NamedTuple):
    """The number of rows in a table, and a digest of them in any order."""

    rows: int = 0
    digest: int = 0

    def __str__(self) -> str:
        return f"{self.digest:0{2 * _DIGEST_BYTES}x}"

    def and_also(self, rows: Iterable[Row]) -> "Contents":
        """The digest is the sum of the rows' digests: databases sort texts in different ways."""
        count, digest = self
        for row in rows:
            hashed = blake2b(_encode(row), digest_size=_DIGEST_BYTES).digest()
            digest += int.from_bytes(hashed)
            count += 1
        return Contents(count, digest % 256**_DIGEST_BYTES)


async def copy_store(path: Path, url: str, on_progress: OnProgress) -> dict[str, Contents]:
    """Copy all rows of the file ``path`` to the empty store at ``url``; return them by table."""
    # Every error: the statements are ours alone, but the rows may be refused.
    with (
        as_unavailable((apsw.Error,), str(path)),
        as_unavailable(ERRORS, "PostgreSQL"),
        connected(path, _WAIT_SECONDS * SECOND) as source,
    ):
        source.execute("BEGIN")
        async with _filling(url) as target:
            return await _copy(source, target, on_progress)


@asynccontextmanager
async def _filling(url: str) -> AsyncIterator[Connection]:
    connection = await connect(url, _WAIT_SECONDS)
    try:
        await connection.execute("BEGIN")
        await connection.execute(_TIMEOUTS)
        await connection.execute(f"LOCK TABLE {_NAMES} IN SHARE ROW EXCLUSIVE MODE")
        # A call for every pet, and its dead rows, would make a large copy crawl.
        await connection.execute("ALTER TABLE pets DISABLE TRIGGER USER")
        yield connection
        await connection.execute("ALTER TABLE pets ENABLE TRIGGER USER")
        # Until then, the server plans queries for empty tables.
        await connection.execute(f"ANALYZE {_NAMES}")
        await connection.execute("COMMIT")
        await connection.close(timeout=_WAIT_SECONDS)
    finally:
        # The server undoes what was not committed.
        connection.terminate()


async def _copy(
    source: apsw.Connection, target: Connection, on_progress: OnProgress
) -> dict[str, Contents]:
    await _require_empty(target)
    total = 0
    for table in COPIED:
        ((count,),) = source.execute(f"SELECT count(*) FROM {table.name}")  # noqa: S608 - a name
        total += 2 * count
    selects, sent, done = {}, {}, 0
    for table in COPIED:
        name, contents = table.name, Contents()
        # Without the columns that others have added to the source.
        columns = [row["column_name"] for row in await target.fetch(_COLUMNS, name)]
        select = f"SELECT {', '.join(columns)} FROM {name} ORDER BY {', '.join(table.key)}"  # noqa: S608 - only names
        cursor = source.execute(select)
        while rows := list(islice(cursor, _PAGE)):
            await target.copy_records_to_table(name, records=rows, columns=columns)
            contents = contents.and_also(rows)
            on_progress(done + contents.rows, total)
        if table.key == ("id",) and not table.ids_of:
            await _continue_ids(source, target, name)
        selects[name], sent[name] = select, contents
        done += contents.rows
    await _copy_counts(source, target)
    # The service indexes them, as if they were new.
    await target.execute("INSERT INTO pet_words_queue SELECT id FROM pets")
    await target.execute("INSERT INTO order_words_queue SELECT id FROM orders WHERE buyer <> ''")
    for name, copied in sent.items():
        found = Contents()
        await target.execute(f"DECLARE pages CURSOR FOR {selects[name]}")
        while records := await target.fetch(f"FETCH {_PAGE} FROM pages"):
            found = found.and_also(map(tuple, records))
            on_progress(done + found.rows, total)
        await target.execute("CLOSE pages")
        if found != copied:
            raise InternalError(
                f"{name} did not arrive as it was sent: {copied.rows} rows with digest"
                f" {copied} were sent, {found.rows} with {found} are there; nothing was copied"
            )
        done += found.rows
    return sent


async def _require_empty(target: Connection) -> None:
    filled = [
        table.name
        for table in COPIED
        if table.name != PRESET and await target.fetch(f"SELECT 1 FROM {table.name} LIMIT 1")  # noqa: S608 - a name
    ]
    if filled:
        raise Conflict(f"the target is not empty: it has rows in {', '.join(filled)}")
    await target.execute(f"DELETE FROM {PRESET}")  # noqa: S608 - a name


async def _continue_ids(source: apsw.Connection, target: Connection, name: str) -> None:
    """Let the target give ids above the highest that one of them ever gave."""
    given = source.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (name,)).get
    sequence = await target.fetchval("SELECT pg_get_serial_sequence($1, 'id')", name)
    following = await target.fetchval(
        f"SELECT last_value + is_called::int FROM {sequence}"  # noqa: S608 - a quoted name
    )
    # Unlike setval, it is undone with the transaction.
    await target.execute(
        f"ALTER SEQUENCE {sequence} RESTART WITH {max((given or 0) + 1, following)}"
    )


async def _copy_counts(source: apsw.Connection, target: Connection) -> None:
    """Copy the counts of pets, which the triggers of the target have not made."""
    for name, columns in _COUNTS.items():
        await target.execute(f"DELETE FROM {name}")  # noqa: S608 - a name
        counts = source.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()  # noqa: S608 - only names
        await target.copy_records_to_table(name, records=counts, columns=columns)
