"""A start that fails is logged in the format of the log."""

import json
import os
import socket

import pytest

from support.command import Command


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


def test_two_sockets_of_systemd_are_a_line_of_the_log(command: Command) -> None:
    sockets = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2"}
    line = failure(command, status=1, log_format="json", **sockets)
    assert line["message"] == "LISTEN_FDS: expected 1 socket, not 2"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "0"], "Invalid value for '--port'"),
        (["--prot", "80"], "No such option '--prot'"),
        (["--workers", "2"], "--workers: more than one process needs --redis"),
        (["--log-format", "xml"], "Invalid value for '--log-format'"),
    ],
)
def test_an_invalid_setting_is_logged_in_one_line(
    command: Command, arguments: list[str], words: str
) -> None:
    line = failure(command, *arguments, status=2, log_format="json")
    assert line["message"].startswith(words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PROT", "no such environment variable: PETSTORE_PROT; see petstore serve --help"),
        ("REDIS_FILE", "PETSTORE_REDIS_FILE: none: No such file or directory"),
    ],
)
def test_an_invalid_variable_is_logged_in_one_line(command: Command, name: str, words: str) -> None:
    variable = {f"PETSTORE_{name}": "none"}
    assert failure(command, status=2, log_format="json", **variable)["message"] == words


def test_the_log_format_option_applies_even_if_a_variable_is_mistyped(command: Command) -> None:
    result = command("serve", "--log-format", "json", PETSTORE_PROT="80")
    assert json.loads(result.stderr)["event"] == "start_failed"


def test_the_log_format_option_applies_even_if_another_option_is_invalid(command: Command) -> None:
    result = command("serve", "--log-format", "text", "--port", "0", PETSTORE_LOG_FORMAT="json")
    assert result.stderr.splitlines()[-1].startswith("Error: Invalid value for '--port'")
