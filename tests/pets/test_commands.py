"""``petstore pets``, ``inventory`` and ``imports``: the pets of a running service."""

import csv
import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from petstore.cli import client
from petstore.imports.operations import OPERATIONS
from petstore.pets.commands import pets
from petstore.pets.model import NewPet
from petstore.pets.pages import FORM
from support.odd_service import error, odd_service, response
from support.process import ServerProcess, serving
from support.shop import Shop
from support.workbooks import excel, row

MORE = "(there are more: see --all, --limit, or --cursor "
CREATE_IMPORT = next(each for each in OPERATIONS if each.id == "createImport")
LIST = "Tier;Art;Zustand\nBella;Dogs;verkauft\nMia;Wolves;\n;Dogs;sold\nRex;Dogs;Pflege\n"
HOSTILE = "[b]\x1b]0;owned\x07\nRex[/b]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service with the category Dogs."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        Shop(server.url, server.issue()).succeed("categories", "add", "Dogs")
        yield server


@pytest.fixture
def shop(server: ServerProcess) -> Shop:
    """The commands of a person without imports."""
    return Shop(server.url, server.issue())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of four rows, of which one can be added as it is."""
    file = tmp_path / "tiere.csv"
    file.write_text(LIST)
    return file


def lines(text: str) -> list[list[str]]:
    """Return the words of each line of a table."""
    return [line.split() for line in text.splitlines()]


def test_a_pet_is_added_changed_and_deleted(shop: Shop) -> None:
    category = secrets.randbelow(2**62)  # in which no other test has pets
    printed = shop.succeed("pets", "add", "Kn\u00f6del", "--category", category)
    pet_id = int(printed.split()[1])
    known = f"id        {pet_id}\nname      Kn\u00f6del\ncategory  {category}\n"
    assert printed == shop.succeed("pets", "show", pet_id) == known
    assert shop.succeed("pets", "change", pet_id, "--status", "sold") == f"{known}status    sold\n"
    words = shop.fail("pets", "change", pet_id, "--status", "pending", status=4)
    assert words == "status: sold can become available, not pending"
    pet = shop.ask("pets", "change", pet_id, "--name", HOSTILE, "--status", "available")
    assert pet == {"id": pet_id, "name": HOSTILE, "categoryId": category, "status": "available"}
    assert shop.succeed("pets", "list", "--category", category, "--json").endswith("\n]\n")
    assert lines(shop.succeed("pets", "list", "--category", category)) == [
        ["id", "name", "category", "status"],
        [str(pet_id), r"[b]\x1b]0;owned\x07\nRex[/b]", str(category), "available"],
    ]
    assert "status" not in shop.ask("pets", "change", pet_id, "--no-status")
    deleted = shop("pets", "delete", pet_id)
    assert (deleted.exit_code, deleted.stdout) == (0, "")
    assert deleted.stderr == f"Pet {pet_id} deleted.\n"
    found = shop("pets", "list", "--category", category)
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "None found.\n")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The commands, with a service of 123 pets."""
    folder = tmp_path_factory.mktemp("many")
    with serving(folder) as server:
        shop = Shop(server.url, server.issue())
        shop.succeed("categories", "add", "D\u00f6gs")
        file = folder / "pets.csv"
        rows = "".join(f'"=pet, {n}",D\u00f6gs,{"sold" if n % 2 else ""}\n' for n in range(123))
        file.write_text(f"name,category,status\n{rows}")
        shop.succeed("pets", "import", file)
        yield shop


def test_a_list_is_one_page_unless_all_is_given(many: Shop) -> None:
    expected: list[tuple[tuple[object, ...], int, str]] = [
        *(((), 20, MORE), (("--limit", 100), 100, MORE), (("--all",), 123, ""))
    ]
    for options, count, hint in expected:
        ids = list(range(1, count + 1))
        table = many("pets", "list", *options)
        assert [int(words[0]) for words in lines(table.stdout)[1:]] == ids
        listed = many("pets", "list", *options, "--json")
        assert [pet["id"] for pet in json.loads(listed.stdout)] == ids
        for result in (table, listed):
            assert (result.exit_code, result.stderr == "") == (0, hint == "")
            assert result.stderr.startswith(hint)


def test_every_pet_is_exported_in_a_file_that_adds_nothing_if_it_is_imported(
    many: Shop, tmp_path: Path
) -> None:
    file = tmp_path / "all.csv"
    assert many("pets", "export", file).stderr == "123 pets exported.\n"
    text = file.read_text("utf-8-sig")
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    header, *rows = csv.reader(text.splitlines())
    assert header == ["id", "name", "categoryId", "category", "status"]
    first = ["1", "=pet, 0", "1", "D\u00f6gs", ""]
    assert rows[:2] == [first, ["2", "=pet, 1", "1", "D\u00f6gs", "sold"]]
    assert len(rows) == 123
    assert many("pets", "export").stdout == text
    assert '\n1,"\'=pet, 0",1,' in many("pets", "export", "--spreadsheet-safe").stdout
    result = many("pets", "import", file)
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


def test_the_inventory_has_a_line_for_each_status_and_category() -> None:
    rows = [{"categoryId": 7, "available": 1, "pending": 0, "sold": 2}]
    counts = {"available": 2, "pending": 0, "sold": 2, "categories": rows}
    with odd_service(response(200, counts)) as service:
        printed = Shop(service.url, "a-key").succeed("inventory")
    assert lines(printed) == [
        *(["available", "2"], ["pending", "0"], ["sold", "2"], [], ["categories:"]),
        ["category", "available", "pending", "sold"],
        ["7", "1", "0", "2"],
    ]


@pytest.mark.parametrize("name", ["add", "change"])
def test_a_form_and_a_command_have_every_field(name: str) -> None:
    parameters = pets.commands[name].get_params(click.Context(pets))
    assert {*NewPet.__struct_fields__} <= {parameter.name for parameter in parameters}
    assert FORM.labels.keys() == {*NewPet.__struct_encode_fields__}


# Files into a running service


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
    added = shop.ask("pets", "list", "--all")[-3:]
    expected = [(1, "sold"), (2, "available"), (1, "pending")]
    assert [(pet["categoryId"], pet["status"]) for pet in added] == expected


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


def test_a_workbook_is_imported_and_mistakes_are_refused(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    workbook = tmp_path / "pets.xlsx"
    workbook.write_bytes(excel(row(1, "name", "category"), row(2, "Rex", "Dogs")))
    assert "1 pet added, 0 rows refused." in shop.succeed("pets", "import", workbook)
    workbook.write_bytes(b"<html><table></table></html>")  # which no repetition helps
    assert shop.fail("pets", "import", workbook, status=2).endswith("and choose that file.")
    for option, value, message in (
        ("--column", "price=Tier", "expected one of name, category, status, id and a column"),
        ("--column", "name=Katze", "there is no column Katze; the columns are Tier, Art"),
        ("--value", "Pflege=gone", "expected a word and one of available, pending, sold, none"),
    ):
        assert message in shop.fail("pets", "import", file, option, value, status=2)
