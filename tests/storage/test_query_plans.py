"""Every page is read along an index, so page N costs what page 1 costs."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import apsw
import pytest

from petstore.domain.pets import PetFilter, PetStatus
from petstore.storage.api_keys import select_key, select_key_by_digest
from petstore.storage.contract import Statement
from petstore.storage.pets import select_pet, select_pets
from petstore.storage.rate_limits import select_usage
from petstore.storage.sqlite import SqliteStore

FAR = 3_500
HUNDRED = tuple(range(FAR + 200, FAR, -2))
STATUSES: tuple[PetStatus | None, ...] = (None, "sold")
FILTERS = [
    PetFilter(status, category, ids)
    for status, category, ids in product(STATUSES, (None, 3), (None, (5,), HUNDRED))
]
FILL = """
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4000)
    INSERT INTO pets (name, category_id, status)
    SELECT 'Bella', n % 5, iif(n % 3, 'sold', 'available') FROM numbers
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """A connection to a store with 4,000 animals."""
    path: Path = tmp_path_factory.mktemp("plans") / "petstore.db"
    SqliteStore(path).migrate()
    connection = apsw.Connection(str(path))
    connection.execute(FILL)
    yield connection
    connection.close()


def plan(connection: apsw.Connection, statement: Statement) -> list[str]:
    rows = connection.execute("EXPLAIN QUERY PLAN " + statement.sql, statement.parameters)
    return [str(detail) for *_, detail in rows]


def steps(connection: apsw.Connection, statement: Statement) -> int:
    """Count the steps that SQLite's virtual machine takes."""
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    connection.set_progress_handler(step, 1)
    connection.execute(statement.sql, statement.parameters).fetchall()
    connection.set_progress_handler(None)
    return count


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("after", [None, FAR])
def test_no_page_is_sorted_or_searched_row_by_row(
    connection: apsw.Connection, wanted: PetFilter, after: int | None
) -> None:
    (detail,) = plan(connection, select_pets(wanted, after, 21))
    if wanted == PetFilter() and after is None:
        assert detail == "SCAN pets"  # the first rows of all, in order of id
    else:
        assert detail.startswith("SEARCH pets USING ")


@pytest.mark.parametrize(("status", "category"), list(product(STATUSES, (None, 3))))
def test_a_page_far_away_costs_what_the_first_costs(
    connection: apsw.Connection, status: PetStatus | None, category: int | None
) -> None:
    wanted = PetFilter(status, category)
    first = steps(connection, select_pets(wanted, None, 21))
    far = steps(connection, select_pets(wanted, FAR, 21))
    assert far < 1.2 * first


def test_a_hundred_ids_cost_a_hundred_searches(connection: apsw.Connection) -> None:
    assert steps(connection, select_pets(PetFilter(ids=HUNDRED), None, 101)) < 20 * len(HUNDRED)


@pytest.mark.parametrize(
    "statement", [select_pet(7), select_key(7), select_key_by_digest(b""), select_usage(7, 20_000)]
)
def test_what_a_request_looks_up_is_searched_by_its_key(
    connection: apsw.Connection, statement: Statement
) -> None:
    details = plan(connection, statement)
    assert all(detail.startswith("SEARCH ") for detail in details)
    assert any("PRIMARY KEY" in detail for detail in details)
