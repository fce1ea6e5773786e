"""What a deliverer asks for finds its rows along an index, however many deliveries are pending."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from petstore.databases.contract import Row, Statement, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.store.deliveries import (
    Delivery,
    Outcome,
    active_webhooks,
    due_deliveries,
    make_deliveries,
    read_backlog,
    save_progress,
)
from petstore.store.events import read_event

pytestmark = pytest.mark.anyio

DELIVERY = Delivery(1, 1, 1, "evt_1", "pet.created", "pet/1", 0, 0)
WEBHOOK_ROW: Row = (1, 1, "pets:read", "", "", 1, None, 0, None, "me", None, None)


class Explained:
    """A reader that remembers statements and returns the rows that it was given.

    A statement in ``by_name`` returns the row there.
    """

    def __init__(self, *rows: Row, **by_name: Row) -> None:
        self.statements: list[Statement] = []
        self._rows = [*rows]
        self._by_name = by_name

    async def read(self, statement: Statement) -> list[Row]:
        self.statements.append(statement)
        return self._rows

    def run(self, unit: Unit[object]) -> None:
        """Run a unit of work whose every statement returns the rows."""
        try:
            statement = next(unit)
            while True:
                self.statements.append(statement)
                row = self._by_name.get(statement.name)
                statement = unit.send(self._rows if row is None else [row])
        except StopIteration:
            pass


@pytest.fixture
def connection(database: Path) -> Iterator[apsw.Connection]:
    SqliteStore(database).migrate()
    with apsw.Connection(str(database)) as connection:
        yield connection
    connection.close()


async def test_no_statement_of_a_deliverer_scans_deliveries_or_events(
    connection: apsw.Connection,
) -> None:
    webhooks = await active_webhooks(Explained(WEBHOOK_ROW), "production", 0)
    reader = Explained()
    await active_webhooks(reader, "production", 0)
    await due_deliveries(reader, 1, 0)
    await read_event(reader, 1, "evt_1")
    backlog = Explained((None, None, 0))
    await read_backlog(backlog, webhooks)
    writer = Explained(
        (1,),
        select_webhook_health=(0, None, None, 1, 1, None),
        update_webhook_health=(1, "https://shop.example", "", None, 1, None, 0, None),
    )
    writer.run(make_deliveries("me", webhooks, 10, 0))
    writer.run(save_progress([Outcome(DELIVERY, "succeeded", 0, 0)], [DELIVERY], 0))
    statements = [*reader.statements, *backlog.statements, *writer.statements]
    assert len(statements) == 11
    for statement in statements:
        explained = connection.execute(
            f"EXPLAIN QUERY PLAN {statement.sql}", tuple(statement.parameters)
        )
        steps = [row[3] for row in explained]
        scanned = [step for step in steps if step.startswith(("SCAN d", "SCAN e", "SCAN webhook_"))]
        assert scanned == [], (statement.name, steps)
