"""Units of work that run side by side for longer than they would."""

from typing import TypeVar

from petstore.databases.contract import Duplicate, Statement, Unit

T = TypeVar("T")

_PAUSE = Statement("SELECT pg_sleep(0.01)")


def lingering(unit: Unit[T]) -> Unit[T]:
    """Return ``unit``, which rests for 10 ms after each of its statements and before its commit."""
    try:
        statement = next(unit)
        while True:
            try:
                rows = yield statement
            except Duplicate as error:
                statement = unit.throw(error)
            else:
                yield _PAUSE
                statement = unit.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result
