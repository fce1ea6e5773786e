"""Help: there for every command, and quick."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from petstore.cli.main import main
from petstore.settings import SECTIONS, Settings
from support.command import Command

SLOW = {
    *("asyncio", "apsw", "asyncpg", "redis", "httptools", "http.client"),
    *("petstore.app", "petstore.backends", "petstore_client"),
}


def words_of(command: click.Command) -> Iterator[tuple[str, ...]]:
    """Yield what stands after ``petstore`` for a command and for each below it."""
    yield ()
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from ((name, *words) for words in words_of(part))


COMMANDS = [*words_of(main)]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_has_a_help_text(command: Command, arguments: tuple[str, ...]) -> None:
    text = command.succeed(*arguments, "-h", COLUMNS="80")
    assert text.startswith(f"Usage: main {' '.join(arguments)}".rstrip())
    options = re.findall(r"^  (?:-\w, )?--[\w-]+", text, re.MULTILINE)
    explained = re.findall(r"^  (?:-\w, )?--[^\n]*?(?:  |\n {10,})\S", text, re.MULTILINE)
    assert options
    assert len(options) == len({*options})
    assert len(explained) == len(options)
    lines = text.partition("\n\n")[2].splitlines()
    # No sentence and no option ends in the middle.
    assert [line for line in lines if re.search(r"(\.\.\.|…|--[a-z-]*-)$", line)] == []
    assert [line for line in lines if len(line) > 80] == []


def test_the_help_of_serve_has_every_setting_in_one_section(command: Command) -> None:
    sections = command.succeed("serve", "--help").split("\n\n")
    titles = [section.partition(":")[0] for section in sections]
    assert titles[2:] == ["Options", *SECTIONS]
    listed = [setting for settings in SECTIONS.values() for setting in settings]
    assert sorted(listed) == sorted(field.name for field in fields(Settings))
    for title, section in zip(titles, sections, strict=True):
        options = re.findall(r"^  --([\w-]+)", section, re.MULTILINE)
        if title in SECTIONS:
            assert [option.replace("-", "_") for option in options] == [*SECTIONS[title]]
    assert re.findall(r"^  (?:-h, )?--([\w-]+)", sections[2], re.MULTILINE) == [
        *("demo", "check", "help")
    ]


def test_help_does_not_import_slow_modules(tmp_path: Path) -> None:
    code = (
        "import sys; from petstore.cli.main import main; main(['--help'], standalone_mode=False);"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(ran.stderr.split()) & SLOW == set()
