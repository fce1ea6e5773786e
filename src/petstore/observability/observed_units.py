"""Units of work whose statements are looked at, whatever database runs them."""

from collections.abc import Callable

from petstore.databases.contract import Duplicate, Row, Statement, T, Unit


def observed(unit: Unit[T], begin: Callable[[Statement], Callable[[], None]]) -> Unit[T]:
    """Do what ``unit`` does. ``begin`` is called before each statement, what it returns after it.

    Between the two is the work of the database alone.
    """
    try:
        statement = next(unit)
        while True:
            end = begin(statement)
            rows: list[Row] = []
            duplicate = None
            try:
                rows = yield statement
            except Duplicate as error:
                duplicate = error
            finally:
                end()
            statement = unit.send(rows) if duplicate is None else unit.throw(duplicate)
    except StopIteration as finished:
        result: T = finished.value
        return result
