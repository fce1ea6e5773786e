"""The command line in this process: quick enough to try every form of it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from click.testing import CliRunner, Result

from petstore.cli.main import main
from petstore.databases.sqlite import SqliteStore
from support.stores import migrate


class Command:
    """``petstore``, with ``PETSTORE_DATABASE`` set."""

    def __init__(self, database: Path) -> None:
        self.database = database

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"

    def __call__(self, *arguments: str, **environment: str) -> Result:
        """Run it; what it prints and what it says on standard error are kept apart."""
        environment = {
            "PETSTORE_DATABASE": self.url,
            "PETSTORE_LOG_FORMAT": "text",
            **environment,
        }
        return CliRunner().invoke(main, arguments, env=environment)

    def succeed(self, *arguments: str, **environment: str) -> str:
        result = self(*arguments, **environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    def fail(self, *arguments: str, status: int, **environment: str) -> str:
        result = self(*arguments, **environment)
        assert result.exit_code == status, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.stdout == ""
        usage, error, words = result.stderr.rpartition("Error: ")
        assert error
        assert usage.startswith("Usage: ") == (status == 2)
        return words.rstrip("\n")

    def make_store(self) -> None:
        migrate(SqliteStore(self.database), self.database)

    def execute(self, sql: str) -> list[Any]:
        """Execute SQL in the store, behind the back of the service; return the rows."""
        with closing(apsw.Connection(str(self.database))) as connection:
            return [*connection.execute(sql)]

    def make_webhook(self) -> None:
        """Make a store with a key and a webhook, and no secret file."""
        self.make_store()
        self.create_key()
        self.execute(
            "INSERT INTO webhooks (key_id, url, types, created_at, enabled, secret_version,"
            " position, failures, environment)"
            " VALUES (1, 'https://shop.example/', '', 0, 1, 1, 0, 0, 'production')"
        )

    def create_key(self, *arguments: str, plan: str = "enterprise") -> str:
        return self.succeed("keys", "create", "--name", "app", "--plan", plan, *arguments).strip()

    def show_key(self, key_id: int = 1) -> dict[str, Any]:
        key: dict[str, Any] = json.loads(self.succeed("keys", "show", str(key_id), "--json"))
        return key
