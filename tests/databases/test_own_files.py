"""Files that other users could change, or plant others beside, are not used."""

import os
from pathlib import Path

import pytest

from petstore.databases.private_files import SecretFile
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.webhooks.signing import text_of_master
from support.programs import needs
from support.stores import open_store

pytestmark = pytest.mark.anyio

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=needs("root"))


@pytest.fixture
def store(database: Path) -> SqliteStore:
    store = SqliteStore(database, timeout=50)
    store.migrate()
    return store


@pytest.mark.parametrize("mode", [0o602, 0o666])
async def test_a_database_that_others_can_write_is_refused(
    store: SqliteStore, database: Path, mode: int
) -> None:
    database.chmod(mode)
    reason = f"^{database}: other users can change it; run: chmod o-rw {database}$"
    for refused in (store.migrate, store.schema):
        with pytest.raises(Unavailable, match=reason):
            refused()
    with pytest.raises(Unavailable, match=reason):
        await store.open()


@pytest.mark.parametrize(
    ("mode", "fix"), [(0o777, "run: chmod o-w {}"), (0o1777, "use a folder of your own")]
)
def test_a_folder_in_which_others_can_create_files_is_refused(
    store: SqliteStore, tmp_path: Path, mode: int, fix: str
) -> None:
    """Nor may a link to the database be in one."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    link = shared / "link.db"
    link.symlink_to(store.path)
    reason = f"^{link}: other users can create files in {shared}; {fix.format(shared)}$"
    with pytest.raises(Unavailable, match=reason):
        SqliteStore(link).migrate()
    link.unlink()
    store.path.rename(link)
    with pytest.raises(Unavailable, match=reason):
        SqliteStore(link).migrate()


@pytest.mark.parametrize(("mode", "verb"), [(0o604, "read"), (0o602, "change")])
def test_a_secret_file_that_others_can_read_or_write_is_refused(
    tmp_path: Path, mode: int, verb: str
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(text_of_master(bytes(32)))
    path.chmod(mode)
    with pytest.raises(
        PermissionError, match=f"^other users can {verb} it; run: chmod o-rw {path}"
    ):
        SecretFile(path, may_create=True).check()


async def test_a_group_may_use_a_store_and_its_secret(store: SqliteStore, tmp_path: Path) -> None:
    """Kubernetes mounts volumes for the group of a pod."""
    tmp_path.chmod(0o2770)
    store.path.chmod(0o660)
    await store.open()
    await store.close()
    path = tmp_path / "secret"
    path.write_bytes(text_of_master(bytes(32)))
    path.chmod(0o660)
    SecretFile(path, may_create=True).check()


@as_root
async def test_root_uses_the_store_of_the_owner_of_its_folder(database: Path) -> None:
    SqliteStore(database).migrate()
    for path in (database, database.parent):
        os.chown(path, STRANGER, -1)
    async with open_store(database):
        assert Path(f"{database}-wal").stat().st_uid == STRANGER
