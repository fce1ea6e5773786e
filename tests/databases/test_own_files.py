"""Files that another user has planted, or could change, are not used."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from petstore.databases.secret_files import SecretFile
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.webhooks.secrets import text_of_master
from support.programs import needs
from support.stores import open_store

pytestmark = pytest.mark.anyio

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=needs("root"))


@pytest.fixture
def store(database: Path) -> SqliteStore:
    """A closed store."""
    store = SqliteStore(database, timeout=50)
    store.migrate()
    return store


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
async def test_a_database_that_others_can_write_is_refused(
    store: SqliteStore, database: Path, mode: int
) -> None:
    database.chmod(mode)
    reason = rf"^{database}: other users may change it \(mode {mode:04o}\); chmod 600"
    for refused in (store.migrate, store.schema):
        with pytest.raises(Unavailable, match=reason):
            refused()
    with pytest.raises(Unavailable, match=reason):
        await store.open()


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_a_file_beside_the_database_that_others_can_write_is_refused(
    store: SqliteStore, database: Path, ending: str
) -> None:
    beside = Path(f"{database}{ending}")
    beside.touch()
    beside.chmod(0o606)
    with pytest.raises(Unavailable, match=f"^{beside}: other users may change it"):
        await store.open()


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
@pytest.mark.parametrize("plant", [Path.mkdir, lambda path: path.symlink_to("elsewhere")])
async def test_a_non_regular_file_beside_the_database_is_refused(
    store: SqliteStore, database: Path, plant: Callable[[Path], None], ending: str
) -> None:
    beside = Path(f"{database}{ending}")
    plant(beside)
    with pytest.raises(Unavailable, match=f"^{beside}: expected a file, found a folder, link or"):
        await store.open()


@pytest.mark.parametrize(("mode", "verb"), [(0o640, "read"), (0o604, "read"), (0o622, "change")])
def test_a_secret_file_that_others_can_read_or_write_is_refused(
    tmp_path: Path, mode: int, verb: str
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(text_of_master(bytes(32)))
    path.chmod(mode)
    with pytest.raises(PermissionError, match=f"^other users may {verb} it"):
        SecretFile(path, may_create=True).check()


def test_the_group_of_a_shared_folder_may_use_the_files_in_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    path = tmp_path / "secret"
    path.write_bytes(text_of_master(bytes(32)))
    path.chmod(0o660)
    SecretFile(path, may_create=True).check()
    path.chmod(0o664)
    with pytest.raises(PermissionError, match=r"^other users may read it"):
        SecretFile(path, may_create=True).check()


@as_root
async def test_files_of_another_user_are_refused(store: SqliteStore, database: Path) -> None:
    log = Path(f"{database}-wal")
    log.touch(0o600)
    os.chown(log, STRANGER, -1)
    reason = f"it belongs to user {STRANGER}; expected user 0 or root$"
    with pytest.raises(Unavailable, match=f"^{log}: {reason}"):
        await store.open()
    log.unlink()
    os.chown(database, STRANGER, -1)
    with pytest.raises(Unavailable, match=f"^{database}: {reason}"):
        store.migrate()
    secret = database.with_name("secret")
    secret.touch(0o600)
    os.chown(secret, STRANGER, -1)
    with pytest.raises(PermissionError, match=reason):
        SecretFile(secret, may_create=True).check()


@as_root
def test_a_symlink_of_another_user_is_not_followed(database: Path) -> None:
    SqliteStore(database).migrate()
    link = database.with_name("link.db")
    link.symlink_to(database)
    SqliteStore(link).migrate()
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    with pytest.raises(Unavailable, match=f"^{link}: it belongs to user {STRANGER}"):
        SqliteStore(link).migrate()


@as_root
async def test_root_uses_the_store_of_the_owner_of_its_folder(database: Path) -> None:
    SqliteStore(database).migrate()
    for path in (database, database.parent):
        os.chown(path, STRANGER, -1)
    async with open_store(database):
        assert Path(f"{database}-wal").stat().st_uid == STRANGER
