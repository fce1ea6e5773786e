"""The OpenAPI document as linters see it: Spectral with the rules of IBM, and Redocly.

The files in ``linters`` name the rules that are off, each with its reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from petstore.interface.openapi.document import document
from support.programs import PACKAGES, node

RULES = Path(__file__).parent / "linters"
FAULTY = {
    "openapi": "3.1.0",
    "info": {"title": "Faulty", "version": "1"},
    "servers": [{"url": "https://petstore.test/v1"}],
    "paths": {"/pets": {"get": {"responses": {"200": {"description": ""}}}}},
}


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """The folder with the document, and with one that every linter complains about."""
    described = document("https://petstore.test")
    for name, content in (("petstore", described), ("faulty", FAULTY)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_spectral_and_the_rules_of_ibm_find_nothing(documents: Path) -> None:
    script = str(PACKAGES / "@stoplight/spectral-cli/dist/index.js")
    options = ("--ruleset", str(RULES / "spectral.yaml"), "--format", "json")
    path = {"NODE_PATH": str(PACKAGES)}
    run = node(script, "lint", "petstore.json", "faulty.json", *options, cwd=documents, env=path)
    assert run.stdout.startswith("["), run.stderr
    found: dict[str, list[Any]] = {"petstore": [], "faulty": []}
    for finding in json.loads(run.stdout):
        found[Path(finding["source"]).stem].append(finding)
    assert found["petstore"] == []
    rules = {finding["code"] for finding in found["faulty"]}
    assert {"operation-operationId", "ibm-operation-summary"} <= rules


def test_redocly_finds_nothing(documents: Path) -> None:
    options = ("--config", str(RULES / "redocly.yaml"), "--format", "json")
    script = str(PACKAGES / "@redocly/cli/bin/cli.js")
    found = []
    for name in ("petstore.json", "faulty.json"):
        run = node(script, "lint", name, *options, cwd=documents)
        assert run.stdout.startswith("{"), run.stderr
        found.append(json.loads(run.stdout)["problems"])
    assert found[0] == []
    rules = {problem["ruleId"] for problem in found[1]}
    assert {"security-defined", "operation-4xx-response"} <= rules
