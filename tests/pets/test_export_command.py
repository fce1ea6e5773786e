"""``petstore pets export``: every animal, in a file that can be imported again."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import Command
from support.interrupts import interrupted_at_once
from support.permissions import umask
from support.process import petstore
from support.terminal import shown_on_terminal

CSV = """\
id,name,categoryId,status
1,Rex,1,sold
2,"the ""first"", Ada",-9223372036854775808,
3,日本語,9223372036854775807,available
"""


@pytest.fixture
def stocked(command: Command, tmp_path: Path) -> Command:
    """The command, on a store with the animals of ``CSV``."""
    file = tmp_path / "stock.csv"
    file.write_text(CSV, encoding="utf-8")
    command.succeed("pets", "import", str(file))
    return command


def test_a_mistyped_store_leaves_an_earlier_export_unchanged(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("of yesterday")
    assert "there is no store at" in command.fail("pets", "export", str(file), status=1)
    assert file.read_text() == "of yesterday"


def test_a_file_that_cannot_be_written_is_named(command: Command, tmp_path: Path) -> None:
    command.make_store()
    file = tmp_path / "no folder" / "animals.csv"
    words = command.fail("pets", "export", str(file), status=1)
    assert words == f"{file}: No such file or directory"


def test_an_interrupted_export_leaves_an_earlier_one_unchanged(
    stocked: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("of yesterday")
    with interrupted_at_once():
        words = stocked.fail("pets", "export", str(file), status=1)
        assert words == f"interrupted: {file} is unchanged"
        words = stocked.fail("pets", "export", status=1)
        assert words == "interrupted: the output is incomplete"
    assert file.read_text() == "of yesterday"


def test_standard_output_has_only_the_animals(stocked: Command) -> None:
    result = stocked("pets", "export")
    assert (result.exit_code, result.stdout) == (0, CSV)
    assert result.stderr == "3 animals exported.\n"


def test_animals_can_be_printed_as_json_lines(stocked: Command) -> None:
    assert stocked.succeed("pets", "export", "--format", "jsonl").splitlines() == [
        '{"id": 1, "name": "Rex", "categoryId": 1, "status": "sold"}',
        '{"id": 2, "name": "the \\"first\\", Ada", "categoryId": -9223372036854775808}',
        '{"id": 3, "name": "日本語", "categoryId": 9223372036854775807, "status": "available"}',
    ]


@pytest.mark.parametrize("name", ["animals.csv", "animals.NDJSON"])
def test_an_export_can_be_imported_elsewhere(stocked: Command, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert stocked.succeed("pets", "export", str(file)) == ""
    other = Command(tmp_path / "other.db")
    assert other.succeed("pets", "import", str(file)) == "3 animals added, 0 rows refused.\n"
    assert other.succeed("pets", "export") == CSV


def test_a_terminal_shows_the_progress_of_an_export(stocked: Command, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    shown = shown_on_terminal("pets", "export", str(file), PETSTORE_DATABASE=stocked.url)
    assert shown.status == 0
    assert "Exporting ━" in shown.text
    assert "3 animals exported.\n" in shown.text
    assert file.read_text(encoding="utf-8") == CSV


def test_a_pipe_gets_utf_8_in_any_locale_and_no_progress_bar(
    stocked: Command, tmp_path: Path
) -> None:
    arguments = ("pets", "export", "--database", f"sqlite:///{stocked.database}")
    result = petstore(*arguments, cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"}, encoding="utf-8")
    assert (result.returncode, result.stdout, result.stderr) == (0, CSV, "3 animals exported.\n")


def test_a_reader_that_closes_the_pipe_ends_the_export_quietly(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "many.csv"
    file.write_text("name,categoryId\n" + "".join(f"animal {n},{n}\n" for n in range(9000)))
    command.succeed("pets", "import", str(file))
    arguments = ("pets", "export", "--database", f"sqlite:///{command.database}")
    with subprocess.Popen(
        [sys.executable, "-m", "petstore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "id,name,categoryId,status\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_an_export_that_fails_midway_leaves_the_previous_one(
    stocked: Command, tmp_path: Path
) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("of yesterday")
    stocked.database.write_bytes(stocked.database.read_bytes()[:8192])
    stocked.fail("pets", "export", str(file), status=1)
    assert file.read_text() == "of yesterday"
    assert [path.name for path in tmp_path.glob("animals*")] == ["animals.csv"]


def test_only_the_owner_can_read_an_export(stocked: Command, tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text("of yesterday")
    file.chmod(0o644)
    with umask(0):
        stocked.succeed("pets", "export", str(file))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_symlink_as_export_file_is_refused(stocked: Command, tmp_path: Path) -> None:
    elsewhere, part = tmp_path / "elsewhere", tmp_path / "animals.csv.part"
    elsewhere.write_text("of somebody else")
    part.symlink_to(elsewhere)
    words = stocked.fail("pets", "export", str(tmp_path / "animals.csv"), status=1)
    assert words == f"{part}: it is a link, or not your file; remove it"
    assert elsewhere.read_text() == "of somebody else"


def test_a_symlink_in_place_of_an_export_is_replaced(stocked: Command, tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "animals.csv"
    elsewhere.write_text("of somebody else")
    file.symlink_to(elsewhere)
    stocked.succeed("pets", "export", str(file))
    assert file.read_text(encoding="utf-8") == CSV
    assert elsewhere.read_text() == "of somebody else"


EVIL = "\x1b]0;owned\x07\x9b2J\x7f\u202e\ttwo\nlines"


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_an_exported_name_cannot_control_the_terminal(
    command: Command, tmp_path: Path, file_format: str
) -> None:
    file = tmp_path / "evil.jsonl"
    file.write_text(json.dumps({"name": EVIL, "categoryId": 1}))
    command.succeed("pets", "import", str(file))
    arguments = ("pets", "export", "--format", file_format)
    raw = shown_on_terminal(*arguments, PETSTORE_DATABASE=command.url).raw
    assert not set(raw) & {"\x07", "\x7f", "\x9b", "\u202e"}
    assert "\x1b]0;" not in raw
    assert r"]0;owned" in raw
    assert r"\u202e" in raw
    written = EVIL if file_format == "csv" else json.dumps(EVIL, ensure_ascii=False)
    assert written in command.succeed(*arguments)


def test_names_that_look_like_formulas_are_exported_unchanged(
    command: Command, tmp_path: Path
) -> None:
    command.succeed("pets", "import", str(formulas(tmp_path)))
    exported = command.succeed("pets", "export")
    assert [row["name"] for row in csv.DictReader(io.StringIO(exported, newline=""))] == FORMULAS


def test_names_that_look_like_formulas_are_escaped_for_a_spreadsheet(
    command: Command, tmp_path: Path
) -> None:
    command.succeed("pets", "import", str(formulas(tmp_path)))
    exported = command.succeed("pets", "export", "--spreadsheet-safe")
    rows = list(csv.DictReader(io.StringIO(exported, newline="")))
    assert [row["name"] for row in rows] == [
        "'=1+1",
        # A spreadsheet sees another cell after the first character.
        "'\t'=1",
        "Rex = 1",
    ]
    assert {row["categoryId"] for row in rows} == {"-1"}


def test_only_csv_is_escaped_for_a_spreadsheet(command: Command, tmp_path: Path) -> None:
    command.make_store()
    file = tmp_path / "animals.jsonl"
    words = command.fail("pets", "export", str(file), "--spreadsheet-safe", status=2)
    assert words == "--spreadsheet-safe is for CSV"
    assert not file.exists()


FORMULAS = ["=1+1", "\t=1", "Rex = 1"]


def formulas(folder: Path) -> Path:
    """Write a file of animals with these names."""
    file = folder / "formulas.jsonl"
    lines = [json.dumps({"name": name, "categoryId": -1}) for name in FORMULAS]
    file.write_text("\n".join(lines))
    return file
