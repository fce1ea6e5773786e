"""The lock files: from anywhere the same packages, and each with its reason."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()
NAMES = (
    *("requirements.lock", "requirements-tracing.lock", "requirements-mcp.lock"),
    *("requirements-dev.lock", "requirements-pipelines.lock"),
)


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement)[0]).lower()


def pins(lock: str) -> dict[str, str]:
    """Return each requirement of a lock file, whole, by its name."""
    lines = (ROOT / lock).read_text().replace("\\\n", " ").splitlines()
    return {name_of(line): line for line in lines if re.match(r"[a-z0-9]", line)}


@pytest.mark.parametrize("lock", NAMES)
def test_a_lock_file_pins_versions_and_hashes_and_names_no_index(lock: str) -> None:
    assert not re.search("://|--index-url", (ROOT / lock).read_text())
    for name, line in pins(lock).items():
        pin = r"[a-z0-9.-]+(\[\w+\])?==[0-9][^ ]*( ;[^\\]*?)? +--hash=sha256:[0-9a-f]{64}"
        assert re.match(pin, line), name


def test_node_tools_are_pinned_by_hash_and_name_no_registry() -> None:
    lock = json.loads((ROOT / "tests/node/package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert [package for package in packages if "resolved" in package] == []
    assert all(package["integrity"].startswith("sha512-") for package in packages)


def test_the_larger_lock_files_have_the_versions_of_the_smaller_ones() -> None:
    small, *middle, large = (
        {(name, line.split()[0]) for name, line in pins(lock).items()} for lock in NAMES[:-1]
    )
    for each in middle:
        assert small <= each <= large


def test_each_lock_file_has_only_its_own_requirements() -> None:
    project = tomllib.loads(PROJECT)
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    needed = {*map(name_of, project["project"]["dependencies"])} - {"petstore-client"}
    tracing, mcp = ({*map(name_of, extras[name])} for name in ("tracing", "mcp"))
    build, dev, pipelines = (
        {*map(name_of, groups[group])} for group in ("build", "dev", "pipelines")
    )
    small, traced, agents, large, piped = (pins(name).keys() for name in NAMES)
    assert needed | build <= small
    assert not small & (tracing | mcp | dev - {"pyyaml", "anyio", "h11"})
    assert tracing <= traced
    assert mcp <= agents
    assert not traced & mcp
    assert not agents & tracing
    assert dev <= large
    assert pipelines <= piped


def test_every_requirement_has_a_reason() -> None:
    required = re.findall(r'^  "[a-z0-9-]+(?:\[\w+\])?[>=]=.*$', PROJECT, re.MULTILINE)
    assert len(required) > 20
    assert [line for line in required if not re.search(r'", +# \w', line)] == []
