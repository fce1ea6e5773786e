"""Files that only their owner can read, and those of others."""

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from petstore.databases.private_files import SecretFile, create, replacing
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Conflict, Unavailable
from petstore.webhooks.signing import text_of_master
from support.permissions import umask
from support.programs import needs
from support.stores import open_store

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=needs("root"))


@pytest.fixture
def store(database: Path) -> SqliteStore:
    store = SqliteStore(database, timeout=50)
    store.migrate()
    return store


@pytest.mark.anyio
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


@pytest.mark.anyio
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


@pytest.mark.anyio
@as_root
async def test_root_uses_the_store_of_the_owner_of_its_folder(database: Path) -> None:
    SqliteStore(database).migrate()
    for path in (database, database.parent):
        os.chown(path, STRANGER, -1)
    async with open_store(database):
        assert Path(f"{database}-wal").stat().st_uid == STRANGER


def write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def write_half(file: BinaryIO) -> None:
    file.write(b"half")
    msg = "full"
    raise OSError(msg)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_only_the_owner_can_read_a_new_file(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "new"
    with umask(mask):
        create(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_dangling_symlink_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match="full"), replacing(path) as file:
        write_half(file)
    assert path.read_text() == "before"
    with replacing(path) as file:
        file.write(b"whole")
        file.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_the_partial_file_of_a_killed_run_is_replaced(tmp_path: Path) -> None:
    path, part = tmp_path / "file", tmp_path / "file.part"
    part.write_text("of a run that was killed")
    part.chmod(0o644)
    write(path, b"whole")
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("planted", ["link", "link that leads nowhere", "folder", "pipe"])
def test_a_foreign_file_is_not_replaced(tmp_path: Path, planted: str) -> None:
    path, part, elsewhere = (tmp_path / name for name in ("file", "file.part", "elsewhere"))
    if planted == "folder":
        part.mkdir()
    elif planted == "pipe":
        os.mkfifo(part)
    else:
        part.symlink_to(elsewhere)
    if planted == "link":
        elsewhere.write_text("of somebody else")
    with pytest.raises(FileExistsError, match="not your file; remove it"), replacing(path):
        pytest.fail("it was followed")
    assert not elsewhere.exists() or elsewhere.read_text() == "of somebody else"
    assert os.path.lexists(part)


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path, *, is_link: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if is_link:
        path = tmp_path / "link"
        path.symlink_to("pipe")
    with pytest.raises(FileExistsError, match="expected a regular file"), replacing(path):
        pytest.fail("it was replaced")
    assert path.is_fifo()


@pytest.mark.skipif(os.geteuid() != 0, reason=needs("root"))
def test_a_partial_file_of_another_user_is_refused(tmp_path: Path) -> None:
    part = tmp_path / "file.part"
    part.touch()
    os.chown(part, 65534, -1)
    with (
        pytest.raises(FileExistsError, match="not your file; remove it"),
        replacing(tmp_path / "file"),
    ):
        pytest.fail("it was replaced")


def test_the_later_of_two_concurrent_runs_wins(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(Conflict, match="at the same time"), replacing(path):
        write(path, b"second")
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]
