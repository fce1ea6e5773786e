"""Two commands do everything, and what they install is pinned."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.programs import needs

pytest_plugins = "pytester"
ROOT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-pipelines.lock")
EVERY_LOCK = (*LOCKS, "requirements-tracing.lock", "requirements-mcp.lock")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def pins(lock: str) -> dict[str, str]:
    """Return each requirement of a lock file, whole, by its name."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    return {name_of(line): line for line in lines}


@pytest.mark.parametrize("lock", EVERY_LOCK)
def test_every_package_is_pinned_to_a_version_and_its_hashes(lock: str) -> None:
    for name, line in pins(lock).items():
        assert re.match(r"[a-z0-9.-]+==[0-9][^ ]*( ;[^\\]*?)? +--hash=sha256:[0-9a-f]{64}", line), (
            name
        )


@pytest.mark.parametrize("lock", EVERY_LOCK)
def test_a_lock_file_names_no_package_index(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()
    assert "--index-url" not in (ROOT / lock).read_text()


def test_node_tools_are_pinned_by_hash_and_name_no_registry() -> None:
    lock = json.loads((ROOT / "tests/node/package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert [package for package in packages if "resolved" in package] == []
    assert all(package["integrity"].startswith("sha512-") for package in packages)


def test_every_dependency_is_locked() -> None:
    groups = project()["dependency-groups"]
    needed = {name_of(line) for line in project()["project"]["dependencies"] + groups["build"]}
    needed.remove("petstore-client")  # installed from the checkout
    assert needed <= set(pins("requirements.lock"))
    assert needed | {name_of(line) for line in groups["dev"]} <= set(pins("requirements-dev.lock"))
    pipelines = {name_of(line) for line in groups["pipelines"]}
    assert pipelines <= set(pins("requirements-pipelines.lock"))


def test_tests_run_on_the_locked_versions_of_the_service() -> None:
    served, tested = (
        {name: line.split()[0] for name, line in pins(lock).items()} for lock in LOCKS[:2]
    )
    assert served.items() <= tested.items()


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
