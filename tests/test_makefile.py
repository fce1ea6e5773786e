"""What the Makefile says of itself, and what a run of the tests says of those that it skips."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.programs import needs

pytest_plugins = "pytester"
ROOT = Path(__file__).parent.parent


def test_make_help_has_a_line_for_each_target() -> None:
    make = shutil.which("make")
    assert make
    command = [make, "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {name for name, text in (line.split(None, 1) for line in shown.splitlines()) if text}
    first = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert first
    assert listed == set(first[1].split())


def test_skipped_tests_are_reported_with_the_command_that_enables_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    pytester.makeconftest((ROOT / "tests/conftest.py").read_text())
    skipping = f"pytest.skip({needs('a browser')!r})"
    pytester.makepyfile(f"""
        import pytest
        def test_page(): {skipping}
        def test_other_page(): {skipping}
    """)
    lines = pytester.runpytest_subprocess("-q").outlines
    assert "Not run: 2 × needs a browser: make browser" in lines
