"""The index of words: finds pets and buyers by any words, at the same cost in any store.

A table of words has a row for each beginning of a word (``petstore.domain.words``) and item. So
what begins with a text is one range of its key, by the ids of the items.

The rows of an item are on as many pages of the database. To write them with each change would cost
more than the change itself. So an item whose text is new is one row of the term "", and within a
second many are indexed at once. A search compares the names of those that still wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, json

from petstore.databases.contract import Reader, Statement, Store, Unit, placeholder_list
from petstore.databases.pages import (
    SHORT,
    Page,
    index_range,
    lateral_join,
    limited_subquery,
)
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

_PENDING = ""  # no beginning of a word
_PAUSE_SECONDS = 0.01
_CHUNK = 200
_FOLDED_AT_ONCE = 20  # characters, in the time in which a row is read
# A statement of so many takes some milliseconds, in which nothing else runs.
_AT_ONCE = 1_000


class WordIndex(NamedTuple, Generic[S]):
    """The words of a text of the items of a table, which has them in a ``table`` of its own."""

    table: str
    items: str
    mapping: RowMapping[S]
    text_of: Callable[[S], str]

    def add(self, ids: Sequence[int]) -> Statement:
        """Let ``update`` index items whose text is new. Until then a search compares it."""
        rows = ", ".join(f"('{_PENDING}', ?{number})" for number in range(1, len(ids) + 1))
        return Statement(
            f"INSERT INTO {self.table} (term, item_id) VALUES {rows} ON CONFLICT DO NOTHING",  # noqa: S608
            ids,
            deferrable=True,
            name=f"insert_{self.table}",
        )

    def replace(self, item_id: int, before: str, after: str) -> Unit[None]:
        """Index another text of an item; "" has no words."""
        new = {*terms_of(after), _PENDING} if after else set()
        old = [*terms_of(before), _PENDING] if before else []
        if gone := [term for term in old if term not in new]:
            yield Statement(
                f"DELETE FROM {self.table} WHERE item_id = ?1 AND term"  # noqa: S608
                " /*sqlite*/ IN (SELECT value FROM json_each(?2)) /*end*/"
                " /*pg = ANY (ARRAY(SELECT json_array_elements_text(CAST(?2 AS JSON)))) */",
                (item_id, json.encode(gone).decode()),
                deferrable=True,
                name=f"delete_{self.table}",
            )
        if after:
            yield self.add([item_id])

    def updating(self, store: Store) -> PeriodicTask:
        return PeriodicTask(
            partial(self.update, store), 1, f"{self.items} not indexed for searches"
        )

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
        while rows := await store.read(self._select(_PENDING, last, _CHUNK)):
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
            rows = await store.read(self._select(term, last, size))
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

    def index_items(self, ids: Sequence[int], known: Mapping[str, Sequence[str]]) -> Unit[int]:
        waiting = f"SELECT item_id FROM {self.table} WHERE term = '{_PENDING}'"  # noqa: S608
        places = placeholder_list(1, ids)
        rows = yield Statement(
            f"SELECT {self.mapping.columns} FROM {self.items} WHERE id IN"  # noqa: S608
            f" ({waiting} AND item_id IN ({places})) ORDER BY id /*pg FOR UPDATE SKIP LOCKED */",
            ids,
            name=f"lock_{self.table}",
        )
        terms, size = dict[int, Sequence[str]](), 0
        for row in rows:
            text = self.text_of(self.mapping.read(row))
            terms[row[0]] = known.get(text) or terms_of(text)
            size += len(terms[row[0]])
            if size >= _AT_ONCE or row is rows[-1]:
                yield self._insert(terms)
                terms, size = {}, 0
        if locked := [row[0] for row in rows]:
            yield Statement(
                f"DELETE FROM {self.table} WHERE term = '{_PENDING}'"  # noqa: S608
                f" AND item_id IN ({placeholder_list(1, locked)})",
                locked,
                name=f"dequeue_{self.table}",
            )
        return len(locked)

    def _insert(self, terms: Mapping[int, Sequence[str]]) -> Statement:
        # In order of the key: each page of the table is then changed once.
        return Statement(
            f"INSERT INTO {self.table} SELECT term.value, CAST(item.key AS BIGINT) FROM"  # noqa: S608
            " /*sqlite*/ json_each(?1) AS item, json_each(item.value) AS term"
            " WHERE true ORDER BY 1, 2 /*end*/"
            " /*pg json_each(CAST(?1 AS JSON)) AS item,"
            ' json_array_elements_text(item.value) AS term ORDER BY term.value COLLATE "C", 2 */'
            " ON CONFLICT DO NOTHING",
            (json.encode(terms).decode(),),
            name=f"index_{self.table}",
        )

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
            f"SELECT item_id FROM {self.table}"  # noqa: S608
            f" /*sqlite*/ WHERE term = {term} AND item_id > ?1 ORDER BY item_id /*end*/"
            f" /*pg {pg} */"
        )

    def _select(self, term: str, after: int, limit: int) -> Statement:
        """Return a SELECT of the items that have a term, and of those not yet indexed."""
        ranges = (self._range("?2"), self._range(f"'{_PENDING}'"))
        if limit <= SHORT + 1:
            ranges = (limited_subquery(ranges[0]), limited_subquery(ranges[1]))
        ids = " UNION ".join(f"SELECT * FROM ({each} LIMIT ?3) AS part" for each in ranges)  # noqa: S608
        item = lateral_join("JOIN", self.items, "p", "id", "item_id")
        sql = (
            f"SELECT {self.mapping.columns} FROM"  # noqa: S608 - only names
            f" ({ids} ORDER BY item_id LIMIT ?3) AS parts {item} ORDER BY item_id"
        )
        return Statement(sql, (after, term, limit), name=f"search_{self.items}")
