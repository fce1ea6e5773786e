"""``petstore pets export`` with a key alone."""

from pathlib import Path

import pytest

from support.odd_service import error, odd_service, response
from support.servers import StartServer
from support.shop import Shop


@pytest.fixture
def many(start: StartServer, tmp_path: Path) -> Shop:
    """The commands, with 123 animals to export, and their database as a variable."""
    server = start()
    shop = Shop(server.url, server.issue())
    file = tmp_path / "animals.csv"
    rows = "".join(f'"animal, {n}",{n},{"sold" if n % 2 else ""}\n' for n in range(123))
    file.write_text(f"name,categoryId,status\n{rows}")
    shop.succeed("pets", "import", file, "--database", server.database)
    shop.environment["DATABASE"] = server.database
    return shop


def test_a_service_and_its_database_export_the_same(many: Shop, tmp_path: Path) -> None:
    database = ("--database", many.environment["DATABASE"])
    for options in (("--format", "csv"), ("--format", "jsonl"), ("--spreadsheet-safe",)):
        result = many("pets", "export", *options)
        assert result.stderr == "123 animals exported.\n"
        assert result.stdout == many.succeed("pets", "export", *options, *database)
    file = tmp_path / "all.jsonl"
    many.succeed("pets", "export", file)
    assert file.read_text() == many.succeed("pets", "export", "--format", "jsonl")


def test_a_failed_export_leaves_the_file_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    file.write_text("before")
    page = response(200, [], Link='</v1/pets?cursor=a>; rel="next"')
    with odd_service(page, error(401, message="the key is not valid")) as service:
        words = Shop(service.url, "a-key").fail("pets", "export", file, status=5)
    assert words == f"the key is not valid: check PETSTORE_KEY; {file} is unchanged"
    assert file.read_text() == "before"


def test_without_a_key_or_a_database_nothing_is_exported() -> None:
    words = Shop("http://127.0.0.1:1", "").fail("pets", "export", status=5)
    assert words == "expected an API key in the environment variable PETSTORE_KEY, or --database"
