"""Clients that generators make of the running service's document, used as they come."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

from support.node import PACKAGES, node
from support.process import ServerProcess

HERE = Path(__file__).parent
DOCUMENT = "/v1/openapi.json"


def python(*arguments: str, cwd: Path) -> str:
    """Run a module of the environment in ``cwd``, and return what it prints."""
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def typescript(script: str, *arguments: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a script in ``cwd`` with Node.js, and return what it prints."""
    run = node(script, *arguments, cwd=cwd, env=env)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def assert_sold_once(outcome: dict[str, Any]) -> None:
    """Hold what a scenario saw to what the service promises."""
    first, second, third, fourth = ids = outcome["ids"]
    assert ids == sorted(set(ids))
    assert outcome["again"] == fourth
    assert outcome["seen"] == [[first, second], [third, fourth]]
    assert outcome["order"] == {"petId": first, "status": "placed"}
    assert outcome["conflict"] == {
        "code": "pet_not_available",
        "message": f"pet {first} is pending; only an available one can be ordered",
        "status": 409,
    }


def test_the_client_of_openapi_python_client_passes_mypy_strict_and_sells_an_animal(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    project = copytree(HERE / "python", tmp_path / "python")
    generate = ("generate", "--url", f"{server.url}{DOCUMENT}", "--output-path", "pet_shop")
    options = ("--meta", "none", "--config", "generator.yaml", "--fail-on-warning")
    python("-m", "openapi_python_client", *generate, *options, cwd=project)
    python("-m", "mypy", "--strict", "--config-file=", "pet_shop", "scenario.py", cwd=project)
    printed = python("scenario.py", f"{server.url}/v1", token, "4101", cwd=project)
    assert_sold_once(json.loads(printed))


def test_the_clients_of_openapi_ts_and_openapi_typescript_pass_tsc_strict_and_sell_an_animal(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    project = copytree(HERE / "typescript", tmp_path / "typescript")
    packages = project / "node_modules"
    packages.symlink_to(PACKAGES)
    document = f"{server.url}{DOCUMENT}"
    typescript(
        f"{packages}/@hey-api/openapi-ts/bin/run.js",
        cwd=project,
        env={"PETSTORE_DOCUMENT": document},
    )
    typescript(f"{packages}/openapi-typescript/bin/cli.js", document, "-o", "paths.ts", cwd=project)
    typescript(f"{packages}/typescript/bin/tsc", cwd=project)
    printed = typescript("scenario.ts", f"{server.url}/v1", token, "4102", cwd=project)
    assert_sold_once(json.loads(printed))
    printed = typescript("sale.ts", f"{server.url}/v1", token, "4103", cwd=project)
    assert json.loads(printed) == {"status": "placed", "code": "pet_not_available"}
