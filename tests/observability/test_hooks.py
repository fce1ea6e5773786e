"""The hooks: who learns what, and that nobody pays for hooks that nobody uses."""

import pytest

from petstore.databases.contract import Duplicate, Statement, Unit
from petstore.observability.hooks import End, watch

pytestmark = pytest.mark.anyio


def test_each_statement_of_a_unit_is_noted() -> None:
    seen: list[str] = []

    def begin(statement: Statement) -> End:
        seen.append(statement.sql)
        return lambda _: seen.append("done")

    def unit() -> Unit[str]:
        rows = yield Statement("one")
        try:
            yield Statement("two")
        except Duplicate:
            rows += yield Statement("three")
        return str(rows)

    running = watch(unit(), begin)
    assert next(running).sql == "one"
    assert running.send([(1,)]).sql == "two"
    assert running.throw(Duplicate()).sql == "three"
    with pytest.raises(StopIteration, match=r"\[\(1,\), \(3,\)\]"):
        running.send([(3,)])
    assert seen == ["one", "done", "two", "done", "three", "done"]
