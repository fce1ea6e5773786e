"""Pages by key, in SQL: the rows after an id, so page N costs what page 1 costs."""

from collections.abc import Mapping
from typing import TypeAlias

from petstore.databases.contract import Statement, Value

Filter: TypeAlias = Value | tuple[int, ...]


def select_page(
    name: str, select: str, filters: Mapping[str, Filter], after: int | None, count: int
) -> Statement:
    """Return ``select`` for the first ``count`` rows with an id above ``after``, by ascending id.

    The statement is called ``name``. ``filters`` names columns and the value each must have, or one
    of which it must have; ``None`` filters nothing.
    """
    parameters: list[Value] = []

    def bind(value: Value) -> str:
        parameters.append(value)
        return f"?{len(parameters)}"

    conditions = [] if after is None else [f"id > {bind(after)}"]
    for column, wanted in filters.items():
        if isinstance(wanted, tuple):
            # PostgreSQL takes no empty list, and nothing equals NULL.
            conditions.append(f"{column} IN ({', '.join(map(bind, wanted)) or 'NULL'})")
        elif wanted is not None:
            conditions.append(f"{column} = {bind(wanted)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Statement(f"{select}{where} ORDER BY id LIMIT {bind(count)}", parameters, name=name)
