"""Pages of a list: the rows after an id, so page N costs what page 1 costs."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Generic, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from petstore.databases.contract import Reader, Row, Statement, T, Value

Filter: TypeAlias = "str | int | Sequence[int] | Sequence[str] | Below | UnsetType | None"
_Kind: TypeAlias = tuple[str, type | int | None]
"""A column, and the type of its value or how many values; ``None`` for those without one."""
_SINGLE = (str, int)


class Below(NamedTuple):
    """A filter of a page: a number is below a ``value``. No index is searched by it.

    Rows from the id ``end`` on are left out, so that a page ends there.
    """

    value: int
    end: int


class Page(NamedTuple, Generic[T]):
    """Items in order of their ids, and the id that the next page starts after.

    ``next_after`` is ``None`` on the last page. ``ids`` are those between which it was read, with
    the one that showed that there is a next page.
    """

    items: list[T]
    next_after: int | None
    ids: range = range(0)


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
    is the name of the statement. ``filters`` maps a column to the value it must have, in the order
    of the columns of an index that ends with the id; an unset value does not filter, and ``None``
    is for rows without one. For ``id``, and for the last column of the index, it may be a list of
    those allowed. The last filter may be a ``Below``. The first column of ``select`` is the id, and
    ids begin at 1.
    """
    kinds, parameters, column, below = _bound(filters)
    if below is not None and newest_first:
        after = below.end if after is None else min(after, below.end)
    if after is not None:
        parameters.append(after)
    if below is not None:
        parameters += [below.value] if newest_first else [below.end, below.value]
    sql = _page_sql(
        select,
        kinds,
        has_start=after is not None,
        newest_first=newest_first,
        is_short=limit <= SHORT,
        below=column,
    )
    parameters.append(limit + 1)
    # One row more than the page holds shows whether there is a next page.
    rows = await reader.read(Statement(sql, parameters, name=name))
    next_after = rows[limit - 1][0] if len(rows) > limit else None
    beyond = None if next_after is None else rows[limit][0]
    if newest_first:
        ids = range(beyond or 0, LAST_ID + 1 if after is None else after)
    else:
        ids = range((after or 0) + 1, (LAST_ID if beyond is None else beyond) + 1)
    return Page([*map(item_of, rows[:limit])], next_after, ids)


async def read_count(
    reader: Reader, name: str, select: str, filters: Mapping[str, Filter], limit: int
) -> int:
    """Return how many items ``read_page`` would return; ``select`` selects the id alone."""
    kinds, parameters, column, below = _bound(filters)
    if below is not None:
        parameters += [below.end, below.value]
    page = _page_sql(select, kinds, has_start=False, below=column)
    sql = f"SELECT count(*) FROM ({page}) AS page"  # noqa: S608 - only names
    return int((await reader.read(Statement(sql, (*parameters, limit), name=name)))[0][0])


def _bound(
    filters: Mapping[str, Filter],
) -> tuple[tuple[_Kind, ...], list[Value], str, Below | None]:
    kinds: list[_Kind] = []
    parameters: list[Value] = []
    below_column, below = "", None
    for column, wanted in filters.items():
        if wanted is UNSET:
            continue
        if isinstance(wanted, _SINGLE):
            kinds.append((column, type(wanted)))
            parameters.append(wanted)
        elif wanted is None:
            kinds.append((column, None))
        elif isinstance(wanted, Below):
            below_column, below = column, wanted
        else:
            kinds.append((column, len(wanted)))
            parameters += wanted
    return tuple(kinds), parameters, below_column, below


@lru_cache(maxsize=1024)
def _page_sql(
    select: str,
    filters: tuple[_Kind, ...],
    *,
    has_start: bool,
    newest_first: bool = False,
    is_short: bool = False,
    below: str = "",
) -> str:
    """Return the SELECT of a page, whose last parameter is its limit.

    Before it are the values of ``filters``, the id to start after, that to end before and the
    value of the column ``below``.
    """
    numbers: dict[str, list[int]] = {}
    number = 1
    for column, kind in filters:
        count = kind if isinstance(kind, int) else int(kind is not None)
        numbers[column] = [*range(number, number + count)]
        number += count
    after = f"?{number}" if has_start else ""
    number += has_start
    end = f"?{number}" if below and not newest_first else ""
    number += bool(end)
    rest = f"{below} + 0 < ?{number}" if below else ""  # so that no index is searched by it
    number += bool(rest)
    kinds = dict(filters)
    order = "id DESC" if newest_first else "id"
    page = partial(_range_sql, select, order=order, after=after, end=end, rest=rest)
    chosen = filters[-1][0] if filters else ""
    if isinstance(kinds.get(chosen), int) and "id" not in kinds:
        # Each value has its own range of the index, and its own rows in the order of the page.
        kinds[chosen] = str
        rows = f"LIMIT ?{number}"
        ranges = [page(kinds, numbers | {chosen: [each]}) for each in numbers[chosen]]
        parts = " UNION ALL ".join(
            f"SELECT * FROM ({limited_subquery(sql) if is_short else sql} {rows}) AS part"  # noqa: S608
            for sql in ranges
        )
        return f"SELECT * FROM ({parts}) AS parts ORDER BY {order} {rows}"  # noqa: S608
    sql = page(kinds, numbers)
    return f"{limited_subquery(sql) if is_short else sql} LIMIT ?{number}"


