"""Output that cannot be written: a full disk, or a reader that has left."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from petstore.cli.main import main
from petstore.keys.model import is_token
from support.command import Command

FULL, CLOSED = "No space left on device", "Broken pipe"


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


def failure_of(output: int, *arguments: str, **variables: str) -> list[str]:
    """Run the command in this process to exit status 1; return the lines of its errors."""
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(os.dup(output), "w") as stream:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    assert ended.value.code == 1
    return errors.getvalue().splitlines()


@pytest.mark.parametrize(
    ("arguments", "named", "reason", "another"),
    [
        ("keys create --name app --plan free", "key 2 (app)", CLOSED, "keys rotate 2"),
        ("keys rotate 1", "key 1 (app)", FULL, "keys rotate 1"),
        (
            "people add --name Grace --login grace --role clerk",
            "person 2 (Grace)",
            FULL,
            "people invite 2",
        ),
    ],
)
def test_an_unwritable_secret_is_reported_with_how_to_get_another(
    command: Command, arguments: str, named: str, reason: str, another: str
) -> None:
    command.create_key()
    with unwritable(reason) as output:
        *_, failed = failure_of(output, *arguments.split(), PETSTORE_DATABASE=command.url)
    assert failed == (
        f"Error: cannot write the secret of {named}: {reason}; petstore {another} makes another one"
    )


@pytest.mark.parametrize("arguments", [("keys", "list"), ("keys", "list", "--json")])
def test_output_to_a_full_disk_is_an_error(command: Command, arguments: tuple[str, ...]) -> None:
    command.create_key()
    with unwritable(FULL) as output:
        (line,) = failure_of(output, *arguments, PETSTORE_DATABASE=command.url)
    assert f"cannot write the output: {FULL}" in line


def test_a_process_ends_quietly_whatever_is_unwritable_and_its_token_is_printed(
    command: Command,
) -> None:
    """Python writes its buffers once more at the end."""

    def run(
        *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "petstore", *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": "", "PETSTORE_DATABASE": command.url},
            stdout=stdout,
            stderr=stderr,
            check=False,
        )

    command.make_store()
    with unwritable(FULL) as errors:
        created = run("keys", "create", "--name", "app", "--plan", "free", stderr=errors)
    assert created.returncode == 0
    assert is_token(created.stdout.strip(), "production")
    with unwritable(CLOSED) as output:
        listed = run("keys", "list", stdout=output)
    assert (listed.returncode, listed.stderr) == (1, b"")
