"""``petstore deliver``: what it refuses. tests/process/test_deliveries.py runs it."""

from pathlib import Path

import pytest

from petstore.settings import SECTIONS
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
    secret.touch(0o600)
    secret.write_text("hush")
    words = command.fail("deliver", "--secret-file", str(secret), status=2)
    assert words.startswith(f"--secret-file: {secret}: expected one line")


@pytest.mark.parametrize("network", ["here", "10.0.0.1/8"])
def test_what_is_no_network_is_refused(command: Command, network: str) -> None:
    words = command.fail("deliver", "--webhook-network", network, status=2)
    assert words.startswith("--webhook-network: expected a network such as 10.0.0.0/8; ")


def test_the_help_says_what_a_setting_means_for_a_deliverer(command: Command) -> None:
    text = " ".join(command.succeed("deliver", "--help").split())
    assert "--host TEXT The address of /metrics. [env var: PETSTORE_HOST;" in text
    for of_the_service in ("503", "The address to listen on", "Requests are info", "valid"):
        assert of_the_service not in text
    titles = ["Options", "Where it listens", "Store", "Webhooks", "Logs and traces"]
    assert [title for title in ["Options", *SECTIONS] if f"{title}: -" in text] == titles


def test_settings_of_the_service_alone_are_no_options(command: Command) -> None:
    words = command.fail("deliver", "--workers", "2", status=2)
    assert words.startswith("No such option '--workers'")
