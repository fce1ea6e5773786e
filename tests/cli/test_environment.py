"""Environment variables: a secret from a file, and unknown names."""

from pathlib import Path

import pytest

from support.command import Command
from support.process import ServerProcess
from support.shop import Shop


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"one\ntwo\n", b"\xff\xfe", b"a\0b", b"long" * 20_000, None]
)
def test_a_secret_file_that_cannot_be_used_is_refused_and_named(
    command: Command, tmp_path: Path, content: bytes | None
) -> None:
    secret = tmp_path / "secret"
    reason = "expected one line, the value of PETSTORE_DATABASE"
    if content is None:
        reason = "No such file or directory"
    else:
        secret.write_bytes(content)
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    words = command.fail("keys", "list", status=2, **files)
    assert words == f"PETSTORE_DATABASE_FILE: {secret}: {reason}"


def test_a_secret_that_is_given_twice_is_refused(command: Command) -> None:
    words = command.fail("keys", "list", status=2, PETSTORE_DATABASE_FILE="secret")
    assert words == "PETSTORE_DATABASE and PETSTORE_DATABASE_FILE are both set; expected only one"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_database_and_a_key_can_be_in_a_file(
    command: Command, server: ServerProcess, token: str, tmp_path: Path, end: str
) -> None:
    command.make_store()
    secret = tmp_path / "secret"
    secret.write_text(f"sqlite:///{command.database}{end}", newline="")
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    assert command.succeed("keys", "list", "--json", **files) == "[]\n"
    secret.write_text("sqlite:///nowhere.db")  # an option overrides it
    assert command.succeed("keys", "list", "--json", "--database", command.url, **files) == "[]\n"
    secret.write_text(f"{token}{end}", newline="")
    shop = Shop(server.url, "")
    assert shop.succeed("pets", "list", "--json", PETSTORE_KEY_FILE=str(secret)).startswith("[")


@pytest.mark.parametrize(
    ("arguments", "option", "variable"),
    [
        (("keys", "list"), "--database", "PETSTORE_DATABASE_FILE"),
        (("copy", "--from", "sqlite:///x.db"), "--to", "PETSTORE_TO_FILE"),
    ],
)
def test_a_password_on_the_command_line_causes_a_warning(
    command: Command, arguments: tuple[str, ...], option: str, variable: str
) -> None:
    result = command(*arguments, option, "postgresql://me:geheim@127.0.0.1:1/shop")
    assert result.stderr.startswith(
        f"Warning: {option}: others on this machine can read a password on the command line; put"
        f" the value into a file and name that in {variable}\n"
    )
    assert "geheim" not in result.output


def test_every_command_refuses_an_unknown_variable(command: Command) -> None:
    mistyped = {f"PETSTORE_{name}": "1" for name in ("XYZZY", "PROT", "HOST_FILE")}
    for arguments in (("serve",), ("keys", "list"), ("pets", "list")):
        assert command.fail(*arguments, status=2, **mistyped) == (
            "no such environment variable: PETSTORE_HOST_FILE, PETSTORE_PROT, PETSTORE_XYZZY; see"
            " petstore serve --help"
        )


def test_kubernetes_service_variables_are_not_settings(command: Command) -> None:
    command.make_store()
    links = {
        "PETSTORE_PORT": "tcp://10.0.0.1:80",
        "PETSTORE_SERVICE_HOST": "10.0.0.1",
        "PETSTORE_SERVICE_PORT": "80",
        "PETSTORE_SERVICE_PORT_HTTP": "80",
        "PETSTORE_PORT_80_TCP": "tcp://10.0.0.1:80",
        "PETSTORE_PORT_80_TCP_PROTO": "tcp",
        "PETSTORE_PORT_80_TCP_PORT": "80",
        "PETSTORE_PORT_80_TCP_ADDR": "10.0.0.1",
        "PETSTORE_METRICS_PORT": "tcp://10.0.0.2:9100",
        "PETSTORE_REDIS_SERVICE_HOST": "10.0.0.3",
        "PETSTORE_REDIS_PORT_6379_TCP_ADDR": "10.0.0.3",
    }
    rows = [line.split() for line in command("serve", "--check", **links).stdout.splitlines()]
    assert ["--port", "8000", "default"] in rows
    assert ["--metrics-port", "0", "default"] in rows
