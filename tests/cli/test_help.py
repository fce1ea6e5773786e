"""Help: there for every command, and quick."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from petstore import __version__
from petstore.cli.main import main
from petstore.cli.options import SECTIONS
from petstore.cli.output import SectionedGroup
from petstore.settings import Settings
from support.command import Command
from support.process import petstore

COMMANDS = [
    (),
    ("serve",),
    ("reload",),
    ("keys",),
    *(("keys", name) for name in ("create", "list", "show", "history")),
    *(("keys", name) for name in ("change", "rotate", "revoke", "unban")),
    *(("copy",), ("backup",), ("restore",)),
    ("pets",),
    *(("pets", name) for name in ("list", "add", "show", "set-status", "import", "export")),
    ("orders",),
    *(("orders", name) for name in ("place", "list", "show", "approve", "deliver", "cancel")),
    ("categories",),
    *(("categories", name) for name in ("list", "add", "show", "change", "remove")),
    *(("events",), ("events", "listen")),
]
SLOW = {"asyncio", "apsw", "asyncpg", "redis", "httptools", "rich", "urllib3", "petstore.app"}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself(
    command: Command, arguments: tuple[str, ...], option: str
) -> None:
    text = command.succeed(*arguments, option)
    assert text.startswith(f"Usage: main {' '.join(arguments)}".rstrip())
    options = re.findall(r"^  (?:-\w, )?--", text, re.MULTILINE)
    explained = re.findall(r"^  (?:-\w, )?--[^\n]*?(?:  |\n {10,})\S", text, re.MULTILINE)
    assert options
    assert len(explained) == len(options)


def test_the_commands_are_listed_in_sections(command: Command) -> None:
    text = command.succeed("--help")
    titles = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    assert titles == [
        "Options",
        "Run the service",
        "Work on its store",
        "Ask a running service, with the key in PETSTORE_KEY",
    ]
    listed = re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)
    assert sorted(listed) == sorted(main.commands)


def test_a_command_without_a_section_is_listed_last() -> None:
    group = SectionedGroup("shop")
    group.add_command(click.Command("other", help="Another one."))
    group.add_section("First", click.Command("one", help="The first. Of several."))
    text = CliRunner().invoke(group, ["--help"]).output
    assert text.endswith("First:\n  one  The first.\n\nOther commands:\n  other  Another one.\n")


def test_version_prints_the_version_of_the_package(command: Command) -> None:
    assert command.succeed("--version") == f"petstore, version {__version__}\n"


def test_the_command_is_called_by_its_name(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("petstore")
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("Usage: petstore [OPTIONS] COMMAND [ARGS]...")
    assert petstore("--help", cwd=tmp_path).stdout.count("\n") == shown.stdout.count("\n")


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


def test_help_loads_nothing_that_takes_its_time(tmp_path: Path) -> None:
    code = (
        "import sys; from petstore.cli.main import main; main(['--help'], standalone_mode=False);"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(ran.stderr.split()) & SLOW == set()
