"""``petstore serve`` and ``deliver`` that cannot: a line says why, and nothing is left behind."""

import json
import os
import socket
from pathlib import Path

import apsw
import pytest

from support.command import Command
from support.process import ServerProcess, free_port, petstore


@pytest.fixture
def port() -> str:
    return str(free_port())


def test_the_port_of_a_running_service_is_refused(server: ServerProcess, tmp_path: Path) -> None:
    second = petstore("serve", "--port", str(server.port), cwd=tmp_path)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        f"Error: cannot listen on 127.0.0.1 port {server.port}: Address already in use\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "not a host"])
def test_an_address_of_another_machine_is_refused(command: Command, port: str, host: str) -> None:
    words = command.fail("serve", "--host", host, "--port", port, status=1)
    assert words.startswith(f"cannot listen on {host} port {port}: ")


def test_a_newer_database_is_refused(command: Command, database: Path, port: str) -> None:
    command.make_store()
    connection = apsw.Connection(str(database))
    newest = connection.pragma("user_version")
    connection.pragma("user_version", 1000)
    connection.close()
    assert command.fail("serve", "--port", port, status=1) == (
        f"{database}: the database has schema version 1000, made by a newer petstore;"
        f" this one knows versions up to {newest}: install the newer version"
    )


@pytest.mark.parametrize("name", ["no folder/petstore.db", ".", "file/petstore.db"])
@pytest.mark.parametrize("demo", [(), ("--demo",)])
def test_an_impossible_database_path_is_named(
    command: Command, tmp_path: Path, port: str, name: str, demo: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    command.database = tmp_path / name
    words = command.fail("serve", "--port", port, *demo, status=1)
    assert words in {
        f"{tmp_path / name}: there is no folder {(tmp_path / name).parent}",
        f"{tmp_path / name}: expected a file, found a folder, link or pipe",
    }


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("serve --redis redis://h:a", 2, "--redis: expected redis://host:port/database"),
        (
            "serve --database postgresql://127.0.0.1:1/shop --secret-file none",
            2,
            "--secret-file: none: No such file or directory",
        ),
        ("deliver", 1, "there is no store at "),
        (
            "deliver --database postgresql://db/shop",
            2,
            "--secret-file: expected the secret file of the service",
        ),
        ("deliver --workers 2", 2, "No such option '--workers'"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    command: Command, arguments: str, status: int, words: str
) -> None:
    assert command.fail(*arguments.split(), status=status).startswith(words)
    assert not command.database.exists()


@pytest.mark.parametrize("verb", ["serve", "deliver"])
def test_a_store_whose_secret_file_is_lost_is_refused(command: Command, verb: str) -> None:
    command.make_webhook()
    secret = command.database.with_name("petstore.db.secret")
    words = command.fail(verb, status=2)
    assert words.startswith(
        f"--secret-file: {secret} is missing, and webhooks in {command.database} were signed"
        " with it: put it back. If it is lost, "
    )
    assert not secret.exists()


def failure(
    command: Command, *arguments: str, status: int, log_format: str, **environment: str
) -> dict[str, str]:
    """Return the one line, a JSON object, that a start fails with."""
    result = command("serve", *arguments, PETSTORE_LOG_FORMAT=log_format, **environment)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    line: dict[str, str] = json.loads(result.stderr)
    assert result.stderr.count("\n") == 1
    return line


@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_a_port_in_use_is_logged_in_one_line(command: Command, log_format: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = failure(command, "--port", str(port), status=1, log_format=log_format)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "error",
        "event": "start_failed",
        "message": f"cannot listen on 127.0.0.1 port {port}: Address already in use",
        "logger": "petstore.cli.serve",
    }


@pytest.mark.parametrize(
    ("arguments", "variables", "status", "words"),
    [
        (["--port", "0"], {}, 2, "Invalid value for '--port'"),
        (["--prot", "80"], {}, 2, "No such option '--prot'"),
        (["--workers", "2"], {}, 2, "--workers: more than one process needs --redis"),
        (["--log-format", "xml"], {}, 2, "Invalid value for '--log-format'"),
        ([], {"PETSTORE_PROT": "none"}, 2, "no such environment variable: PETSTORE_PROT; see"),
        ([], {"PETSTORE_REDIS_FILE": "none"}, 2, "PETSTORE_REDIS_FILE: none: No such file or"),
        (
            [],
            {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"},
            1,
            "LISTEN_FDS: expected 1 socket, not 2",
        ),
    ],
)
def test_an_invalid_setting_is_logged_in_one_line(
    command: Command, arguments: list[str], variables: dict[str, str], status: int, words: str
) -> None:
    line = failure(command, *arguments, status=status, log_format="json", **variables)
    assert line["message"].startswith(words)
