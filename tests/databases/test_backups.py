"""How a backup reads a store that is in use, and what a restore that fails leaves."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from petstore.databases.backups import back_up
from petstore.databases.sqlite import SqliteStore
from support.other_processes import EndlessWriter

RESTORE = """
import os, sys
from pathlib import Path
from petstore.databases.backups import restore

def end(*_):
    {end}

Path.replace = end
restore(Path(sys.argv[1]), Path(sys.argv[2]), lambda *_: None)
"""


def test_the_wal_can_be_truncated_while_a_backup_is_checked(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(database).migrate()
    service = apsw.Connection(str(database))
    service.execute("INSERT INTO pets (name, category_id) VALUES ('Bella', 1)")
    sizes = []

    def truncate_log(_: apsw.Cursor, sql: str, __: object) -> bool:
        if "integrity_check" in sql:
            service.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
            sizes.append(Path(f"{database}-wal").stat().st_size)
        return True

    hooks = [lambda connection: connection.set_exec_trace(truncate_log)]
    monkeypatch.setattr(apsw, "connection_hooks", hooks)
    back_up(database, tmp_path / "backup.db", lambda *_: None)
    service.close()
    assert sizes == [0]


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "raise OSError"], ids=["killed", "failed"]
)
def test_a_restore_that_ends_just_before_the_rename_keeps_all_acknowledged_changes(
    database: Path, tmp_path: Path, end: str
) -> None:
    backup = tmp_path / "backup.db"
    SqliteStore(database).migrate()
    back_up(database, backup, lambda *_: None)
    with EndlessWriter(database) as writer:
        writer.wait_for(100)
    code = RESTORE.format(end=end)
    assert subprocess.run([sys.executable, "-c", code, backup, database], check=False).returncode
    found = apsw.Connection(str(database)).execute("SELECT id FROM pets").fetchall()
    assert {(pet_id,) for pet_id in writer.acknowledged} <= {*found}
