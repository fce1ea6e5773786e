"""``petstore pets import``: good rows are added once, and bad ones are reported."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, prlimit

import apsw
import httpx
import pytest

from support.command import Command
from support.full_disk import full_disk
from support.permissions import umask
from support.servers import StartServer
from support.terminal import shown_on_terminal
from support.waiting import within

HEADER = "name,categoryId,status\n"
NAME = "name: expected 1 to 255 characters, not only spaces"
CATEGORY = "categoryId: expected a whole number of up to 18 digits"
STATUS = "status: expected one of 'available', 'pending', 'sold'"
MANY = 6_000
GO_ON = "Run the same command again to go on; nothing is added twice"


def imported(command: Command) -> list[tuple[str, int, str | None]]:
    """Return what is in the store, in order of the ids."""
    lines = command.succeed("pets", "export", "--format", "jsonl").splitlines()
    pets = [json.loads(line) for line in lines]
    assert [pet["id"] for pet in pets] == list(range(1, len(pets) + 1))
    return [(pet["name"], pet["categoryId"], pet.get("status")) for pet in pets]


def many_animals(folder: Path) -> Path:
    file = folder / "many.csv"
    file.write_text(HEADER + "".join(f"animal {n},{n},sold\n" for n in range(MANY)))
    return file


def rows_done(command: Command) -> int:
    """Return how far the one import into the store is."""
    database = apsw.Connection(str(command.database), flags=apsw.SQLITE_OPEN_READWRITE)
    database.set_busy_timeout(5_000)  # the import may be opening or closing it just now
    done: int = database.execute("SELECT coalesce(max(rows_done), 0) FROM pet_imports").get
    database.close()
    return done


def imported_ids(command: Command) -> set[int]:
    lines = command.succeed("pets", "export").splitlines()[1:]
    return {int(line.partition(",")[0]) for line in lines}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A CSV file with two good rows and three bad ones."""
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "Rex,1,sold\n,2,\nTom,x,\nBella,3,\nFelix,4,lost\n")
    return file


def test_a_file_of_unknown_format_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.xlsx"
    file.write_text(HEADER)
    words = command.fail("pets", "import", str(file), status=2)
    assert words == f"{file}: expected a name that ends in .csv or .jsonl, or --format"


