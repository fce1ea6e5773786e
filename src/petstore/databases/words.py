"""The index of words: finds pets and buyers by any words, at the same cost in any store.

It has the ids of each beginning of a word (``petstore.domain.words``), in order: in rows of
PostgreSQL, or in an FTS5 table of SQLite, which merges them bit by bit and so changes few pages.

Even so, to index each change at once would cost a quarter of it. So an item whose text is new waits
in a queue, and within a second many are indexed together. It is in the queue or in the index, never
in both. A search compares the names of those that wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, json

from petstore.databases.contract import Reader, Statement, Store, Unit, placeholder_list
from petstore.databases.pages import SHORT, Page, index_range, lateral_join, limited_subquery
from petstore.domain.decoding import RowMapping
from petstore.domain.words import (
    finds,
    indexed_beginning,
    terms_of,
    terms_of_each,
    typed_words,
    words_of,
)
from petstore.periodic_tasks import PeriodicTask
from petstore.time_slices import TimeSlices

S = TypeVar("S", bound=Struct)

MAX_SCANNED = 2_000
"""The most items that one page of a search looks at. A long text that is not ASCII counts more."""

_PAUSE_SECONDS = 0.01
_CHUNK = 200
_FOLDED_AT_ONCE = 20  # characters, in the time in which a row is read
# A statement with terms of so many characters takes a millisecond, in which nothing else runs.
_AT_ONCE = 5_000
_MERGED_PAGES = 32


class WordIndex(NamedTuple, Generic[S]):
    """The words of a text of the items of a table, in a ``table`` of its own and its queue."""

    table: str
    items: str
    mapping: RowMapping[S]
    text_of: Callable[[S], str]

    def add(self, ids: Sequence[int]) -> Statement:
        """Let ``update`` index items whose text is new. Until then a search compares it."""
        rows = ", ".join(f"(?{number})" for number in range(1, len(ids) + 1))
        return Statement(
            f"INSERT INTO {self.table}_queue (item_id) VALUES {rows} ON CONFLICT DO NOTHING",  # noqa: S608
            ids,
            deferrable=True,
            name=f"queue_{self.table}",
        )

    def replace(self, item_id: int, before: str, after: str) -> Unit[None]:
        """Index another text of an item; "" has no words."""
        if before:
            # On SQLite the id is enough, but the statement has to have each parameter.
            yield Statement(
                f"DELETE FROM {self.table} WHERE /*sqlite*/ rowid = ?1 AND ?2 IS NOT NULL /*end*/"  # noqa: S608
                " /*pg item_id = ?1 AND term = ANY (string_to_array(?2, ' ')) */",
                (item_id, terms_of(before)),
                deferrable=True,
                name=f"delete_{self.table}",
            )
        if after:
            yield self.add([item_id])
        elif before:
            yield self._dequeue([item_id])

    def updating(self, store: Store) -> PeriodicTask:
        return PeriodicTask(partial(self.update, store), 1, f"{self.items} not indexed for search")

    async def update(self, store: Store) -> None:
        """Index the items whose text is new, many at a time."""
        async for texts in self.waiting(store):
            known = await terms_of_each(texts.values())
            if not await store.write(self.index_items([*texts], known)):
                break  # others change or index them just now
            await asyncio.sleep(_PAUSE_SECONDS)

    async def waiting(self, store: Reader) -> AsyncIterator[dict[int, str]]:
        """Yield the texts that are not yet indexed, by the ids of their items."""
        last = 0
        while rows := await store.read(self._select(last, _CHUNK)):
            yield {row[0]: self.text_of(self.mapping.read(row)) for row in rows}
            last = rows[-1][0]

    async def search(
        self,
        store: Reader,
        text: str,
        after: int | None,
        limit: int,
        admits: Callable[[S], bool] | None = None,
    ) -> Page[S]:
        """A page looks at ``MAX_SCANNED`` items at most: it may be short, and not the last."""
        typed = typed_words(text)
        terms = [*dict.fromkeys(map(indexed_beginning, typed))]
        if not terms:
            return Page([], None)
        # One more than the page holds shows whether there is a next one.
        is_exact = admits is None and typed == terms
        size, last = limit + 1 if is_exact else _CHUNK, after or 0
        term = terms[0] if len(terms) == 1 else await self._rarest(store, terms, last)
        items, slices, left = list[S](), TimeSlices(), MAX_SCANNED
        await slices.begin()
        while True:
            rows = await store.read(self._select(last, size, term))
            for row in rows:
                item = self.mapping.read(row)
                name = self.text_of(item)
                if (admits is None or admits(item)) and finds(typed, words_of(name)):
                    if len(items) == limit:
                        return Page(items, last)
                    items.append(item)
                last = row[0]
                left -= 1 if name.isascii() else 1 + len(name) // _FOLDED_AT_ONCE
                if left <= 0:
                    return Page(items, last)
                await slices.rest()
            if len(rows) < size:
                return Page(items, None)
            size = _CHUNK  # else a page of few would run hundreds of statements

    def index_items(self, ids: Sequence[int], known: Mapping[str, str]) -> Unit[int]:
        waiting = f"SELECT item_id FROM {self.table}_queue"  # noqa: S608
        rows = yield Statement(
            f"SELECT {self.mapping.columns} FROM {self.items} WHERE id IN"  # noqa: S608
            f" ({waiting} WHERE item_id IN ({placeholder_list(1, ids)}))"
            " ORDER BY id /*pg FOR UPDATE SKIP LOCKED */",
            ids,
            name=f"lock_{self.table}",
        )
        terms, size = dict[int, str](), 0
        for row in rows:
            text = self.text_of(self.mapping.read(row))
            terms[row[0]] = known.get(text) or terms_of(text)
            size += len(terms[row[0]])
            if size >= _AT_ONCE or row is rows[-1]:
                yield self._insert(terms)
                terms, size = {}, 0
        if locked := [row[0] for row in rows]:
            yield self._dequeue(locked)
        return len(locked)

    def _insert(self, terms: Mapping[int, str]) -> Statement:
        # FTS5 merges some pages of its own with each statement, not many of them now and then. In
        # order of the key, PostgreSQL changes each page of the table once.
        return Statement(
            f"/*sqlite*/ INSERT OR REPLACE INTO {self.table} (rowid, terms, {self.table}, rank)"  # noqa: S608
            " SELECT CAST(key AS INTEGER), value, NULL, NULL FROM json_each(?1)"
            f" UNION ALL SELECT NULL, NULL, 'merge', {_MERGED_PAGES} /*end*/"
            f" /*pg INSERT INTO {self.table} SELECT term, CAST(item.key AS BIGINT) AS id"
            " FROM json_each_text(CAST(?1 AS JSON)) AS item,"
            " unnest(string_to_array(item.value, ' ')) AS term"
            ' ORDER BY term COLLATE "C", id ON CONFLICT DO NOTHING */',
            (json.encode(terms).decode(),),
            name=f"index_{self.table}",
        )

    def _dequeue(self, ids: Sequence[int]) -> Statement:
        return Statement(
            f"DELETE FROM {self.table}_queue WHERE item_id IN ({placeholder_list(1, ids)})",  # noqa: S608
            ids,
            deferrable=True,
            name=f"dequeue_{self.table}",
        )

    def matches(self, term: str) -> str:
        """Return SQLite's condition that a row of the index is of a term, which is SQL."""
        return f"""{self.table} MATCH '"' || replace({term}, '"', '""') || '"'"""

    async def _rarest(self, store: Reader, terms: Sequence[str], after: int) -> str:
        """Return the term of which the next items are the fewest, or the farthest apart."""
        counts = " UNION ALL ".join(
            f"SELECT {place}, count(*), max(item_id) FROM"  # noqa: S608
            f" ({self._range(f'?{place + 2}')} LIMIT {_CHUNK}) AS words"
            for place in range(len(terms))
        )
        rows = await store.read(Statement(counts, (after, *terms), name=f"count_{self.table}"))
        place, _, _ = min(rows, key=lambda row: (row[1], -(row[2] or 0)))
        return terms[place]

    def _range(self, term: str) -> str:
        """Return a SELECT of the items of a term, which is SQL, behind the first parameter."""
        pg = index_range(["term"], [f"(SELECT CAST({term} AS TEXT))"], "item_id", "?1")
        return (
            f"SELECT /*sqlite*/ rowid AS item_id FROM {self.table}"  # noqa: S608
            f" WHERE {self.matches(term)} AND rowid > ?1 ORDER BY rowid /*end*/"
            f" /*pg item_id FROM {self.table} {pg} */"
        )

    def _select(self, after: int, limit: int, term: str = "") -> Statement:
        """Return a SELECT of the items not yet indexed, and of those that have a term if given."""
        waiting = f"SELECT item_id FROM {self.table}_queue WHERE item_id > ?1 ORDER BY item_id"  # noqa: S608
        ranges = [waiting, self._range("?3")] if term else [waiting]
        if limit <= SHORT + 1:
            ranges = [*map(limited_subquery, ranges)]
        ids = " UNION ".join(f"SELECT * FROM ({each} LIMIT ?2) AS part" for each in ranges)  # noqa: S608
        item = lateral_join("JOIN", self.items, "p", "id", "item_id")
        sql = (
            f"SELECT {self.mapping.columns} FROM"  # noqa: S608 - only names
            f" ({ids} ORDER BY item_id LIMIT ?2) AS parts {item} ORDER BY item_id"
        )
        parameters = (after, limit, term) if term else (after, limit)
        return Statement(sql, parameters, name=f"search_{self.items}")
