"""SQL that leaves PostgreSQL's planner one way, however outdated its statistics are.

Left to choose, it takes an index that has the order of a page but not its rows if it expects to
find those soon, or sorts rows of which it expects few. Either may read most of a table. SQLite
plans without statistics, and always takes the index that has both.
"""

from collections.abc import Sequence

LAST_ID = 2**63 - 1
"""An id after all others."""

SHORT = 100
"""The most items of a short page: pages of the interface have no more."""


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
    SELECTs (see ``unplanned``); the last one may be empty, for no value.

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


def unplanned(number: int, kind: type = int) -> str:
    """Return a parameter of this ``kind`` whose value PostgreSQL does not know while it plans.

    Otherwise outdated statistics may tell it that hardly any row has the value.
    """
    return f"(SELECT CAST(?{number} AS {'TEXT' if kind is str else 'BIGINT'}))"


def in_short(select: str) -> str:
    """Return a SELECT whose LIMIT, which follows, is at most 101.

    PostgreSQL then finds that a plan for any limit is as good as one for this limit, and keeps it.
    """
    columns = select.removeprefix("SELECT ")
    return f"SELECT /*pg * FROM (SELECT */ {columns} /*pg LIMIT {SHORT + 1}) AS page */"  # noqa: S608


def looked_up(join: str, table: str, name: str, key: str, value: str) -> str:
    """Return a ``join`` of the row of ``table`` whose ``key`` is ``value``, under a ``name``.

    PostgreSQL looks it up for each row before it, and can neither begin with it nor read them all.
    """
    row = f"(SELECT * FROM {table} WHERE {key} = {value} OFFSET 0)"  # noqa: S608 - only names
    return (
        f"/*sqlite*/ {join} {table} {name} ON {name}.{key} = {value} /*end*/"
        f" /*pg {join} LATERAL {row} {name} ON true */"
    )
