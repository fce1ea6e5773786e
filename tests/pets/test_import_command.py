"""``petstore pets import`` and ``petstore imports``: files into a running service."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.cli import client
from petstore.imports.operations import OPERATIONS
from support.odd_service import error, odd_service, response
from support.process import ServerProcess, serving
from support.shop import Shop
from support.workbooks import excel, row

CREATE_IMPORT = next(each for each in OPERATIONS if each.id == "createImport")
LIST = "Tier;Art;Zustand\nBella;Dogs;verkauft\nMia;Wolves;\n;Dogs;sold\nRex;Dogs;Pflege\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service with the category Dogs."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        Shop(server.url, server.issue()).succeed("categories", "add", "Dogs")
        yield server


@pytest.fixture
def shop(server: ServerProcess) -> Shop:
    """The commands of somebody without imports."""
    return Shop(server.url, server.issue())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of four rows, of which one can be added as it is."""
    file = tmp_path / "tiere.csv"
    file.write_text(LIST)
    return file


def test_an_import_is_reported_listed_undone_and_deleted(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "refused.csv"
    result = shop("pets", "import", file, "--column", "status=Zustand", "--refused", saved)
    assert result.exit_code == 1
    (listed,) = shop.ask("imports", "list")
    number = listed["id"]
    assert result.stdout.splitlines() == [
        "1 pet added, 3 rows refused.",
        f"To undo it within 7 days: petstore imports undo {number}",
    ]
    assert result.stderr.splitlines() == [
        "line 3: There is no category “Wolves”.",
        "line 4: The row has no name.",
        "line 5: The meaning of the status “Pflege” is not decided.",
    ]
    assert saved.read_text("utf-8-sig").splitlines()[:2] == [
        "Tier,Art,Zustand,Line,Reason",
        "Mia,Wolves,,3,There is no category “Wolves”.",
    ]
    again = shop("pets", "import", file)
    assert "1 pet had been added before.\n0 pets added" in again.stdout
    assert "tiere.csv" in shop.succeed("imports", "list")
    assert "file name           tiere.csv\n" in shop.succeed("imports", "show", number)
    pet = shop.ask("pets", "list", "--all")[-1]["id"]
    shop.succeed("pets", "change", pet, "--name", "Bella II")
    undone = shop("imports", "undo", number).stdout
    assert [line.split() for line in undone.splitlines()[:3]] == [
        *(["id", str(number)], ["deleted", "0"], ["kept", "1"])
    ]
    assert f"{pet}   Bella  changed\n" in undone
    assert shop("imports", "delete", number).stderr == f"Import {number} deleted.\n"
    assert f"there is no import {number}" in shop.fail("imports", "show", number, status=3)


def test_everything_can_be_decided_by_options(shop: Shop, file: Path) -> None:
    options = ("--column", "status=3", "--value", "Pflege=pending", "--create-categories")
    preview = shop("pets", "import", file, *options, "--default-status", "available", "--preview")
    assert preview.stdout == "3 pets to add, 1 row to refuse.\n"
    outcome = json.loads(shop("pets", "import", file, "--json").stdout)
    (listed,) = shop.ask("imports", "list")
    assert outcome == {"added": 3, "refused": 1, "doneBefore": 0, "import": listed["id"]}
    pets = shop.ask("pets", "list", "--all")[-3:]
    expected = [(1, "sold"), (2, "available"), (1, "pending")]
    assert [(pet["categoryId"], pet["status"]) for pet in pets] == expected


def test_a_busy_service_is_asked_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client, "wait_out", lambda seconds, _: waits.append(seconds))
    sent = response(201, CREATE_IMPORT.success.example | {"waiting": 0})
    busy = [error(503, Retry_After=7)] * 5
    with odd_service(*busy, sent, response(200, b"line,reason\n")) as service:
        assert "1 pet to add" in Shop(service.url, "a-key").succeed("pets", "import", file)
    assert len(waits) == 5
    assert all(7 <= seconds <= 8 for seconds in waits)  # a later one may add to it
    assert len({asked.fields["idempotency-key"] for asked in service.asked[:6]}) == 1


def test_a_workbook_is_imported(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "pets.xlsx"
    file.write_bytes(excel(row(1, "name", "category"), row(2, "Rex", "Dogs")))
    assert "1 pet added, 0 rows refused." in shop.succeed("pets", "import", file)
    file.write_bytes(b"<html><table></table></html>")  # which no repetition helps
    assert shop.fail("pets", "import", file, status=2).endswith("and choose that file.")


def test_mistakes_are_refused(shop: Shop, file: Path) -> None:
    for option, value, message in (
        ("--column", "price=Tier", "expected one of name, category, status, id and a column"),
        ("--column", "name=Katze", "there is no column Katze; the columns are Tier, Art"),
        ("--value", "Pflege=gone", "expected a word and one of available, pending, sold, none"),
    ):
        assert message in shop.fail("pets", "import", file, option, value, status=2)
