"""A store on a file system that became read-only: it can be read, and a start names the cause."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from petstore.databases.sqlite import SqliteStore
from support.full_stores import query
from support.other_processes import EndlessWriter
from support.programs import needs

UNSHARE = shutil.which("unshare") or "unshare"
"""As root of a container it may be forbidden."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run([UNSHARE, "--mount", "true"], check=False).returncode != 0,
    reason=needs("root"),
)

IN_READ_ONLY_FOLDER = """
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"
"""


def petstore(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command for which ``folder`` is read-only."""
    command = (sys.executable, "-m", "petstore", *arguments)
    database = f"sqlite:///{folder}/petstore.db"
    return subprocess.run(
        [UNSHARE, "--mount", "sh", "-c", IN_READ_ONLY_FOLDER, folder, *command],
        env={**os.environ, "PETSTORE_DATABASE": database, "PETSTORE_LOG_FORMAT": "text"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_a_store_on_a_read_only_file_system_can_be_read_but_not_served(
    tmp_path: Path, *, is_killed: bool
) -> None:
    """A service that was killed has left a log, whose changes are read too."""
    folder = tmp_path / "store"
    folder.mkdir()
    database = folder / "petstore.db"
    SqliteStore(database).migrate()
    with EndlessWriter(database) as writer:
        writer.wait_for(20)
    if not is_killed:
        SqliteStore(database).migrate()
    assert Path(f"{database}-wal").exists() == is_killed

    for arguments in (("serve", "--port", "1"), ("serve", "--check"), ("keys", "list")):
        refused = petstore(folder, *arguments)
        assert refused.returncode == 1
        assert f"{database}: its file system is read-only\n" in refused.stdout + refused.stderr
    done = petstore(folder, "backup", str(tmp_path / "backup.db"))
    assert done.returncode == 0, done.stderr
    ids = {pet for (pet,) in query(f"sqlite:///{tmp_path}/backup.db", "SELECT id FROM pets")}
    assert {*writer.acknowledged} <= ids
