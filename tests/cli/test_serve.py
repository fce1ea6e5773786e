"""``petstore serve`` and ``deliver`` that cannot start, and ``serve --check``, which says why."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from petstore.databases.migrations import scripts
from petstore.databases.sqlite import SqliteStore
from petstore.server.checks import run_checks
from petstore.settings import Settings
from support.command import Command
from support.full_stores import query
from support.next_version import become_next_version
from support.other_processes import EndlessWriter
from support.permissions import without_root
from support.process import free_port
from support.programs import needs
from support.stores import leave_half_written

SQLITE = len(scripts("sqlite"))


@pytest.fixture
def port() -> str:
    return str(free_port())


def table(printed: str) -> dict[str, list[str]]:
    """Return the value and the source of each setting."""
    settings, _, _ = printed.partition("\n\n")
    rows = [line.split() for line in settings.splitlines()]
    assert rows[0] == ["setting", "value", "from"]
    return {name: rest for name, *rest in rows[1:]}


def results(printed: str) -> list[str]:
    """Return the lines about what was tried."""
    _, _, tried = printed.partition("\n\n")
    return tried.splitlines()


def test_the_settings_are_printed_without_passwords_and_with_their_sources(
    command: Command, tmp_path: Path, port: str
) -> None:
    file = tmp_path / "redis"
    file.write_text("redis://:geheim@127.0.0.1:1\n")
    printed = command(
        *("serve", "--check", "--port", port, "--trusted-proxy", "10.0.0.0/8"),
        *("--trace-endpoint", "http://me:geheim@127.0.0.1:1/v1/traces"),
        PETSTORE_DATABASE="postgresql://me:geheim@127.0.0.1:1/shop?password=geheim",
        PETSTORE_REDIS_FILE=str(file),
    )
    assert "geheim" not in printed.output
    settings = table(printed.stdout)
    assert settings["--host"] == ["127.0.0.1", "default"]
    assert settings["--port"] == [port, "option"]
    assert settings["--trusted-proxy"] == ["10.0.0.0/8", "option"]
    database = "postgresql://me:***@127.0.0.1:1/shop?password=***"
    assert settings["--database"] == [database, "environment"]
    assert settings["--redis"] == ["redis://:***@127.0.0.1:1", "file", str(file)]
    assert settings["--trace-endpoint"] == ["http://me:***@127.0.0.1:1/v1/traces", "option"]
    assert "--demo" not in settings


@pytest.mark.parametrize("value", ["geheim", "geheim@127.0.0.1:6379"])
def test_a_malformed_url_with_a_secret_is_not_printed(command: Command, value: str) -> None:
    result = command("serve", "--check", PETSTORE_REDIS=value)
    assert result.exit_code == 2
    assert table(result.stdout)["--redis"] == ["***", "environment"]
    assert "geheim" not in result.output


def test_a_missing_store_is_not_created(command: Command, tmp_path: Path, port: str) -> None:
    printed = command.succeed("serve", "--check", "--port", port)
    made = f"there is no {command.database} yet; the start creates it"
    passed = ["settings", "open files: room", "address", f"database: {made}", "secret file"]
    for line, name in zip(results(printed), passed, strict=True):
        assert line.startswith(f"ok      {name}")
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_is_neither_changed_nor_migrated(
    command: Command, tmp_path: Path, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes() for path in tmp_path.iterdir() if "-shm" not in path.name
        }

    command.make_store()
    service = apsw.Connection(str(command.database))
    service.execute("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
    before = files()
    become_next_version(monkeypatch)
    assert results(command.succeed("serve", "--check", "--port", port))[-2] == (
        f"ok      database: schema version {SQLITE}; the start brings it to {SQLITE + 1}"
    )
    assert files() == before
    service.close()


def no_folder(command: Command) -> None:
    command.database = command.database.parent / "none" / "petstore.db"


def dangling_links(command: Command) -> None:
    for name in (command.database, f"{command.database}.secret"):
        Path(name).symlink_to("elsewhere")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("prepare", "failed"),
    [
        (
            lambda command: command.database.write_text("no database, but long enough\n" * 100),
            ["database: {}: file is not a database"],  # nothing of its secret file
        ),
        (lambda command: os.mkfifo(command.database), ["database: {}: expected a file"]),
        (no_folder, ["database: {0}: there is no folder {0.parent}"]),
        (
            dangling_links,
            [
                "database: {}: it is a link that leads nowhere",
                "secret file: --secret-file: {}.secret: it is a link that leads nowhere",
            ],
        ),
        (
            Command.make_webhook,
            ["secret file: --secret-file: {0}.secret is missing, and webhooks in {0} were signed"],
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_reported_by_the_check_and_the_start(
    command: Command, port: str, prepare: Callable[[Command], object], failed: list[str]
) -> None:
    prepare(command)
    result = command("serve", "--check", "--port", port)
    assert result.exit_code == 1
    found = [line for line in results(result.stdout) if line.startswith("failed")]
    for line, words in zip(found, failed, strict=True):
        assert line.startswith(f"failed  {words.format(command.database)}")
    started = command("serve", "--port", port)  # it says the same
    assert started.exit_code in {1, 2}
    reasons = [words.format(command.database).partition(": ")[2] for words in failed]
    assert any(reason in started.stderr for reason in reasons)


@pytest.mark.parametrize(
    ("name", "mode", "reason"),
    [
        ("petstore.db", 0o555, "petstore.db: this user cannot read and write"),
        ("new.db", 0o555, "new.db: this user cannot read and write"),
        ("new.db", 0o000, "Permission denied"),
    ],
)
def test_a_store_of_another_user_is_reported(name: str, mode: int, reason: str) -> None:
    with TemporaryDirectory() as folder:
        database = Path(folder) / "petstore.db"
        SqliteStore(database).migrate()
        database.chmod(0o400)
        database.parent.chmod(mode)
        settings = Settings(database=f"sqlite:///{folder}/{name}", port=free_port())
        tuple(run_checks(settings))  # to import what an ordinary user may not read
        with without_root():
            found = {name: (passed, message) for name, passed, message in run_checks(settings)}
    passed, message = found["database"]
    assert not passed
    assert reason in message


def test_an_unfinished_change_is_undone_as_by_the_start(command: Command, port: str) -> None:
    leave_half_written(command.database)
    printed = command.succeed("serve", "--check", "--port", port)
    assert results(printed)[-2] == f"ok      database: schema version {SQLITE}"
    assert command.execute("SELECT count(*) FROM categories") == [(0,)]


def test_each_problem_is_reported_on_its_own_line(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        other = str(free_port())
        nothing = f"127.0.0.1:{free_port()}"
        result = command(
            *("serve", "--check", "--port", port, "--metrics-port", other),
            *("--database", f"postgresql://petstore@{nothing}/shop"),
            *("--redis", f"redis://{nothing}"),
        )
    assert result.exit_code == 1
    settings, open_files, *rest = results(result.stdout)
    assert settings == "ok      settings"
    assert re.fullmatch("ok      open files: room for [0-9,]+ connections", open_files)
    assert [line[:7] for line in rest] == ["failed ", "ok     ", *["failed "] * 2]
    address, _, database, redis = (line[8:] for line in rest)
    assert address == f"address: cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert database.startswith("database: the database is not available: ")
    assert redis.startswith("redis: Error ")


# Starts that fail: a line says why, and nothing is left behind


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_port_in_use_is_refused(command: Command, tmp_path: Path, port: str, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        words = command.fail("serve", "--port", port, option, str(taken), status=1)
    assert words == f"cannot listen on 127.0.0.1 port {taken}: Address already in use"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "not a host"])
def test_an_address_of_another_machine_is_refused(command: Command, port: str, host: str) -> None:
    words = command.fail("serve", "--host", host, "--port", port, status=1)
    assert words.startswith(f"cannot listen on {host} port {port}: ")


def test_a_deliverer_whose_secret_file_is_lost_is_refused(command: Command) -> None:
    command.make_webhook()
    secret = command.database.with_name("petstore.db.secret")
    words = command.fail("deliver", status=2)
    assert words.startswith(
        f"--secret-file: {secret} is missing, and webhooks in {command.database} were signed"
        " with it: put it back. If it is lost, "
    )
    assert not secret.exists()


@pytest.mark.parametrize(
    ("arguments", "variables", "status", "words"),
    [
        ("--port 0", {}, 2, "Invalid value for '--port'"),
        ("--prot 80", {}, 2, "No such option '--prot'"),
        ("--workers 2", {}, 2, "--workers: more than one process needs --redis"),
        ("--log-format xml", {}, 2, "Invalid value for '--log-format'"),
        ("--redis redis://h:a", {}, 2, "--redis: expected redis://host:port/database"),
        (
            "--database postgresql://127.0.0.1:1/shop --secret-file none",
            {},
            2,
            "--secret-file: none: No such file or directory",
        ),
        ("", {"PETSTORE_PROT": "none"}, 2, "no such environment variable: PETSTORE_PROT; see"),
        ("", {"PETSTORE_REDIS_FILE": "none"}, 2, "PETSTORE_REDIS_FILE: none: No such file or"),
        (
            "",
            {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"},
            1,
            "LISTEN_FDS: expected 1 socket, not 2",
        ),
    ],
)
def test_an_invalid_setting_is_refused_in_one_line(
    command: Command, arguments: str, variables: dict[str, str], status: int, words: str
) -> None:
    said = command.fail("serve", *arguments.split(), status=status, **variables)
    assert said.startswith(words)
    assert "\n" not in said
    assert not command.database.exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("deliver", 1, "there is no store at "),
        (
            "deliver --database postgresql://db/shop",
            2,
            "--secret-file: expected the secret file of the service",
        ),
        ("deliver --workers 2", 2, "No such option '--workers'"),
    ],
)
def test_a_deliverer_that_cannot_work_is_refused(
    command: Command, arguments: str, status: int, words: str
) -> None:
    assert command.fail(*arguments.split(), status=status).startswith(words)
    assert not command.database.exists()


UNSHARE = shutil.which("unshare") or "unshare"
"""As root of a container it may be forbidden."""


@pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run([UNSHARE, "--mount", "true"], check=False).returncode != 0,
    reason=needs("root"),
)
@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_a_store_on_a_read_only_file_system_can_be_read_but_not_served(
    tmp_path: Path, *, is_killed: bool
) -> None:
    """A service that was killed has left a log, whose changes are read too."""
    folder = tmp_path / "store"
    folder.mkdir()
    database = folder / "petstore.db"
    read_only = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'

    def petstore(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "petstore", *arguments)
        return subprocess.run(
            [UNSHARE, "--mount", "sh", "-c", read_only, folder, *command],
            env={**os.environ, "PETSTORE_DATABASE": f"sqlite:///{database}"},
            capture_output=True,
            text=True,
            check=False,
        )

    SqliteStore(database).migrate()
    with EndlessWriter(database) as writer:
        writer.wait_for(20)
    if not is_killed:
        SqliteStore(database).migrate()
    assert Path(f"{database}-wal").exists() == is_killed
    for arguments in (("serve", "--port", "1"), ("serve", "--check"), ("keys", "list")):
        refused = petstore(*arguments)
        assert refused.returncode == 1
        assert f"{database}: its file system is read-only" in refused.stdout + refused.stderr
    done = petstore("backup", str(tmp_path / "backup.db"))
    assert done.returncode == 0, done.stderr
    ids = {pet for (pet,) in query(f"sqlite:///{tmp_path}/backup.db", "SELECT id FROM pets")}
    assert {*writer.acknowledged} <= ids
