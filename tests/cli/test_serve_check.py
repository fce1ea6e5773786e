"""``petstore serve --check``: the settings, and whether they work."""

import os
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
from support.next_version import become_next_version
from support.permissions import without_root
from support.process import free_port
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


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


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
    ).output
    assert "geheim" not in printed
    settings = table(printed)
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
    passed = ["settings", "open files", "address", f"database: {made}", "secret file"]
    assert results(printed) == [f"ok      {each}" for each in passed]
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_stays_unchanged(command: Command, tmp_path: Path, port: str) -> None:
    command.make_store()
    service = apsw.Connection(str(command.database))
    service.execute("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
    before = files(tmp_path)
    printed = command.succeed("serve", "--check", "--port", port)
    assert results(printed)[-2] == f"ok      database: schema version {SQLITE}"
    assert {name: content for name, content in files(tmp_path).items() if "shm" not in name} == {
        name: content for name, content in before.items() if "shm" not in name
    }
    service.close()


def test_a_store_of_an_older_version_is_not_migrated(
    command: Command, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.make_store()
    become_next_version(monkeypatch)
    printed = command.succeed("serve", "--check", "--port", port)
    assert results(printed)[-2] == (
        f"ok      database: schema version {SQLITE}; the start brings it to {SQLITE + 1}"
    )


def no_database(command: Command) -> None:
    command.database.write_text("no database at all, but long enough to be one\n" * 100)


def a_pipe(command: Command) -> None:
    os.mkfifo(command.database)


def no_folder(command: Command) -> None:
    command.database = command.database.parent / "none" / "petstore.db"


def dangling_links(command: Command) -> None:
    for name in (command.database, f"{command.database}.secret"):
        Path(name).symlink_to("elsewhere")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("prepare", "failed"),
    [
        (no_database, ["database: {}: file is not a database"]),  # nothing of its secret file
        (a_pipe, ["database: {}: expected a file"]),
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
def test_a_store_that_cannot_be_used_is_reported(
    command: Command, port: str, prepare: Callable[[Command], None], failed: list[str]
) -> None:
    prepare(command)
    result = command("serve", "--check", "--port", port)
    assert result.exit_code == 1
    found = [line for line in results(result.stdout) if line.startswith("failed")]
    for line, words in zip(found, failed, strict=True):
        assert line.startswith(f"failed  {words.format(command.database)}")


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
            *("--redis", f"redis://{nothing}", "--trace-endpoint", f"http://{nothing}"),
        )
    assert result.exit_code == 1
    settings, open_files, *rest = results(result.stdout)
    assert (settings, open_files) == ("ok      settings", "ok      open files")
    assert [line[:7] for line in rest] == ["failed ", "ok     ", *["failed "] * 3]
    address, _, database, redis, traces = (line[8:] for line in rest)
    assert address == f"address: cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert database.startswith("database: the database is not available: ")
    assert redis.startswith("redis: Error ")
    assert traces.startswith(f"traces: cannot connect to {nothing.replace(':', ' port ')}: ")


def test_too_few_open_files_are_reported(tmp_path: Path, port: str) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150));"
        "from petstore.cli.main import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "serve", "--check", "--port", port],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert results(ran.stdout)[1] == (
        "failed  open files: the limit of open files is 150; expected at least 200 (ulimit -Hn)"
    )
