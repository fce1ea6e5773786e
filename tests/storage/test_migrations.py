"""Which files become a store, which are refused, and that those are left as they are."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from petstore.storage.contract import Row
from petstore.storage.migrations import UnusableDatabase
from petstore.storage.sqlite import SqliteStore

PETS = 0x50455453
MIGRATE = (
    "import pathlib, sys; from petstore.storage.sqlite import SqliteStore;"
    " sys.stdin.read(); SqliteStore(pathlib.Path(sys.argv[1])).migrate()"
)


def run_sql(database: Path, sql: str) -> None:
    connection = apsw.Connection(str(database))
    connection.execute(sql).fetchall()
    connection.close()


def assert_refused_and_untouched(database: Path, reason: str) -> None:
    before = database.read_bytes()
    with pytest.raises(UnusableDatabase, match=reason) as refusal:
        SqliteStore(database).migrate()
    assert refusal.value.message.startswith(f"{database}: ")
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 1",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 99",
        "CREATE TABLE notes (text TEXT); PRAGMA application_id = 7",
        "PRAGMA journal_mode = wal; CREATE TABLE notes (text TEXT)",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 7",
    ],
)
def test_a_database_of_another_program_is_refused_and_untouched(database: Path, sql: str) -> None:
    run_sql(database, sql)
    assert_refused_and_untouched(database, "made by another program, not by petstore$")


def test_a_newer_database_is_refused_and_untouched(database: Path) -> None:
    SqliteStore(database).migrate()
    run_sql(database, "PRAGMA user_version = 2")
    assert_refused_and_untouched(
        database, "schema version 2, made by a newer petstore; this one knows versions up to 1"
    )


@pytest.mark.parametrize(
    "content", [b"xy", b"name,categoryId\nBella,1\n" * 100, bytes(4096), b"SQLite format 3\0" * 999]
)
def test_a_file_that_is_no_database_is_refused_and_untouched(
    database: Path, content: bytes
) -> None:
    database.write_bytes(content)
    assert_refused_and_untouched(database, "file is not a database")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match=f"^{tmp_path}: unable to open"):
        SqliteStore(tmp_path).migrate()


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match=r"^.*/missing/petstore\.db: unable to open"):
        SqliteStore(tmp_path / "missing" / "petstore.db").migrate()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(database: Path) -> None:
    database.touch()
    SqliteStore(database).migrate()
    assert schema(database) != []


def test_migrating_once_more_changes_nothing(database: Path) -> None:
    SqliteStore(database).migrate()
    before = database.read_bytes()
    SqliteStore(database).migrate()
    assert database.read_bytes() == before


def test_a_store_is_marked_as_one_of_ours(database: Path) -> None:
    SqliteStore(database).migrate()
    connection = apsw.Connection(str(database))
    marks = ("application_id", "user_version", "journal_mode")
    assert [connection.pragma(mark) for mark in marks] == [PETS, 1, "wal"]
    connection.close()


def test_ten_processes_may_migrate_at_once(database: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, database],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    # Each waits for the end of its input, so they start together.
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert errors == [""] * 10
    assert [process.returncode for process in processes] == [0] * 10
    alone = database.with_name("alone.db")
    SqliteStore(alone).migrate()
    assert schema(database) == schema(alone)


def schema(database: Path) -> list[Row]:
    connection = apsw.Connection(str(database))
    rows = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    connection.close()
    return rows
