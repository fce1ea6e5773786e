"""Units of work whose statements are looked at, whatever database runs them."""

from collections.abc import Callable
from functools import partial

from petstore.storage.contract import Duplicate, Row, Statement, T, Unit


def observed(unit: Unit[T], begin: Callable[[Statement], Callable[[], None]]) -> Unit[T]:
    """Do what ``unit`` does. ``begin`` is called before each statement, what it returns after it.

    Between the two is the work of the database alone.
    """
    resume: Callable[[], Statement] = partial(next, unit)
    while True:
        try:
            statement = resume()
        except StopIteration as finished:
            result: T = finished.value
            return result
        end = begin(statement)
        try:
            rows: list[Row] = yield statement
        except Duplicate as error:
            resume = partial(unit.throw, error)
        else:
            resume = partial(unit.send, rows)
        finally:
            end()
