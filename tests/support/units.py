"""Units of work without a database: where SQLite settles a race before it begins."""

from typing import TypeVar

import pytest

from petstore.databases.contract import Row, Unit

T = TypeVar("T")


def by_hand(unit: Unit[T], *answers: list[Row]) -> T:
    """Run ``unit``, answering its statements with these rows in turn; return its result.

    It must ask for no fewer and no more.
    """
    next(unit)
    for rows in answers[:-1]:
        unit.send(rows)
    with pytest.raises(StopIteration) as finished:
        unit.send(answers[-1])
    result: T = finished.value.value
    return result
