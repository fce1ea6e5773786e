"""``petstore deliver``: what it refuses. tests/process/test_deliveries.py runs it."""

from pathlib import Path

import pytest

from support.command import Command


def test_a_store_that_is_not_there_is_refused(command: Command) -> None:
    words = command.fail("deliver", status=1)
    assert words.startswith("there is no store at ")
    assert not command.database.exists()


def test_postgresql_needs_a_secret_file(command: Command) -> None:
    words = command.fail("deliver", PETSTORE_DATABASE="postgresql://db/shop", status=2)
    assert words == "--secret-file: expected the secret file of the service"


def test_a_malformed_secret_file_is_refused(command: Command, tmp_path: Path) -> None:
    command.make_store()
    secret = tmp_path / "secret"
    secret.write_text("hush")
    words = command.fail("deliver", "--secret-file", str(secret), status=2)
    assert words.startswith(f"--secret-file: {secret}: expected one line")


@pytest.mark.parametrize("network", ["here", "10.0.0.1/8"])
def test_what_is_no_network_is_refused(command: Command, network: str) -> None:
    words = command.fail("deliver", "--webhook-network", network, status=2)
    assert words.startswith("--webhook-network: expected a network such as 10.0.0.0/8; ")


def test_settings_of_the_service_alone_are_no_options(command: Command) -> None:
    words = command.fail("deliver", "--workers", "2", status=2)
    assert words.startswith("No such option '--workers'")
