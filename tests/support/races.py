"""Units of work that run for longer than they would, just before another, or by hand."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from petstore.databases.contract import Row, Statement, Store, Unit

T = TypeVar("T")

_PAUSE = Statement("SELECT pg_sleep(0.01)")


def lingering(unit: Unit[T]) -> Unit[T]:
    """Return ``unit``, which rests for 10 ms after each of its statements and before its commit."""
    try:
        statement = next(unit)
        while True:
            rows = yield statement
            yield _PAUSE
            statement = unit.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result


def just_before_a_write(store: Store, act: Callable[[], Awaitable[object]]) -> None:
    """Do something once, after the next change of ``store`` was decided and before it is made."""
    write = store.write

    async def written(unit: Unit[T]) -> T:
        store.write = write  # type: ignore[method-assign]
        await act()
        return await write(unit)

    store.write = written  # type: ignore[method-assign]


def by_hand(unit: Unit[T], *responses: list[Row]) -> T:
    """Run ``unit`` without a database, with these rows as the results of its statements.

    It must ask for no fewer and no more.
    """
    next(unit)
    for rows in responses[:-1]:
        unit.send(rows)
    with pytest.raises(StopIteration) as finished:
        unit.send(responses[-1])
    result: T = finished.value.value
    return result
