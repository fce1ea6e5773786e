"""The page on scale has the tables that its script reckons."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_on_scale_has_the_tables_that_the_script_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "bench/scale.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    tables = printed.strip().split("\n\n")
    page = (ROOT / "docs/scale.md").read_text()
    assert [line for table in tables for line in table.splitlines()] == [
        line for line in page.splitlines() if line.startswith("|")
    ]