def _range_sql(
    select: str,
    kinds: Mapping[str, type | int | None],
    numbers: Mapping[str, list[int]],
    *,
    order: str,
    after: str,
    end: str,
    rest: str,
) -> str:
    is_descending = order != "id"
    conditions = []
    for column, kind in kinds.items():
        parameters = ", ".join(f"?{number}" for number in numbers[column]) or "NULL"
        if kind is None:
            conditions.append(f"{column} IS NULL")
        elif isinstance(kind, int):
            # Beside ids, the index of another column would be searched for each value and id.
            tested = column if column == "id" else f"{column} || ''"
            conditions.append(f"{tested} IN ({parameters})")
        else:
            conditions.append(f"{column} = {parameters}")
    if after:
        conditions.append(f"id {'<' if is_descending else '>'} {after}")
    if end:
        conditions.append(f"id < {end}")
    if rest:
        conditions.append(rest)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    by_id = f"{where}ORDER BY {order}"
    single = {column: kind for column, kind in kinds.items() if not isinstance(kind, int)}
    if not single or len(single) < len(kinds):
        return f"{select} {by_id}"
    in_index = index_range(
        [*single],
        [
            opaque_parameter(numbers[column][0], kind) if kind else ""
            for column, kind in single.items()
        ],
        "id",
        after or str(LAST_ID if is_descending else 0),
        descending=is_descending,
        end=end,
        rest=rest,
    )
    return f"{select} /*sqlite*/ {by_id} /*end*/ /*pg {in_index} */"


LAST_ID = 2**63 - 1  # an id after all others
SHORT = 100  # the most items of a short page: pages of the interface have no more


def index_range(
    columns: Sequence[str],
    values: Sequence[str],
    key: str,
    after: str,
    *,
    descending: bool = False,
    end: str = "",
    rest: str = "",
) -> str:
    """Return the WHERE and the ORDER BY with which PostgreSQL reads a range of one index.

    The index has one or two ``columns``, which must have these ``values``, and then ``key``. The
    rows are those with a ``key`` above ``after``, or below it if ``descending``, in this order, and
    below ``end`` if that is given. ``rest`` is a condition that no index serves. ``values`` are
    SELECTs (see ``opaque_parameter``); the last one may be empty, for no value.

    With ``column = value`` any index on the key would have the order of the rows. The planner
    believes that a list of values may have several, and that compared rows are a ninth of those
    left. So only this index has the order, and there seem to be too many rows to sort.
    """
    beyond, bound, order = ("<", ">=", " DESC") if descending else (">", "<=", "")
    *leading, last = columns
    conditions = [
        *(f"{column} = ANY (ARRAY{value})" for column, value in zip(leading, values, strict=False)),
        *(
            (
                f"({last}, {key}) {beyond} ({values[-1]}, {after})",
                f"({last}, {key}) < ({values[-1]}, {end})"
                if end
                else f"{last} {bound} {values[-1]}",
            )
            if values[-1]
            else (f"{last} IS NULL", f"{key} {beyond} {after}", f"{key} < {end}" if end else "")
        ),
        rest,
    ]
    ordered = ", ".join(f"{column}{order}" for column in (*columns, key))
    return f"WHERE {' AND '.join(filter(None, conditions))} ORDER BY {ordered}"


def opaque_parameter(number: int, kind: type = int) -> str:
    """PostgreSQL does not know its value while it plans: old statistics may say it is rare."""
    return f"(SELECT CAST(?{number} AS {'TEXT' if kind is str else 'BIGINT'}))"


def limited_subquery(select: str) -> str:
    """Return a SELECT whose LIMIT, which follows, is at most 101.

    PostgreSQL then finds that a plan for any limit is as good as one for this limit, and keeps it.
    """
    columns = select.removeprefix("SELECT ")
    return f"SELECT /*pg * FROM (SELECT */ {columns} /*pg LIMIT {SHORT + 1}) AS page */"  # noqa: S608


def lateral_join(join: str, table: str, name: str, key: str, value: str) -> str:
    """Return a ``join`` of the row of ``table`` whose ``key`` is ``value``, under a ``name``.

    PostgreSQL looks it up for each row before it, and can neither begin with it nor read them all.
    """
    row = f"(SELECT * FROM {table} WHERE {key} = {value} OFFSET 0)"  # noqa: S608 - only names
    return (
        f"/*sqlite*/ {join} {table} {name} ON {name}.{key} = {value} /*end*/"
        f" /*pg {join} LATERAL {row} {name} ON true */"
    )
