"""What helps people to join says what the code and its tools do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
FORMS = ROOT / ".github/ISSUE_TEMPLATE"


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("github-issue-config", ["config.yml"]),
        ("github-issue-forms", ["bug.yml", "feature.yml", "question.yml"]),
    ],
)
def test_the_issue_forms_are_valid(schema: str, names: list[str]) -> None:
    command = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}")
    files = [FORMS / name for name in names]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_first_change_is_still_there_to_make() -> None:
    (phrase,) = re.findall(r'^git grep -n "(.+)" src tests docs$', GUIDE, re.MULTILINE)
    named = set(re.findall(r"`((?:src|tests)/[\w/]+\.py)`", GUIDE))
    found = {
        str(path.relative_to(ROOT))
        for folder in ("src", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if phrase in path.read_text()
    }
    assert found == named
    (test,) = re.findall(r"pytest tests/categories -k (\w+)", GUIDE)
    assert f"{test}(" in (ROOT / "tests/categories/test_operations.py").read_text()
