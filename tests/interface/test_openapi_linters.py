"""The OpenAPI document as linters see it: Spectral with the rules of IBM, and Redocly.

The files in ``linters`` name the rules that are off, each with its reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from petstore.interface.openapi.document import document
from petstore.interface.operations import OPERATIONS
from support.node import PACKAGES, node

RULES = Path(__file__).parent / "linters"
FAULTY = {
    "openapi": "3.1.0",
    "info": {"title": "Faulty", "version": "1"},
    "servers": [{"url": "https://petstore.test/v1"}],
    "paths": {"/pets": {"get": {"responses": {"200": {"description": ""}}}}},
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the document, and with one that every linter complains about."""
    folder = tmp_path_factory.mktemp("documents")
    described = document("https://petstore.test", OPERATIONS)
    for name, content in (("petstore", described), ("faulty", FAULTY)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def spectral(documents: Path) -> dict[str, list[Any]]:
    """What Spectral finds in each document: errors, warnings and hints."""
    script = str(PACKAGES / "@stoplight/spectral-cli/dist/index.js")
    options = ("--ruleset", str(RULES / "spectral.yaml"), "--format", "json")
    path = {"NODE_PATH": str(PACKAGES)}
    run = node(script, "lint", "petstore.json", "faulty.json", *options, cwd=documents, env=path)
    assert run.stdout.startswith("["), run.stderr
    found: dict[str, list[Any]] = {"petstore": [], "faulty": []}
    for finding in json.loads(run.stdout):
        found[Path(finding["source"]).stem].append(finding)
    return found


def test_spectral_and_the_rules_of_ibm_find_nothing(spectral: dict[str, list[Any]]) -> None:
    assert spectral["petstore"] == []


def test_spectral_applies_its_own_rules_and_those_of_ibm(spectral: dict[str, list[Any]]) -> None:
    rules = {finding["code"] for finding in spectral["faulty"]}
    assert {"operation-operationId", "ibm-operation-summary"} <= rules


def test_redocly_finds_nothing(documents: Path) -> None:
    assert redocly(documents / "petstore.json") == []


def test_redocly_applies_the_recommended_rules(documents: Path) -> None:
    rules = {problem["ruleId"] for problem in redocly(documents / "faulty.json")}
    assert {"security-defined", "operation-4xx-response"} <= rules


def redocly(path: Path) -> list[dict[str, Any]]:
    """Return what Redocly finds in a document: errors and warnings."""
    options = ("--config", str(RULES / "redocly.yaml"), "--format", "json")
    script = str(PACKAGES / "@redocly/cli/bin/cli.js")
    run = node(script, "lint", path.name, *options, cwd=path.parent)
    assert run.stdout.startswith("{"), run.stderr
    problems: list[dict[str, Any]] = json.loads(run.stdout)["problems"]
    return problems
