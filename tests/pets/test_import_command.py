"""``petstore pets import`` and ``petstore imports``: files into a running service."""

import json
from pathlib import Path

import pytest

from petstore.cli import client
from petstore.imports.operations import OPERATIONS
from support.odd_service import error, odd_service, response
from support.process import StartServer
from support.shop import Shop
from support.workbooks import excel, row

CREATE_IMPORT = next(each for each in OPERATIONS if each.id == "createImport")
LIST = "Tier;Art;Zustand\nBella;Dogs;verkauft\nMia;Wolves;\n;Dogs;sold\nRex;Dogs;Pflege\n"


@pytest.fixture
def shop(start: StartServer) -> Shop:
    """The commands of a service with the category Dogs."""
    server = start()
    shop = Shop(server.url, server.issue())
    shop.succeed("categories", "add", "Dogs")
    return shop


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of four rows, of which one can be added as it is."""
    file = tmp_path / "tiere.csv"
    file.write_text(LIST)
    return file


def test_refused_rows_are_reported_and_saved(shop: Shop, file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "refused.csv"
    result = shop("pets", "import", file, "--column", "status=Zustand", "--refused", saved)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 pet added, 3 rows refused.",
        "To undo it within 7 days: petstore imports undo 1",
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


def test_everything_can_be_decided_by_options(shop: Shop, file: Path) -> None:
    options = ("--column", "status=3", "--value", "Pflege=pending", "--create-categories")
    preview = shop("pets", "import", file, *options, "--default-status", "available", "--preview")
    assert preview.stdout == "3 pets to add, 1 row to refuse.\n"
    result = shop("pets", "import", file, "--json")
    outcome = {"added": 3, "refused": 1, "doneBefore": 0, "import": 1}
    assert json.loads(result.stdout) == outcome
    pets = json.loads(shop.succeed("pets", "list", "--json"))
    assert [(pet["categoryId"], pet["status"]) for pet in pets] == [
        (1, "sold"),
        (2, "available"),
        (1, "pending"),
    ]


def test_the_same_file_adds_nothing_twice(shop: Shop, file: Path) -> None:
    shop("pets", "import", file)
    result = shop("pets", "import", file)
    assert "1 pet had been added before.\n0 pets added" in result.stdout


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--column", "price=Tier"], "expected one of name, category, status, id and a column"),
        (["--column", "name=Katze"], "there is no column Katze; the columns are Tier, Art"),
        (["--value", "Pflege=gone"], "expected a word and one of available, pending, sold, none"),
    ],
)
def test_mistakes_are_refused(shop: Shop, file: Path, options: list[str], message: str) -> None:
    assert message in shop.fail("pets", "import", file, *options, status=2)


def test_an_import_is_listed_shown_undone_and_deleted(shop: Shop, file: Path) -> None:
    shop("pets", "import", file)
    assert "tiere.csv" in shop.succeed("imports", "list")
    shown = shop.succeed("imports", "show", 1)
    assert "file name           tiere.csv\n" in shown
    shop.succeed("pets", "change", 1, "--name", "Bella II")
    undone = shop("imports", "undo", 1)
    assert undone.stdout.splitlines()[:3] == ["id       1", "deleted  0", "kept     1"]
    assert "1   Bella  changed\n" in undone.stdout
    assert shop("imports", "delete", 1).stderr == "Import 1 deleted.\n"
    assert "there is no import 1" in shop.fail("imports", "show", 1, status=3)
