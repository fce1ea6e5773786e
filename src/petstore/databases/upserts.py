"""Many rows in few statements, each row inserted or, if its key is there, treated as said."""

from collections.abc import Iterable, Sequence
from itertools import chain

from petstore.databases.contract import Row, Statement, Unit, placeholders

_ROWS_AT_ONCE = 50


def upsert(
    table: str, columns: Sequence[str], rows: Iterable[Row], conflict: str
) -> Unit[list[Row]]:
    """Insert ``rows``, whose first values are their keys, and return what ``conflict`` returns.

    ``conflict`` is the SQL that follows ``ON CONFLICT``. No page of a list shows the ``table``.
    """
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    returned: list[Row] = []
    # In order of the keys, so that processes that do this at once do not deadlock.
    ordered = sorted(rows)
    for start in range(0, len(ordered), _ROWS_AT_ONCE):
        batch = ordered[start : start + _ROWS_AT_ONCE]
        values = placeholders(len(columns), len(batch))
        returned += yield Statement(
            f"{into} VALUES {values} ON CONFLICT {conflict}",
            tuple(chain.from_iterable(batch)),
            name=f"upsert_{table}",
        )
    return returned
