"""Output that cannot be written: a full disk, or a reader that has left."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from petstore.domain.api_keys import is_token
from support.command import Command
from support.odd_service import odd_service, response

FULL, CLOSED = "No space left on device", "Broken pipe"
WEBHOOK = {
    "id": 7,
    "url": "https://shop.example/hooks",
    "types": [],
    "enabled": True,
    "createdAt": "2026-12-01T12:00:00Z",
    "secret": "whsec_hush",
}


@contextmanager
def unwritable(reason: str) -> Iterator[int]:
    """Give a file that no write to succeeds."""
    if reason == FULL:
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def petstore(
    *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with buffers, which Python writes once more at its end."""
    return subprocess.run(
        [sys.executable, "-m", "petstore", *arguments],
        env={**os.environ, "PYTHONUNBUFFERED": "", **variables},
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "done", "reason"),
    [
        (("create", "--name", "app", "--plan", "free"), "key 2 was created", FULL),
        (("create", "--name", "app", "--plan", "free"), "key 2 was created", CLOSED),
        (("rotate", "1"), "key 1 was rotated", FULL),
    ],
)
def test_a_key_whose_token_cannot_be_written_is_named_with_how_to_get_another(
    command: Command, arguments: tuple[str, ...], done: str, reason: str
) -> None:
    command.create_key()
    with unwritable(reason) as output:
        ran = petstore("keys", *arguments, stdout=output, PETSTORE_DATABASE=command.url)
    note, failure = ran.stderr.splitlines()
    assert note.endswith("The token is shown this once.")
    assert failure.startswith(f"Error: cannot write the token: {reason}; {done}, but nobody saw")
    assert failure.endswith(f" its token: petstore keys rotate {done.split()[1]} issues another")
    assert ran.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "done"),
    [(("create", "https://shop.example/hooks"), "created"), (("rotate", "7"), "rotated")],
)
def test_a_webhook_whose_secret_cannot_be_written_is_named_with_how_to_get_another(
    arguments: tuple[str, ...], done: str
) -> None:
    with odd_service(response(201, WEBHOOK)) as service, unwritable(FULL) as output:
        ran = petstore(
            *("webhooks", *arguments), stdout=output, PETSTORE_URL=service.url, PETSTORE_KEY="key"
        )
    note, failure = ran.stderr.splitlines()
    assert note == f"Webhook 7 {done}. The secret is shown this once."
    assert failure.startswith(f"Error: cannot write the secret: {FULL}; webhook 7 was {done}, but")
    assert failure.endswith(" saw its secret: petstore webhooks rotate 7 issues another")
    assert ran.returncode == 1


def test_a_link_that_cannot_be_written_is_reported_with_how_to_get_another(
    command: Command,
) -> None:
    command.create_key()
    with unwritable(FULL) as output:
        ran = petstore("console", "link", "1", stdout=output, PETSTORE_DATABASE=command.url)
    failure = f"cannot write the link: {FULL}; nobody saw it: petstore console link 1 makes another"
    assert ran.stderr.splitlines()[1:] == [f"Error: {failure}"]
    assert ran.returncode == 1


def test_a_token_is_printed_even_if_nothing_else_can_be(command: Command) -> None:
    command.make_store()
    arguments = ("keys", "create", "--name", "app", "--plan", "free")
    with unwritable(FULL) as errors:
        ran = petstore(*arguments, stderr=errors, PETSTORE_DATABASE=command.url)
    assert ran.returncode == 0
    assert is_token(ran.stdout.strip().encode(), "production")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("version",), ("keys", "list"), ("keys", "list", "--json")]
)
def test_output_that_does_not_fit_on_a_disk_is_an_error_in_one_line(
    command: Command, arguments: tuple[str, ...]
) -> None:
    command.create_key()
    with unwritable(FULL) as output:
        ran = petstore(*arguments, stdout=output, PETSTORE_DATABASE=command.url)
    assert ran.stderr == f"Error: cannot write the output: {FULL}\n"
    assert ran.returncode == 1


@pytest.mark.parametrize("arguments", [("--help",), ("keys", "list")])
def test_a_reader_that_has_left_ends_a_command_without_a_word(
    command: Command, arguments: tuple[str, ...]
) -> None:
    command.create_key()
    with unwritable(CLOSED) as output:
        ran = petstore(*arguments, stdout=output, PETSTORE_DATABASE=command.url)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_a_failure_that_nobody_can_read_is_in_the_exit_status() -> None:
    with unwritable(FULL) as output:
        assert petstore("version", stdout=output, stderr=output).returncode == 1
