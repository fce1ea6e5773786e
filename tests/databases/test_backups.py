"""How a backup reads a store that is in use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.databases.backups import back_up
from petstore.databases.sqlite import SqliteStore


@pytest.fixture
def statements() -> Iterator[list[Any]]:
    """A function that is called with each statement of connections opened from now on."""
    watchers: list[Any] = []

    def watch(connection: apsw.Connection) -> None:
        def note(_: apsw.Cursor, sql: str, __: Any) -> bool:
            for watcher in watchers:
                watcher(sql)
            return True

        connection.set_exec_trace(note)

    apsw.connection_hooks.append(watch)
    yield watchers
    apsw.connection_hooks.remove(watch)


def test_the_wal_can_be_truncated_while_a_backup_is_checked(
    database: Path, tmp_path: Path, statements: list[Any]
) -> None:
    SqliteStore(database).migrate()
    service = apsw.Connection(str(database))
    service.execute("INSERT INTO pets (name, category_id) VALUES ('Bella', 1)")
    sizes = []

    def truncate_log(sql: str) -> None:
        if "integrity_check" in sql:
            service.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
            sizes.append(Path(f"{database}-wal").stat().st_size)

    statements.append(truncate_log)
    back_up(database, tmp_path / "backup.db", lambda *_: None)
    service.close()
    assert sizes == [0]
