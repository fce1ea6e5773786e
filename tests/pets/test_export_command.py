"""``petstore pets export``: every pet, in a file that can be imported again."""

import csv
from pathlib import Path

import pytest

from support.odd_service import error, odd_service, response
from support.process import StartServer
from support.shop import Shop


@pytest.fixture
def stocked(start: StartServer, tmp_path: Path) -> Shop:
    """The commands of a service with 123 pets."""
    server = start()
    shop = Shop(server.url, server.issue())
    shop.succeed("categories", "add", "Dögs")
    file = tmp_path / "stock.csv"
    rows = "".join(f'"=pet, {n}",Dögs,{"sold" if n % 2 else ""}\n' for n in range(123))
    file.write_text(f"name,category,status\n{rows}")
    shop.succeed("pets", "import", file)
    return shop


def test_every_pet_is_exported_with_the_name_of_its_category(stocked: Shop, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    result = stocked("pets", "export", file)
    assert result.stderr == "123 pets exported.\n"
    text = file.read_text("utf-8-sig")
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    header, *rows = csv.reader(text.splitlines())
    assert header == ["id", "name", "categoryId", "category", "status"]
    assert rows[:2] == [["1", "=pet, 0", "1", "Dögs", ""], ["2", "=pet, 1", "1", "Dögs", "sold"]]
    assert len(rows) == 123
    assert stocked("pets", "export").stdout == text
    assert '\n1,"\'=pet, 0",1,' in stocked("pets", "export", "--spreadsheet-safe").stdout


def test_an_export_that_is_imported_adds_nothing(stocked: Shop, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    stocked.succeed("pets", "export", file)
    result = stocked("pets", "import", file)
    assert result.exit_code == 1
    assert "0 pets added, 123 rows refused." in result.stdout
    assert "line 2: It is already in the store, as pet 1." in result.stderr


def test_a_failed_export_leaves_the_file_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    file.write_text("before")
    page = response(200, [], Link='</v1/pets?cursor=a>; rel="next"')
    with odd_service(response(200, []), page, error(401, message="no valid key")) as service:
        words = Shop(service.url, "a-key").fail("pets", "export", file, status=5)
    assert words == f"no valid key: check PETSTORE_KEY; {file} is unchanged"
    assert file.read_text() == "before"
