"""The lock files: from anywhere the same packages, and each with its reason."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()
NAMES = (
    "requirements.lock",
    "requirements-tracing.lock",
    "requirements-mcp.lock",
    "requirements-dev.lock",
)


def versions(name: str) -> dict[str, str]:
    """Return the version of each package in a lock file, with where it is needed."""
    pinned = re.findall(
        r"^([a-z0-9-]+)(?:\[\S+\])?==(.+?) \\$", (ROOT / name).read_text(), re.MULTILINE
    )
    return dict(pinned)


def pairs(versions: dict[str, str]) -> set[tuple[str, str]]:
    """Return each package with its version, without where it is needed."""
    return {(name, pin.partition(" ")[0]) for name, pin in versions.items()}


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in requirements}


def test_the_larger_lock_files_include_the_smaller_ones() -> None:
    small, *middle, large = map(pairs, map(versions, NAMES))
    for each in middle:
        assert small <= each <= large


def test_each_lock_file_has_only_its_own_requirements() -> None:
    project = tomllib.loads(PROJECT)
    needed = named(project["project"]["dependencies"]) - {"petstore-client"}
    extras = project["project"]["optional-dependencies"]
    tracing, mcp = (named(extras[name]) for name in ("tracing", "mcp"))
    build, dev = (named(project["dependency-groups"][group]) for group in ("build", "dev"))
    small, traced, agents, large = (set(versions(name)) for name in NAMES)
    assert needed | build <= small
    assert not small & (tracing | mcp | dev - {"pyyaml", "anyio", "h11"})
    assert tracing <= traced
    assert mcp <= agents
    assert not traced & mcp
    assert not agents & tracing
    assert dev <= large


def test_every_requirement_has_a_reason() -> None:
    required = re.findall(r'^  "[a-z0-9-]+(?:\[\w+\])?[>=]=.*$', PROJECT, re.MULTILINE)
    assert len(required) > 20
    assert [line for line in required if not re.search(r'", +# \w', line)] == []
