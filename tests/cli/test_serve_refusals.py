"""``petstore serve`` that cannot: it says why in one line, and nothing is left behind."""

import socket
from pathlib import Path

import apsw
import pytest

from support.command import Command
from support.process import ServerProcess, free_port, petstore


@pytest.fixture
def port() -> str:
    return str(free_port())


def test_a_port_in_use_is_refused(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = command.fail("serve", "--port", str(port), status=1)
    assert words == f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert not command.database.exists()


def test_the_port_of_a_running_service_is_refused(server: ServerProcess, tmp_path: Path) -> None:
    second = petstore("serve", "--port", str(server.port), cwd=tmp_path)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        f"Error: cannot listen on 127.0.0.1 port {server.port}: Address already in use\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "not a host"])
def test_an_address_that_is_not_this_machine_is_refused(
    command: Command, port: str, host: str
) -> None:
    words = command.fail("serve", "--host", host, "--port", port, status=1)
    assert words.startswith(f"cannot listen on {host} port {port}: ")


def test_a_database_of_a_newer_version_is_refused(
    command: Command, database: Path, port: str
) -> None:
    command.make_store()
    connection = apsw.Connection(str(database))
    newest = connection.pragma("user_version")
    connection.pragma("user_version", 1000)
    connection.close()
    assert command.fail("serve", "--port", port, status=1) == (
        f"{database}: the database has schema version 1000, made by a newer petstore;"
        f" this one knows versions up to {newest}: install the newer version"
    )


def test_a_database_of_another_program_is_refused(
    command: Command, database: Path, port: str
) -> None:
    connection = apsw.Connection(str(database))
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    assert command.fail("serve", "--port", port, status=1) == (
        f"{database}: the database was made by another program, not by petstore"
    )


@pytest.mark.parametrize("name", ["no folder/petstore.db", ".", "file/petstore.db"])
@pytest.mark.parametrize("demo", [(), ("--demo",)])
def test_a_path_where_no_database_can_be_is_named(
    command: Command, tmp_path: Path, port: str, name: str, demo: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    command.database = tmp_path / name
    words = command.fail("serve", "--port", port, *demo, status=1)
    assert words in {
        f"{tmp_path / name}: unable to open database file",
        f"{tmp_path / name}: expected a file, found a folder, link or pipe",
    }


@pytest.mark.parametrize("content", ["geheim", "-", ""])
def test_a_secret_file_with_anything_else_is_refused(
    command: Command, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text(content)
    words = command.fail("serve", "--secret-file", str(file), status=2)
    assert words == f"--secret-file: {file}: expected one line, 32 random bytes in base64"
    assert not command.database.exists()


def test_with_postgresql_a_missing_secret_file_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    database = "postgresql://127.0.0.1:1/shop"
    words = command.fail("serve", "--database", database, "--secret-file", str(file), status=2)
    assert words == f"--secret-file: {file}: No such file or directory"


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


def test_a_network_of_webhooks_that_is_none_is_refused(command: Command) -> None:
    words = command.fail("serve", "--webhook-network", "10.0.0.1/8", status=2)
    assert words.startswith("--webhook-network: expected a network such as 10.0.0.0/8; ")
