"""The list of tables agrees with the databases and with the documentation."""

import re
from pathlib import Path

import pytest

from petstore.backends import store_at
from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.schema import TABLES, TABLES_BY_NAME
from support.full_stores import columns_of, query

pytestmark = pytest.mark.each_database

KEYS = {
    "sqlite": (
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND c.pk > 0 ORDER BY t.name, c.pk"
    ),
    "postgresql": (
        "SELECT conrelid::regclass::text, attname::text FROM pg_constraint JOIN pg_attribute"
        " ON attrelid = conrelid AND attnum = ANY (conkey)"
        " WHERE contype = 'p' AND connamespace = 'public'::regnamespace"
        " ORDER BY conrelid, array_position(conkey, attnum)"
    ),
}
REFERENCES = {
    "sqlite": (
        'SELECT t.name, k."table" FROM sqlite_schema t, pragma_foreign_key_list(t.name) k'
        " WHERE t.type = 'table'"
    ),
    "postgresql": (
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f' AND connamespace = 'public'::regnamespace"
    ),
}


@pytest.fixture
def migrated(address: str) -> str:
    store_at(address, 10 * SECOND).migrate()
    return address


def test_the_list_has_every_table_its_primary_key_and_columns_that_exist(
    migrated: str, database_kind: str
) -> None:
    columns = columns_of(migrated)
    expected = set(TABLES_BY_NAME) - ({"events_outbox"} if database_kind == "sqlite" else set())
    assert set(columns) - {"petstore_schema", "sqlite_sequence"} == expected
    keys: dict[str, tuple[str, ...]] = {}
    for table, column in query(migrated, KEYS[database_kind]):
        keys[table] = (*keys.get(table, ()), column)
    assert set(columns) - {"sqlite_sequence"} == set(keys)
    listed = {table.name: table.key for table in TABLES if table.is_copied}
    assert {table: key for table, key in keys.items() if table in listed} == listed
    times = {table.name: table.time for table in TABLES if table.time}
    assert [name for name, time in times.items() if time not in columns[name]] == []


def test_a_referenced_table_is_copied_before_the_one_that_refers_to_it(
    migrated: str, database_kind: str
) -> None:
    order = list(TABLES_BY_NAME)
    references = query(migrated, REFERENCES[database_kind])
    assert references
    assert [each for each in references if order.index(each[0]) < order.index(each[1])] == []


def test_the_documentation_says_how_long_each_table_is_kept() -> None:
    page = Path(__file__).parents[2] / "docs/operating.md"
    row = re.compile(r"\| [^|]+ \| `(\w+)` \| (?:`--([a-z-]+)`|(\d+) (\w+))")
    units = {"minutes": MINUTE, "hours": 60 * MINUTE, "days": DAY}
    documented = {
        table: setting.replace("-", "_") if setting else int(number) * units[unit]
        for table, setting, number, unit in row.findall(page.read_text("utf-8"))
    }
    assert documented == {table.name: table.kept_for for table in TABLES if table.time}
