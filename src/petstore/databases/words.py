"""The index of words: finds pets and buyers by any words, at the same cost in any store.

A table of words has a row for each beginning of a word (``petstore.domain.words``) and item. So
what begins with a text is one range of its key, by the ids of the items.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, json

from petstore.databases.contract import Reader, Statement, Unit
from petstore.databases.pages import (
    SHORT,
    Page,
    index_range,
    lateral_join,
    limited_subquery,
    opaque_parameter,
)
from petstore.domain.decoding import RowMapping
from petstore.domain.words import finds, indexed_beginning, terms_of, typed_words, words_of
from petstore.time_slices import TimeSlices

S = TypeVar("S", bound=Struct)

MAX_SCANNED = 2_000
"""The most items that one page of a search looks at."""

_CHUNK = 200
# A statement of so many takes some milliseconds, in which nothing else runs.
_AT_ONCE = 1_000


class WordIndex(NamedTuple, Generic[S]):
    """The words of a text of the items of a table, which has them in a ``table`` of its own."""

    table: str
    items: str
    mapping: RowMapping[S]
    text_of: Callable[[S], str]

    def add(self, terms: Mapping[int, Collection[str]]) -> Iterator[Statement]:
        some, size = dict[int, Collection[str]](), 0
        for item_id, of_item in terms.items():
            if size + len(of_item) > _AT_ONCE and some:
                yield self._insert(some)
                some, size = {}, 0
            some[item_id] = of_item
            size += len(of_item)
        if some:
            yield self._insert(some)

    def remove(self, item_id: int, terms: Collection[str]) -> Iterator[Statement]:
        if terms:
            yield Statement(
                f"DELETE FROM {self.table} WHERE item_id = ?1 AND term"  # noqa: S608
                " /*sqlite*/ IN (SELECT value FROM json_each(?2)) /*end*/"
                " /*pg = ANY (ARRAY(SELECT json_array_elements_text(CAST(?2 AS JSON)))) */",
                (item_id, json.encode([*terms]).decode()),
                deferrable=True,
                name=f"delete_{self.table}",
            )

    def replace(self, item_id: int, before: str, after: str) -> Unit[None]:
        """Change the words of an item from one text's to another text's; "" has none."""
        old, new = (dict.fromkeys(terms_of(text) if text else ()) for text in (before, after))
        yield from self.remove(item_id, old.keys() - new)
        if added := new.keys() - old:
            yield from self.add({item_id: [*added]})

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
        items, slices = list[S](), TimeSlices()
        await slices.begin()
        for _ in range(-(-MAX_SCANNED // size)):
            rows = await store.read(self._select(term, last, size))
            for row in rows:
                item = self.mapping.read(row)
                if (admits is None or admits(item)) and finds(typed, words_of(self.text_of(item))):
                    if len(items) == limit:
                        return Page(items, last)
                    items.append(item)
                last = row[0]
                await slices.rest()
            if len(rows) < size:
                return Page(items, None)
        return Page(items, last)

    def _insert(self, terms: Mapping[int, Collection[str]]) -> Statement:
        return Statement(
            f"INSERT INTO {self.table} SELECT term.value, CAST(item.key AS BIGINT) FROM"  # noqa: S608
            " /*sqlite*/ json_each(?1) AS item, json_each(item.value) AS term WHERE true /*end*/"
            " /*pg json_each(CAST(?1 AS JSON)) AS item,"
            " json_array_elements_text(item.value) AS term */ ON CONFLICT DO NOTHING",
            (json.encode(terms).decode(),),
            deferrable=True,
            name=f"insert_{self.table}",
        )

    async def _rarest(self, store: Reader, terms: Sequence[str], after: int) -> str:
        """Return the term of which the next items are the fewest, or the farthest apart."""
        counts = " UNION ALL ".join(
            f"SELECT {place}, count(*), max(item_id) FROM"  # noqa: S608
            f" ({self._range('item_id', self.table, place + 2)} LIMIT {_CHUNK}) AS words"
            for place in range(len(terms))
        )
        rows = await store.read(Statement(counts, (after, *terms), name=f"count_{self.table}"))
        place, _, _ = min(rows, key=lambda row: (row[1], -(row[2] or 0)))
        return terms[place]

    def _range(self, columns: str, tables: str, number: int) -> str:
        """Return a SELECT of the items of a term, which is this parameter, behind the first one."""
        pg = index_range(["term"], [opaque_parameter(number, str)], "item_id", "?1")
        return (
            f"SELECT {columns} FROM {tables}"  # noqa: S608
            f" /*sqlite*/ WHERE term = ?{number} AND item_id > ?1 ORDER BY item_id /*end*/"
            f" /*pg {pg} */"
        )

    def _select(self, term: str, after: int, limit: int) -> Statement:
        item = lateral_join("JOIN", self.items, "p", "id", "item_id")
        sql = self._range(self.mapping.columns, f"{self.table} {item}", 2)
        sql = f"{limited_subquery(sql) if limit <= SHORT + 1 else sql} LIMIT ?3"
        return Statement(sql, (after, term, limit), name=f"search_{self.items}")
