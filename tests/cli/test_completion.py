"""Shells complete the command line, as docs/client.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from petstore.cli.main import main

PAGE = Path(__file__).parents[2] / "docs/client.md"


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


def test_bash_completes_a_command_after_the_documented_line(tmp_path: Path) -> None:
    found = re.search(
        r"^.*_PETSTORE_COMPLETE=bash_source petstore.*$", PAGE.read_text(), re.MULTILINE
    )
    assert found
    script = (
        f"{found[0]}\n"
        "COMP_WORDS=(petstore orders pl); COMP_CWORD=2; _petstore_completion petstore\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],  # noqa: S607 - the bash of this machine
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "place\n"
