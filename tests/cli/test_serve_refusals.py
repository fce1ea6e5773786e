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
def test_an_address_of_another_machine_is_refused(command: Command, port: str, host: str) -> None:
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


def test_an_invalid_redis_url_is_refused(command: Command, port: str) -> None:
    words = command.fail("serve", "--port", port, "--redis", "redis://h:a", status=2)
    assert words.startswith("--redis: expected redis://host:port/database")


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