def test_a_file_name_cannot_control_the_terminal(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "\x1b[2J\udcff.csv"
    file.write_text(HEADER + "Rex,1,sold\n")
    command.succeed("pets", "import", str(file))
    shown = f"{tmp_path}/\\x1b[2J\\udcff"
    assert command.succeed("pets", "import", str(file)).startswith(f"{shown}.csv was imported")
    unknown = file.with_suffix(".txt")
    unknown.touch()
    assert command.fail("pets", "import", str(unknown), status=2).startswith(f"{shown}.txt: expect")
    absent = str(file.with_suffix(".none") / "backup.db")
    assert command.fail("backup", absent.replace("\udcff", ""), status=1).startswith(
        f"{tmp_path}/\\x1b[2J.none/backup.db"
    )


def test_a_missing_file_is_named(command: Command, tmp_path: Path) -> None:
    words = command.fail("pets", "import", str(tmp_path / "none.csv"), status=2)
    assert words == f"Invalid value for 'FILE': File '{tmp_path / 'none.csv'}' does not exist."


def test_a_table_without_a_header_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("name\nRex\n")
    words = command.fail("pets", "import", str(file), status=1)
    assert words.startswith(
        "line 1: expected the names of the columns, name and categoryId among them, "
    )


def test_a_file_as_a_spreadsheet_saves_it_is_imported(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("\ufeffsep=;\nName;Preis;Category;Status\nRex;9,50;1;Sold\n;;;\n;1;2;\n")
    refused = tmp_path / "refused.csv"
    result = command("pets", "import", str(file), "--refused", str(refused))
    assert result.stdout == "1 animal added, 1 row refused.\n"
    told = result.stderr.splitlines()
    assert [told[0], told[-1]] == ["Not used: Preis", f"line 5: {NAME}"]
    assert refused.read_text() == "sep=;\nName;Preis;Category;Status\n;1;2;\n"
    assert imported(command) == [("Rex", 1, "sold")]


def test_a_file_with_tabs_is_imported_by_its_name(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.TSV"
    file.write_text("Name\tCategory\nRex\t1\n", encoding="utf-16")
    command.succeed("pets", "import", str(file))
    assert imported(command) == [("Rex", 1, None)]


def test_many_columns_that_are_not_used_are_named_in_one_line(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    columns = [f"{'x' * 50}{number}" for number in range(1_000)]
    file.write_text(",".join(["name", "category", *columns]) + "\nRex,1\n")
    told = command("pets", "import", str(file)).stderr.splitlines()
    assert told[0] == f"Not used: {', '.join(['x' * 40] * 40)} and 960 more"


def test_a_column_that_is_not_sure_is_refused_until_it_is_chosen(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("Tier,Category,Zustand\nRex,1,Sold\n")
    assert command.fail("pets", "import", str(file), status=1) == (
        "line 1: no column is surely the name; the columns are Tier, Category, Zustand."
        " Choose one: --column name=COLUMN"
    )
    chosen = ("--column", "name=Tier", "--column", "status= Zustand")
    command.succeed("pets", "import", str(file), *chosen)
    assert imported(command) == [("Rex", 1, "sold")]


@pytest.mark.parametrize("column", ["name", "name=", "price=Preis"])
def test_a_chosen_column_needs_a_field_and_a_name(
    command: Command, file: Path, column: str
) -> None:
    words = command.fail("pets", "import", str(file), "--column", column, status=2)
    assert words == (
        "Invalid value for --column: expected name=, category= or status= with the name of a column"
    )


@pytest.mark.parametrize("option", ["--category-names", "--column=name=Tier"])
def test_options_for_csv_are_refused_for_json_lines(
    command: Command, tmp_path: Path, option: str
) -> None:
    file = tmp_path / "animals.jsonl"
    file.touch()
    words = command.fail("pets", "import", str(file), option, status=2)
    assert words == "--column and --category-names are for CSV"


def test_categories_are_names_if_that_is_wanted(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("name,category\nRex,dogs\nTom,Cats\nMo,+1\nBella,7\nKim,\n")
    command.make_store()
    command.execute("INSERT INTO categories (name, name_key) VALUES ('Dogs', 'dogs')")
    result = command("pets", "import", str(file), "--category-names")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "line 3: categoryId: no category has the name 'Cats'",
        "line 4: categoryId: no category has the name '+1'",
        f"line 6: {CATEGORY}",
    ]
    assert imported(command) == [("Rex", 1, None), ("Bella", 7, None)]


def test_a_category_that_is_nearly_another_one_is_told_so(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("name,category\nRex,Dgos\nMo,Rabits\n")
    command.make_store()
    command.execute(
        "INSERT INTO categories (name, name_key) VALUES"
        " ('Dogs', 'dogs'), ('Rabbits', 'rabbits'), ('Rats', 'rats'), ('Cats', 'cats')"
    )
    result = command("pets", "import", str(file), "--category-names")
    assert result.stderr.splitlines() == [
        "line 2: categoryId: no category has the name 'Dgos'; did you mean 'Dogs'?",
        "line 3: categoryId: no category has the name 'Rabits'; did you mean 'Rabbits' or 'Rats'?",
    ]


def test_the_imported_file_is_not_overwritten_with_its_own_refused_rows(
    command: Command, file: Path
) -> None:
    before = file.read_text()
    words = command.fail("pets", "import", str(file), "--refused", str(file), status=2)
    assert words == "Invalid value for --refused: expected another file than the imported one"
    assert file.read_text() == before


def test_a_refused_rows_file_that_cannot_be_written_is_reported(
    command: Command, file: Path
) -> None:
    target = file.parent / "no folder" / "refused.csv"
    result = command("pets", "import", str(file), "--refused", str(target))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"Error: {target}: No such file or directory"


def test_an_invalid_row_is_reported_with_its_line_and_valid_rows_are_added(
    command: Command, file: Path
) -> None:
    result = command("pets", "import", str(file))
    assert result.exit_code == 1
    assert result.stdout == "2 animals added, 3 rows refused.\n"
    assert result.stderr.splitlines() == [
        f"No database at {command.database}; creating it.",
        f"line 3: {NAME}",
        f"line 4: {CATEGORY}",
        f"line 6: {STATUS}",
        "Some categories are names: --category-names takes them.",
    ]
    assert imported(command) == [("Rex", 1, "sold"), ("Bella", 3, None)]


def test_refused_rows_can_be_corrected_and_imported(command: Command, file: Path) -> None:
    refused = file.parent / "refused.csv"
    assert command("pets", "import", str(file), "--refused", str(refused)).exit_code == 1
    assert refused.read_text() == HEADER + ",2,\nTom,x,\nFelix,4,lost\n"
    refused.write_text(HEADER + "Ada,2,\nTom,7,\nFelix,4,sold\n")
    assert command.succeed("pets", "import", str(refused)) == "3 animals added, 0 rows refused.\n"
    assert [name for name, _, _ in imported(command)] == ["Rex", "Bella", "Ada", "Tom", "Felix"]


def test_refused_rows_are_written_under_the_header_of_their_file(
    command: Command, tmp_path: Path
) -> None:
    file, refused = tmp_path / "animals.csv", tmp_path / "refused.csv"
    header = 'name;categoryId;"what we\nknow"\n'
    file.write_text(f"\ufeff{header}Rex;1;\nTom;x;\n", "utf-8")
    result = command("pets", "import", str(file), "--refused", str(refused))
    assert result.stdout == "1 animal added, 1 row refused.\n"
    assert refused.read_text("utf-8") == f"{header}Tom;x;\n"


def test_refused_json_lines_can_be_corrected_and_imported(command: Command, tmp_path: Path) -> None:
    file, refused = tmp_path / "animals.jsonl", tmp_path / "refused.jsonl"
    file.write_text('{"name": "Rex", "categoryId": 1}\n{"name": "Tom"}\n\n[]')
    command.make_store()
    result = command("pets", "import", str(file), "--refused", str(refused))
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first.startswith("line 2: categoryId: required")
    assert second.startswith("line 4: the line: expected a JSON object")
    assert refused.read_text() == '{"name": "Tom"}\n[]\n'
    refused.write_text('{"name": "Tom", "categoryId": 2, "status": "pending"}\n')
    assert command.succeed("pets", "import", str(refused)) == "1 animal added, 0 rows refused.\n"
    assert imported(command) == [("Rex", 1, None), ("Tom", 2, "pending")]


def test_without_refused_rows_no_file_is_written(command: Command, tmp_path: Path) -> None:
    file, refused = tmp_path / "animals.csv", tmp_path / "refused.csv"
    file.write_text(HEADER + "Rex,1,sold\n")
    command.succeed("pets", "import", str(file), "--refused", str(refused))
    assert not refused.exists()


def test_a_file_is_imported_once_unless_the_again_option_is_given(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "Rex,1,sold\n")
    added = "1 animal added, 0 rows refused.\n"
    assert command.succeed("pets", "import", str(file)) == added
    assert command.succeed("pets", "import", str(file)) == (
        f"{file} was imported before; nothing added. To add it all once more: --again\n"
    )
    assert command.succeed("pets", "import", str(file), "--again") == added
    assert [name for name, _, _ in imported(command)] == ["Rex", "Rex"]


def test_a_second_run_does_not_overwrite_a_corrected_file_of_refused_rows(
    command: Command, file: Path
) -> None:
    refused = file.parent / "refused.csv"
    command("pets", "import", str(file), "--refused", str(refused))
    refused.write_text("corrected")
    command.succeed("pets", "import", str(file), "--refused", str(refused))
    assert refused.read_text() == "corrected"


def test_the_refused_rows_file_is_private_and_follows_no_symlink(
    command: Command, file: Path, tmp_path: Path
) -> None:
    elsewhere, refused = tmp_path / "elsewhere", file.parent / "refused.csv"
    elsewhere.write_text("of somebody else")
    refused.symlink_to(elsewhere)
    with umask(0):
        assert command("pets", "import", str(file), "--refused", str(refused)).exit_code == 1
    assert refused.read_text().startswith("name,")
    assert not refused.is_symlink()
    assert refused.stat().st_mode & 0o777 == 0o600
    assert elsewhere.read_text() == "of somebody else"


def test_refused_rows_are_not_written_to_the_imported_file(command: Command, file: Path) -> None:
    part = file.rename(file.with_name("refused.csv.part"))
    refused = str(file.with_name("refused.csv"))
    arguments = ("pets", "import", str(part), "--format", "csv", "--refused", refused)
    words = command.fail(*arguments, status=2)
    assert words.endswith("expected another file than the imported one")
    assert part.exists()


def test_a_terminal_shows_a_progress_bar_and_complete_lines_for_refusals(
    command: Command, file: Path
) -> None:
    named = str(file.rename(file.with_name("[red]animals.csv")))
    shown = shown_on_terminal("pets", "import", named, COLUMNS="120", PETSTORE_DATABASE=command.url)
    assert shown.status == 1
    assert "Importing [red]animals.csv ━" in shown.text
    assert "100%" in shown.text
    assert f"line 4: {CATEGORY}\n" in shown.text
    assert "2 animals added, 3 rows refused.\n" in shown.text


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_import_resumes_and_adds_each_animal_once(
    command: Command, tmp_path: Path, how: signal.Signals
) -> None:
    file, refused = many_animals(tmp_path), tmp_path / "refused.csv"
    # More messages than fit into a pipe: until they are read, the import cannot go on.
    nameless = range(2_000, 3_000)
    text = file.read_text()
    for n in nameless:
        text = text.replace(f"\nanimal {n},", "\n,")
    file.write_text(text)
    arguments = ("pets", "import", str(file), "--refused", str(refused))
    command.make_store()
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "petstore",
            *arguments,
            "--database",
            f"sqlite:///{command.database}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert within(30, lambda: rows_done(command) == nameless.stop)
        process.send_signal(how)
        _, errors = process.communicate()
    assert process.returncode == (1 if how == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in errors
    assert (GO_ON in errors) == (how == signal.SIGINT)
    assert rows_done(command) == nameless.stop

    result = command(*arguments)
    assert result.exit_code == 1
    assert result.stdout == (
        "Resumed after 3,000 rows imported earlier.\n"
        f"{MANY - 3_000:,} animals added, 1,000 rows refused.\n"
    )
    assert result.stderr.splitlines() == [f"line {n + 2}: {NAME}" for n in nameless]
    assert refused.read_text() == HEADER + "".join(f",{n},sold\n" for n in nameless)
    names = [name for name, _, _ in imported(command)]
    assert names == [f"animal {n}" for n in range(MANY) if n not in nameless]


def test_an_import_waits_for_disk_space_and_says_so(command: Command, tmp_path: Path) -> None:
    command.make_store()
    file, room = many_animals(tmp_path), getrlimit(RLIMIT_FSIZE)
    with full_disk():
        process = subprocess.Popen(
            [sys.executable, "-m", "petstore", "pets", "import", str(file)],
            env={**os.environ, "PETSTORE_DATABASE": f"sqlite:///{command.database}"},
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Waiting up to 300 s: the database is not ")
        prlimit(process.pid, RLIMIT_FSIZE, room)
        assert process.wait(60) == 0
    assert len(imported(command)) == MANY


def test_an_import_and_a_running_service_take_turns(start: StartServer, tmp_path: Path) -> None:
    server = start()
    headers = {"Authorization": f"Bearer {server.issue()}"}
    arguments = ("pets", "import", str(many_animals(tmp_path)), "--database", server.database)
    with (
        httpx.Client(base_url=server.url, headers=headers) as client,
        subprocess.Popen(
            [sys.executable, "-m", "petstore", *arguments], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        created = []
        while process.poll() is None:
            response = client.post("/v1/pets", json={"name": "new", "categoryId": -1})
            assert response.status_code == 201
            created.append(response.json()["id"])
        assert process.returncode == 0
        assert process.stdout is not None
        assert process.stdout.read() == f"{MANY:,} animals added, 0 rows refused.\n"
    assert server.stop() == 0
    found = imported_ids(Command(tmp_path / "petstore.db"))
    assert len(found) == MANY + len(created)
    assert set(created) <= found
