"""Files that no other user can change or plant, replaced as a whole; the master secret in one."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from petstore.databases.private_files import SecretFile, replacing
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Conflict, Unavailable, WebhooksNotConfigured
from petstore.webhooks.signing import text_of_master
from support.programs import needs
from support.stores import open_store

STRANGER = 65534
MASTER = bytes(range(32))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=needs("root"))


# Which stores are refused


@pytest.fixture
def store(database: Path) -> SqliteStore:
    store = SqliteStore(database, timeout=50)
    store.migrate()
    return store


@pytest.mark.anyio
async def test_a_database_that_others_can_write_is_refused(
    store: SqliteStore, database: Path
) -> None:
    database.chmod(0o602)
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
    path = shared / "link.db"
    reason = f"^{path}: other users can create files in {shared}; {fix.format(shared)}$"
    for place in (path.symlink_to, store.path.replace):
        place(store.path if place == path.symlink_to else path)
        with pytest.raises(Unavailable, match=reason):
            SqliteStore(path).migrate()


@pytest.mark.anyio
async def test_a_group_may_use_a_store_and_its_secret(store: SqliteStore, tmp_path: Path) -> None:
    """Kubernetes mounts volumes for the group of a pod."""
    tmp_path.chmod(0o2770)
    store.path.chmod(0o660)
    await store.open()
    await store.close()
    path = tmp_path / "secret"
    path.write_bytes(text_of_master(MASTER))
    path.chmod(0o660)
    SecretFile(path, may_create=True).check()


@pytest.mark.anyio
@as_root
async def test_root_uses_the_store_of_the_owner_of_its_folder(
    store: SqliteStore, database: Path
) -> None:
    for path in (database, database.parent):
        os.chown(path, STRANGER, -1)
    async with open_store(store.path):
        assert Path(f"{database}-wal").stat().st_uid == STRANGER


# Files that are replaced


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path, part = tmp_path / "file", tmp_path / "file.part"
    path.write_text("before")

    def fail_halfway() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fail_halfway()
    assert path.read_text() == "before"
    part.write_text("of a run that was killed")
    part.chmod(0o644)
    with replacing(path) as file:
        file.write(b"whole")
        file.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "planted",
    ["link", "link that leads nowhere", "folder", "pipe", pytest.param("file", marks=as_root)],
)
def test_a_foreign_file_and_what_is_no_regular_file_is_not_replaced(
    tmp_path: Path, planted: str
) -> None:
    path, part, elsewhere = (tmp_path / name for name in ("file", "file.part", "elsewhere"))
    if planted == "folder":
        part.mkdir()
    elif planted == "pipe":
        os.mkfifo(part)
    elif planted == "file":
        part.touch()
        os.chown(part, STRANGER, -1)
    else:
        part.symlink_to(elsewhere)
    if planted == "link":
        elsewhere.write_text("of another user")
    with pytest.raises(FileExistsError, match="not your file; remove it"), replacing(path):
        pytest.fail("it was followed")
    assert not elsewhere.exists() or elsewhere.read_text() == "of another user"
    assert os.path.lexists(part)
    if planted == "pipe":
        path.symlink_to(part)
        for pipe in (part, path):
            with pytest.raises(FileExistsError, match="expected a regular file"), replacing(pipe):
                pytest.fail("it was replaced")
        assert part.is_fifo()


@pytest.mark.parametrize("ends_first", [True, False])
def test_the_later_of_two_concurrent_runs_wins(tmp_path: Path, *, ends_first: bool) -> None:
    path = tmp_path / "file"

    def begin_another(later: ExitStack) -> None:
        with replacing(path):
            later.enter_context(replacing(path)).write(b"second")
            if ends_first:
                later.close()

    with ExitStack() as later, pytest.raises(Conflict, match="at the same time"):
        begin_another(later)
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]


# The file with the master secret


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "petstore.db.secret"


def test_the_file_is_created_and_read_once_and_only_its_owner_can_read_it(path: Path) -> None:
    file = SecretFile(path, may_create=True)
    file.create()
    content, master = path.read_bytes(), file.read()
    assert path.stat().st_mode & 0o777 == 0o600
    assert text_of_master(master) == content
    SecretFile(path, may_create=True).create()
    assert SecretFile(path, may_create=True).read() == master
    assert [*path.parent.iterdir()] == [path]
    path.unlink()
    assert file.read() == master


def test_processes_that_create_the_file_at_once_share_one_secret(path: Path) -> None:
    def secret(_: int) -> bytes:
        file = SecretFile(path, may_create=True)
        file.create()
        return file.read()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(secret, range(32)))) == 1
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_the_operator_provides_is_not_created_and_the_log_says_what_is_wrong_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = SecretFile(path, may_create=False)
    file.create()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        file.check()
    for _ in range(3):
        with pytest.raises(WebhooksNotConfigured, match="tell its operator"):
            file.read()
    path.touch(0o600)
    path.write_text("geheim")
    with pytest.raises(ValueError, match="32 random bytes in base64"):
        file.check()
    for _ in range(3):
        with pytest.raises(WebhooksNotConfigured, match="tell its operator") as refused:
            file.read()
        assert str(path) not in refused.value.message
    absent, invalid = caplog.messages
    assert f"{path} cannot be used: [Errno 2] No such file or directory" in absent
    assert f"{path} cannot be used: expected one line, 32 random bytes in base64" in invalid
    assert "geheim" not in caplog.text
    path.write_bytes(text_of_master(MASTER))
    file.check()
    assert file.read() == MASTER


@pytest.mark.parametrize(("mode", "verb"), [(0o604, "read"), (0o602, "change")])
def test_a_secret_file_that_others_can_read_or_write_is_refused(
    path: Path, mode: int, verb: str
) -> None:
    path.write_bytes(text_of_master(MASTER))
    path.chmod(mode)
    reason = f"^other users can {verb} it; run: chmod o-rw {path}"
    with pytest.raises(PermissionError, match=reason):
        SecretFile(path, may_create=True).check()


def test_a_file_that_is_not_set_or_cannot_be_created_is_reported(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unset = SecretFile(None, may_create=False)
    unset.check()
    unset.create()
    with pytest.raises(WebhooksNotConfigured, match="--secret-file is not set"):
        unset.read()
    astray = SecretFile(path / "missing", may_create=True)
    astray.check()
    with pytest.raises(WebhooksNotConfigured):
        astray.create()
    assert "No such file or directory" in caplog.text
    path.symlink_to(path.with_name("elsewhere"))
    link = SecretFile(path, may_create=True)
    link.create()
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match=r"^it is a link that leads nowhere$"):
        link.check()
    with pytest.raises(WebhooksNotConfigured):
        link.read()


def test_a_folder_in_place_of_the_file_is_logged_and_closed(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    file = SecretFile(path, may_create=True)
    before, tries = len([*Path("/dev/fd").iterdir()]), 50
    for _ in range(tries):
        with pytest.raises(WebhooksNotConfigured):
            file.read()
    assert len([*Path("/dev/fd").iterdir()]) < before + tries
    (line,) = caplog.messages
    assert line.endswith("cannot be used: expected a file, found a folder, link or pipe")
