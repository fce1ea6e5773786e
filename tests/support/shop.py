"""The commands of a shop's staff and administrators, run in this process."""

import json
from typing import Any, Self

from click.testing import CliRunner, Result

from petstore.cli.main import main


class Shop:
    """``petstore``, with ``PETSTORE_URL`` and ``PETSTORE_KEY`` set."""

    def __init__(self, url: str, key: str) -> None:
        self.environment = {"PETSTORE_URL": url, "PETSTORE_KEY": key}

    @classmethod
    def on_database(cls, url: str) -> Self:
        """Return the commands of an administrator, without a key, on the database itself."""
        shop = cls("", "")
        shop.environment = {"PETSTORE_DATABASE": url}
        return shop

    def __call__(self, *arguments: object, **environment: str) -> Result:
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(main, words, env=self.environment | environment)

    def succeed(self, *arguments: object, **environment: str) -> str:
        result = self(*arguments, **environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    def ask(self, *arguments: object) -> Any:
        return json.loads(self.succeed(*arguments, "--json"))

    def fail(self, *arguments: object, status: int, **environment: str) -> str:
        """Run it to an error, said in plain words and nothing else; return the words."""
        result = self(*arguments, **environment)
        assert result.exit_code == status, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.stdout == ""
        usage, error, words = result.stderr.rpartition("Error: ")
        assert error
        assert status == 2 or not usage.startswith("Usage: ")
        return words.rstrip("\n")
