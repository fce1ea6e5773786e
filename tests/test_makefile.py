"""What the Makefile says of itself, and what a run of the tests says of those that it skips."""

import re
import shutil
import subprocess
from pathlib import Path

pytest_plugins = "pytester"
ROOT = Path(__file__).parent.parent


def test_make_help_has_a_line_for_each_target_and_newcomers_type_no_other() -> None:
    make = shutil.which("make")
    assert make
    command = [make, "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {name for name, text in (line.split(None, 1) for line in shown.splitlines()) if text}
    first = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert first
    assert listed == set(first[1].split())
    typed = set(re.findall(r"\bmake ([a-z./-]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert {"serve", "check", "test"} <= typed <= listed | {".venv/installed-dev"}
