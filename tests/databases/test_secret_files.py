"""The file with the master secret: made once, whole and for its owner alone."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from petstore.databases.private_files import SecretFile
from petstore.errors import WebhooksNotConfigured
from petstore.webhooks.signing import text_of_master

MASTER = bytes(range(32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "petstore.db.secret"


def test_the_file_is_created_once_and_only_its_owner_can_read_it(path: Path) -> None:
    file = SecretFile(path, may_create=True)
    file.create()
    content, master = path.read_bytes(), file.read()
    assert path.stat().st_mode & 0o777 == 0o600
    assert text_of_master(master) == content
    SecretFile(path, may_create=True).create()
    assert path.read_bytes() == content
    assert SecretFile(path, may_create=True).read() == master
    assert [*path.parent.iterdir()] == [path]


def test_processes_that_create_the_file_at_once_share_one_secret(path: Path) -> None:
    def secret(_: int) -> bytes:
        file = SecretFile(path, may_create=True)
        file.create()
        return file.read()

    with ThreadPoolExecutor(8) as threads:
        secrets = set(threads.map(secret, range(32)))
    assert len(secrets) == 1
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_the_operator_provides_is_not_created(path: Path) -> None:
    file = SecretFile(path, may_create=False)
    file.create()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        file.check()
    path.touch(0o600)
    path.write_bytes(text_of_master(MASTER))
    file.check()
    assert file.read() == MASTER


def test_without_a_file_there_are_no_webhooks() -> None:
    file = SecretFile(None, may_create=False)
    file.check()
    file.create()
    with pytest.raises(WebhooksNotConfigured, match="--secret-file is not set"):
        file.read()


def test_the_file_is_read_once(path: Path) -> None:
    file = SecretFile(path, may_create=True)
    file.create()
    master = file.read()
    path.unlink()
    assert file.read() == master


def test_an_invalid_file_is_refused_and_the_log_has_its_path(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.touch(0o600)
    path.write_text("geheim")
    file = SecretFile(path, may_create=True)
    file.create()
    with pytest.raises(ValueError, match="32 random bytes in base64"):
        file.check()
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(WebhooksNotConfigured, match="tell its operator") as refused,
    ):
        file.read()
    assert str(path) in caplog.text
    assert str(path) not in refused.value.message
    assert "geheim" not in caplog.text


def test_the_log_says_once_why_a_file_cannot_be_used(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = SecretFile(path, may_create=False)
    for _ in range(3):
        with pytest.raises(WebhooksNotConfigured):
            file.read()
    path.touch(0o600)
    path.write_text("geheim")
    for _ in range(3):
        with pytest.raises(WebhooksNotConfigured):
            file.read()
    causes = [record.message for record in caplog.records]
    assert ["No such file" in cause for cause in causes] == [True, False]
    assert "32 random bytes in base64" in causes[1]
    path.touch(0o600)
    path.write_bytes(text_of_master(MASTER))
    assert file.read() == MASTER


def test_a_file_that_cannot_be_created_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = SecretFile(tmp_path / "missing" / "petstore.db.secret", may_create=True)
    file.check()
    with caplog.at_level(logging.WARNING), pytest.raises(WebhooksNotConfigured):
        file.create()
    assert "No such file or directory" in caplog.text


def test_a_dangling_symlink_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    file = SecretFile(path, may_create=True)
    file.create()
    assert not os.path.lexists(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"^it is a link that leads nowhere$"):
        file.check()
    with pytest.raises(WebhooksNotConfigured):
        file.read()


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
    assert line == (
        f"the secret file {path} cannot be used: expected a file, found a folder, link or pipe"
    )
