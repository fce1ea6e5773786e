"""The command line in this process: quick enough to try every form of it."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from click.testing import Result

from petstore.databases.sqlite import SqliteStore
from support.shop import Shop
from support.stores import migrate


class Command(Shop):
    """``petstore``, with ``PETSTORE_DATABASE`` set."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.environment = {"PETSTORE_LOG_FORMAT": "text"}

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"

    def __call__(self, *arguments: object, **environment: str) -> Result:
        return super().__call__(*arguments, **({"PETSTORE_DATABASE": self.url} | environment))

    def make_store(self) -> None:
        migrate(SqliteStore(self.database), self.database)

    def execute(self, sql: str) -> list[Any]:
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
