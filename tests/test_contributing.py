"""What helps people to join says what the code and its tools do."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from petstore.settings import Settings

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
FORMS = ROOT / ".github/ISSUE_TEMPLATE"


def commands(target: str) -> list[str]:
    """Return what a target of the Makefile runs."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found
    return found[1].replace("$(BIN)", ".venv/bin").split("\n\t")


def test_the_hooks_run_what_make_lint_runs() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in local["hooks"]]
    assert entries == [command.strip() for command in commands("lint")]


def test_the_dev_container_has_the_oldest_python_and_the_port_of_the_service() -> None:
    container: dict[str, Any] = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert container["image"].endswith(f"/python:{oldest}")
    assert container["forwardPorts"] == [Settings().port]
    make, *targets = container["postCreateCommand"].split()
    assert make == "make"
    assert [name for name in targets if f"\n{name}:" not in MAKEFILE] == []


def test_editors_wrap_python_where_ruff_does() -> None:
    section = (ROOT / ".editorconfig").read_text().partition("[*.py]")[2].partition("\n[")[0]
    assert f"max_line_length = {PROJECT['tool']['ruff']['line-length']}\n" in section


@pytest.mark.parametrize(
    ("schema", "names"),
    [("github-issue-config", ["config.yml"]), ("github-issue-forms", ["bug.yml", "feature.yml"])],
)
def test_the_issue_forms_are_valid(schema: str, names: list[str]) -> None:
    command = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}")
    files = [FORMS / name for name in names]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_targets_of_make_that_a_newcomer_types_exist() -> None:
    typed = set(re.findall(r"\bmake ([a-z./-]+)", GUIDE))
    assert {name for name in typed if f"\n{name}:" not in MAKEFILE} == set()
    assert {"serve", "check", "test"} <= typed


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


def test_an_entry_of_the_changelog_has_at_most_two_lines() -> None:
    entries = re.findall(r"^- .*(?:\n  [^| ].*)*", CHANGELOG, re.MULTILINE)
    lines = [line for entry in entries for line in entry.splitlines()]
    assert [entry for entry in entries if entry.count("\n") > 1] == []
    assert [line for line in lines if len(line) > 120] == []


def test_what_breaks_something_comes_first() -> None:
    for section in re.split(r"^##+ ", CHANGELOG, flags=re.MULTILINE):
        breaking = [entry.startswith("**Breaking:**") for entry in section.split("\n- ")[1:]]
        assert breaking == sorted(breaking, reverse=True), section.partition("\n")[0]
