"""Single items, and pages of a list: the rows after an id, so page N costs what page 1 costs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from petstore.databases.contract import Reader, Row, Statement, T, Value
from petstore.errors import NotFound

Filter: TypeAlias = str | int | Sequence[int] | UnsetType
_SINGLE = (str, int)


class Page(NamedTuple, Generic[T]):
    """Items in order of their ids, and the id that the next page starts after.

    ``next_after`` is ``None`` on the last page.
    """

    items: list[T]
    next_after: int | None


def found(rows: list[Row], item_of: Callable[[Row], T], kind: str, item_id: int) -> T:
    """Return the item of this ``kind`` and id in ``rows``.

    Raises:
        NotFound: there is no row.
    """
    if not rows:
        msg = f"there is no {kind} {item_id}"
        raise NotFound(msg)
    return item_of(rows[0])


async def read_page(
    reader: Reader,
    name: str,
    select: str,
    filters: Mapping[str, Filter],
    after: int | None,
    limit: int,
    item_of: Callable[[Row], T],
    *,
    newest_first: bool = False,
) -> Page[T]:
    """Return the first ``limit`` rows of ``select`` with an id above ``after``, as items.

    With ``newest_first`` these are the rows with an id below ``after``, by descending id. ``name``
    is the name of the statement. ``filters`` maps a column to the value it must have, or to a list
    of allowed values; an unset value does not filter. The first column is the id.
    """
    where, parameters = _condition(filters, after, "<" if newest_first else ">")
    order = "id DESC" if newest_first else "id"
    # One row more than the page holds shows whether there is a next page.
    sql = f"{select}{where} ORDER BY {order} LIMIT ?{len(parameters) + 1}"
    rows = await reader.read(Statement(sql, (*parameters, limit + 1), name=name))
    next_after = rows[limit - 1][0] if len(rows) > limit else None
    return Page([item_of(row) for row in rows[:limit]], next_after)


async def read_next_after(
    reader: Reader,
    name: str,
    select: str,
    filters: Mapping[str, Filter],
    after: int | None,
    limit: int,
) -> int | None:
    """Return the ``next_after`` of ``read_page`` without its items, for large pages.

    ``select`` selects the id alone.
    """
    where, parameters = _condition(filters, after, ">")
    first = len(parameters) + 1
    sql = f"{select}{where} ORDER BY id LIMIT 2 OFFSET ?{first}"
    rows = await reader.read(Statement(sql, (*parameters, limit - 1), name=name))
    return rows[0][0] if len(rows) > 1 else None


async def read_count(
    reader: Reader,
    name: str,
    select: str,
    filters: Mapping[str, Filter],
    after: int | None,
    limit: int,
) -> int:
    """Return how many items ``read_page`` would return; ``select`` selects the id alone."""
    where, parameters = _condition(filters, after, ">")
    page = f"{select}{where} ORDER BY id LIMIT ?{len(parameters) + 1}"
    sql = f"SELECT count(*) FROM ({page}) AS page"  # noqa: S608 - only names
    return int((await reader.read(Statement(sql, (*parameters, limit), name=name)))[0][0])


def _condition(
    filters: Mapping[str, Filter], after: int | None, beyond: str
) -> tuple[str, list[Value]]:
    """Return the WHERE of a list, and its parameters."""
    parameters: list[Value] = []

    def bind(value: Value) -> str:
        parameters.append(value)
        return f"?{len(parameters)}"

    conditions = [] if after is None else [f"id {beyond} {bind(after)}"]
    for column, wanted in filters.items():
        if wanted is UNSET:
            continue
        if isinstance(wanted, _SINGLE):
            conditions.append(f"{column} = {bind(wanted)}")
        else:
            # PostgreSQL rejects an empty list. Nothing equals NULL.
            conditions.append(f"{column} IN ({', '.join(map(bind, wanted)) or 'NULL'})")
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), parameters
