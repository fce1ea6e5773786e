"""Commands of an administrator: over HTTP with a key, else on the database itself."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import Command
from support.full_stores import query
from support.odd_service import error, odd_service
from support.process import ServerProcess
from support.shop import Shop
from support.stores import locked
from support.waiting import within


@pytest.mark.parametrize("noun", ["keys", "people", "webhooks", "deprecations"])
def test_a_key_chooses_the_service_and_no_key_the_database(
    server: ServerProcess, command: Command, noun: str
) -> None:
    arguments = (noun,) if noun == "deprecations" else (noun, "list")
    key = {"PETSTORE_KEY": server.issue(), "PETSTORE_URL": server.url, "PETSTORE_DATABASE": ""}
    if noun != "webhooks":
        words = Shop("", "").fail(*arguments, status=5, **key)
        lacks = "this key lacks the scope keys:admin"
        assert words == f"{lacks}; unset PETSTORE_KEY to work on the database itself"
    command.make_store()
    assert command(*arguments).stderr == "None found.\n"


def test_a_key_and_a_database_in_the_environment_are_refused_together(command: Command) -> None:
    command.make_store()
    key = {"PETSTORE_KEY": "a-key", "PETSTORE_URL": "http://127.0.0.1:1"}
    assert command.fail("keys", "list", status=2, **key) == (
        "PETSTORE_KEY and PETSTORE_DATABASE are both set: unset one of them, or name --database to"
        " work on the database itself"
    )
    assert command.succeed("keys", "list", "--database", command.url, "--json", **key) == "[]\n"


def test_an_invalid_key_is_not_sent_and_the_way_out_is_named() -> None:
    with odd_service(error(401, message="no such key")) as service:
        words = Shop(service.url, "a-key").fail("keys", "list", status=5)
    assert words == (
        "no such key: check PETSTORE_KEY; unset PETSTORE_KEY to work on the database itself"
    )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("sqlite:///{folder}/none/petstore.db", "there is no folder {folder}/none"),
        ("sqlite:///{folder}/other.db", "the database was made by another program"),
        ("sqlite:///{folder}/text.db", "is not a database"),
    ],
)
@pytest.mark.parametrize("arguments", [("list",), ("create", "--name", "app", "--plan", "free")])
def test_a_database_that_cannot_be_used_is_reported(
    command: Command, tmp_path: Path, address: str, reason: str, arguments: tuple[str, ...]
) -> None:
    query(f"sqlite:///{tmp_path}/other.db", "CREATE TABLE books (id INTEGER)")
    (tmp_path / "text.db").write_text("No database. " * 100)
    address = address.format(folder=tmp_path)
    words = command.fail("keys", *arguments, "--database", address, status=1)
    assert reason.format(folder=tmp_path) in words


@contextmanager
def creating_key(database: str) -> Iterator[subprocess.Popen[str]]:
    """Give a process that creates a key, without coverage: a signal could find its lock taken."""
    program = (sys.executable, "-m", "petstore", "keys", "create", "--name", "a", "--plan", "free")
    with subprocess.Popen(
        program,
        env={**os.environ, "PETSTORE_DATABASE": database, "COVERAGE_PROCESS_CONFIG": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def test_an_interrupted_command_ends_quietly_and_changes_nothing(command: Command) -> None:
    command.make_store()
    with locked(command.database), creating_key(command.url) as process:
        assert within(30, lambda: len([*Path(f"/proc/{process.pid}/task").iterdir()]) > 1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (130, "", "")
    assert command.succeed("keys", "list", "--json") == "[]\n"


def test_a_locked_database_is_reported(command: Command) -> None:
    command.make_store()
    with locked(command.database), creating_key(command.url) as process:
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (6, "")
    # Whichever of two waits ends first words the reason: the lock's, or the caller's.
    assert re.fullmatch(
        r"Error: the outcome of POST /keys is unknown: the database (did not confirm the change in"
        r" time|is not available: database is locked)\n",
        stderr,
    )
