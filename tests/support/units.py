"""Units of work without a database: where SQLite settles a race before it begins."""

from typing import TypeVar

import pytest

from petstore.databases.contract import Row, Unit

T = TypeVar("T")


def by_hand(unit: Unit[T], *responses: list[Row]) -> T:
    """Run ``unit`` with these rows as the results of its statements; return its result.

    It must ask for no fewer and no more.
    """
    next(unit)
    for rows in responses[:-1]:
        unit.send(rows)
    with pytest.raises(StopIteration) as finished:
        unit.send(responses[-1])
    result: T = finished.value.value
    return result
