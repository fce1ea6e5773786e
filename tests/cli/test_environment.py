"""Environment variables: a secret from a file, and unknown names."""

from pathlib import Path

import pytest

from support.command import Command
from support.postgres import PostgresServer
from support.process import StartServer
from support.shop import Shop
from support.waiting import within

PASSWORD = "geheim"
WITH_PASSWORD = f"postgresql://me:{PASSWORD}@127.0.0.1:1/shop"
WARNING = (
    "others on this machine can read a password on the command line; put the value into a file"
    " and name that in "
)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The file of a secret."""
    return tmp_path / "secret"


NOT_A_LINE = "expected one line, the value of PETSTORE_DATABASE"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((text, NOT_A_LINE) for text in (b"", b"\n", b"one\ntwo\n", b"\xff\xfe", b"a\0b")),
        (b"long" * 20_000, NOT_A_LINE),
        (None, "No such file or directory"),
    ],
    ids=lambda content: repr(content[:8]) if content else None,
)
def test_a_secret_file_that_cannot_be_used_is_refused_and_named(
    command: Command, secret: Path, content: bytes | None, reason: str
) -> None:
    if content is not None:
        secret.write_bytes(content)
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    words = command.fail("keys", "list", status=2, **files)
    assert words == f"PETSTORE_DATABASE_FILE: {secret}: {reason}"


def test_a_secret_that_is_given_twice_is_refused(command: Command, secret: Path) -> None:
    words = command.fail("keys", "list", status=2, PETSTORE_DATABASE_FILE=str(secret))
    assert words == "PETSTORE_DATABASE and PETSTORE_DATABASE_FILE are both set; expected only one"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_database_can_be_named_by_a_file(command: Command, secret: Path, end: str) -> None:
    command.make_store()
    secret.write_text(f"sqlite:///{command.database}{end}", newline="")
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    assert command.succeed("keys", "list", "--json", **files) == "[]\n"
    secret.write_text("sqlite:///nowhere.db")  # an option overrides it
    assert command.succeed("keys", "list", "--json", "--database", command.url, **files) == "[]\n"


def test_the_api_key_can_be_in_a_file(shop: Shop, secret: Path) -> None:
    secret.write_text(shop.environment.pop("PETSTORE_KEY") + "\n")
    shop.environment |= {"PETSTORE_KEY": "", "PETSTORE_KEY_FILE": str(secret)}
    assert shop.succeed("pets", "list", "--json").startswith("[")


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
    result = command(*arguments, option, WITH_PASSWORD)
    assert result.stderr.startswith(f"Warning: {option}: {WARNING}{variable}\n")
    assert PASSWORD not in result.output


def test_a_service_logs_a_warning_about_a_password_on_its_command_line(
    start: StartServer, postgres: PostgresServer, postgres_url: str
) -> None:
    server = start("--database", postgres.guarded_url(postgres_url))
    assert within(30, server.log_lines)  # it is written a moment later
    first = server.log_lines()[0]
    assert first["level"] == "warning"
    assert first["event"] == f"--database: {WARNING}PETSTORE_DATABASE_FILE"


@pytest.mark.parametrize(
    ("variables", "described"),
    [
        ("DATABSE", "PETSTORE_DATABSE"),
        ("HOST_FILE", "PETSTORE_HOST_FILE"),
        ("XYZZY PROT", "PETSTORE_PROT, PETSTORE_XYZZY"),
    ],
)
def test_every_command_refuses_an_unknown_variable(
    command: Command, variables: str, described: str
) -> None:
    mistyped = {f"PETSTORE_{name}": "1" for name in variables.split()}
    for arguments in (("serve",), ("keys", "list"), ("pets", "list")):
        words = command.fail(*arguments, status=2, **mistyped)
        expected = f"no such environment variable: {described}; see petstore serve --help"
        assert words == expected


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
