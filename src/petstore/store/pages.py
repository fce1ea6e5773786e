"""One page of any list."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from petstore.databases.contract import Row

T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """Items by ascending id, and the id the next page starts after, if there is one."""

    items: list[T]
    next_after: int | None


def page_of(rows: list[Row], limit: int, item_of: Callable[[Row], T]) -> Page[T]:
    """Return the page of up to ``limit`` items in ``rows``, which has one more if there is more.

    The id is the first value of a row.
    """
    next_after = rows[limit - 1][0] if len(rows) > limit else None
    return Page([item_of(row) for row in rows[:limit]], next_after)
