"""A start that fails is logged in the format of the log."""

import json
import socket
from pathlib import Path

import pytest

from support.command import Command
from support.process import free_port


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
def test_a_port_in_use_is_a_line_of_the_log(command: Command, log_format: str) -> None:
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
    ("arguments", "words"),
    [
        (["--port", "0"], "Invalid value for '--port'"),
        (["--prot", "80"], "No such option '--prot'"),
        (["--workers", "2"], "--workers: more than one process needs --redis"),
        (["--log-format", "xml"], "Invalid value for '--log-format'"),
    ],
)
def test_a_setting_that_cannot_be_is_a_line_of_the_log(
    command: Command, arguments: list[str], words: str
) -> None:
    line = failure(command, *arguments, status=2, log_format="json")
    assert line["message"].startswith(words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PROT", "no such environment variable: PETSTORE_PROT (did you mean PETSTORE_PORT?)"),
        ("REDIS_FILE", "PETSTORE_REDIS_FILE: none: No such file or directory"),
    ],
)
def test_a_variable_that_cannot_be_is_a_line_of_the_log(
    command: Command, name: str, words: str
) -> None:
    variable = {f"PETSTORE_{name}": "none"}
    assert failure(command, status=2, log_format="json", **variable)["message"] == words


def test_the_format_on_the_command_line_counts_though_a_variable_is_mistyped(
    command: Command,
) -> None:
    result = command("serve", "--log-format", "json", PETSTORE_PROT="80")
    assert json.loads(result.stderr)["event"] == "start_failed"


def test_the_format_on_the_command_line_counts_though_another_option_is_wrong(
    command: Command,
) -> None:
    result = command("serve", "--log-format", "text", "--port", "0", PETSTORE_LOG_FORMAT="json")
    assert result.stderr.splitlines()[-1].startswith("Error: Invalid value for '--port'")


def test_a_pid_file_that_cannot_be_written_is_refused(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "none" / "petstore.pid"
    words = command.fail("serve", "--port", str(free_port()), "--pid-file", str(path), status=1)
    assert words == f"{path}: No such file or directory"
