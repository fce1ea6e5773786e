"""Help, which is quick, and JSON: there for every command. Shells complete commands."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from petstore.cli.main import main
from petstore.settings import SECTIONS, Settings
from support.command import Command

SLOW = {
    *("asyncio", "apsw", "asyncpg", "redis", "httptools", "http.client"),
    *("petstore.app", "petstore.backends", "petstore_client"),
}


def commands_in(
    group: click.Group, *before: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group below ``group``, with what stands after ``petstore``."""
    for name, command in group.commands.items():
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands_in(command, *before, name)


COMMANDS = [*commands_in(main)]


def test_the_help_of_serve_has_every_setting_in_one_section(command: Command) -> None:
    sections = command.succeed("serve", "--help").split("\n\n")
    titles = [section.partition(":")[0] for section in sections]
    assert titles[2:] == ["Options", *SECTIONS.values()]
    others, *listed = (
        re.findall(r"^  (?:-h, )?--([\w-]+)", section, re.MULTILINE) for section in sections[2:]
    )
    assert others == ["demo", "check", "help"]
    named = [option.replace("-", "_") for options in listed for option in options]
    assert named == [field.name for field in fields(Settings)]
    assert [options[0].replace("-", "_") for options in listed] == [*SECTIONS]


def test_help_does_not_import_slow_modules(tmp_path: Path) -> None:
    code = (
        "import sys; from petstore.cli.main import main; main(['--help'], standalone_mode=False);"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(ran.stderr.split()) & SLOW == set()


@pytest.mark.parametrize("words", [(), *(words for words, _ in COMMANDS)], ids=" ".join)
def test_every_command_has_a_help_text(command: Command, words: tuple[str, ...]) -> None:
    text = command.succeed(*words, "-h", COLUMNS="80")
    assert text.startswith(f"Usage: main {' '.join(words)}".rstrip())
    options = re.findall(r"^  (?:-\w, )?--[\w-]+", text, re.MULTILINE)
    explained = re.findall(r"^  (?:-\w, )?--[^\n]*?(?:  |\n {10,})\S", text, re.MULTILINE)
    assert options
    assert len(options) == len({*options})
    assert len(explained) == len(options)
    lines = text.partition("\n\n")[2].splitlines()
    # No sentence and no option ends in the middle.
    assert [line for line in lines if re.search(r"(\.\.\.|…|--[a-z-]*-)$", line)] == []
    assert [line for line in lines if len(line) > 80] == []


def test_every_command_prints_json_unless_it_has_a_reason() -> None:
    without = {
        " ".join(words)
        for words, command in COMMANDS
        if not isinstance(command, click.Group)
        and not any("--json" in parameter.opts for parameter in command.params)
    }
    # The first three run until they are stopped; the others write a file, or CSV.
    assert without == {
        *("serve", "deliver", "mcp", "backup", "restore", "pets export", "orders export")
    }


# Shells complete the command line, as docs/client.md says


def completed(words: str, **environment: str) -> list[str]:
    """Return what a shell may put in the place of the last of ``words``."""
    asked = {
        "_PETSTORE_COMPLETE": "bash_complete",
        "COMP_WORDS": f"petstore {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    result = CliRunner().invoke(main, [], prog_name="petstore", env=asked | environment)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ser", ["serve"]),
        ("pets li", ["list"]),
        ("pets list --status s", ["sold"]),
        ("keys create --plan e", ["enterprise"]),
        ("events listen --fr", ["--from-start"]),
        ("pets list --url http://localhost --lim", ["--limit"]),
    ],
)
def test_commands_options_and_choices_are_completed_despite_wrong_variables(
    words: str, expected: list[str]
) -> None:
    assert completed(words) == expected
    wrong = {"PETSTORE_KEY_FILE": "/none", "PETSTORE_NO_SUCH_SETTING": "1"}
    assert completed(words, **wrong) == expected
