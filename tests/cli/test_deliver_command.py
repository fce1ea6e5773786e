"""``petstore deliver``: what it refuses. tests/process/test_deliveries.py runs it."""

from petstore.settings import SECTIONS
from support.command import Command


def test_a_missing_store_is_refused(command: Command) -> None:
    words = command.fail("deliver", status=1)
    assert words.startswith("there is no store at ")
    assert not command.database.exists()


def test_postgresql_needs_a_secret_file(command: Command) -> None:
    words = command.fail("deliver", PETSTORE_DATABASE="postgresql://db/shop", status=2)
    assert words == "--secret-file: expected the secret file of the service"


def test_the_help_describes_settings_for_a_deliverer(command: Command) -> None:
    text = " ".join(command.succeed("deliver", "--help").split())
    assert "--host TEXT The address of /metrics. [env var: PETSTORE_HOST;" in text
    for of_the_service in ("503", "The address to listen on", "Requests are info", "valid"):
        assert of_the_service not in text
    titles = ["Options", "Where it listens", "Store", "Webhooks", "Logs and traces"]
    assert [title for title in ["Options", *SECTIONS] if f"{title}: -" in text] == titles


def test_settings_that_only_the_service_has_are_not_options(command: Command) -> None:
    words = command.fail("deliver", "--workers", "2", status=2)
    assert words.startswith("No such option '--workers'")
