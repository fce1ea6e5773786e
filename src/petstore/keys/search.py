"""Keys by words of their names, or by their number."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Row
from petstore.databases.pages import Page, read_page
from petstore.domain.names import name_key
from petstore.keys.model import Environment, Key
from petstore.keys.status import SELECT_KEYS, stored_key
from petstore.time_slices import TimeSlices

_AT_ONCE = 100


async def search_keys(
    store: Reader,
    environment: Environment,
    text: str,
    after: int | None,
    limit: int,
    now: Milliseconds,
) -> Page[Key]:
    """Return the first ``limit`` keys with an id above ``after``, by id.

    These are the keys with every word of ``text`` in their name, or with that number. A search
    reads keys until it has found enough.
    """
    wanted, slices = name_key(text).split(), TimeSlices()
    await slices.begin()
    found: list[Key] = []
    start: int | None = after or 0
    while start is not None and len(found) <= limit:
        filters = {"environment": environment}
        page = await read_page(
            store, "search_keys", SELECT_KEYS, filters, start, _AT_ONCE, lambda row: row
        )
        found += [stored_key(row).shown(now) for row in page.items if _matches(row, wanted)]
        start = page.next_after
        await slices.rest()
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


def _matches(row: Row, words: list[str]) -> bool:
    key_id, name = row[:2]
    return words == [str(key_id)] or all(word in name_key(name) for word in words)
