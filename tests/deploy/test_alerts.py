"""``deploy/prometheus``: what wakes an operator, and what does not."""

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from petstore.observability.metrics import METRICS
from support.deploy_files import DEPLOY
from support.programs import needs

FOLDER = DEPLOY / "prometheus"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
TESTS = sorted(path.name for path in FOLDER.glob("*_test.yml"))
ENDINGS = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}
SERIES = {
    "up": {"job", "instance"},
    **{
        f"{metric.name}{ending}": {*metric.labels, *(["le"] if ending == "_bucket" else [])}
        for metric in METRICS
        for ending in ENDINGS[metric.kind]
    },
    **{rule["record"]: {"job"} for rule in RULES if "record" in rule},
}
NAME = re.compile(r"\b((?:job:)?petstore_[\w:]+|process_\w+|up)\b(?:\{(.*?)\})?")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_has_a_summary_a_severity_a_runbook_and_a_test(alert: dict[str, Any]) -> None:
    name, labels = alert["alert"], alert["labels"]
    assert labels in ({"severity": "page"}, {"severity": "ticket"})
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
    fires = f'{{alertname="{name}",severity="{labels["severity"]}"}}'
    assert any(fires in (FOLDER / test).read_text() for test in TESTS)


def test_the_runbook_has_a_section_for_each_alert_and_no_other() -> None:
    page = (DEPLOY.parent / "docs/runbook.md").read_text()
    sections = re.findall(r"^## (Petstore\w+)$", page, re.MULTILINE)
    assert sections == list(dict.fromkeys(alert["alert"] for alert in ALERTS))


def test_the_runbook_searches_the_log_for_messages_that_the_service_writes() -> None:
    page = (DEPLOY.parent / "docs/runbook.md").read_text()
    source = "".join(path.read_text() for path in (DEPLOY.parent / "src").rglob("*.py"))
    patterns = re.findall(r"^LOG \| grep (?:-\w+ )?'?\(?([^'()#]+)", page, re.MULTILINE)
    patterns += re.findall(r'contains\("([^"]+)"\)', page)
    searched = {text.strip() for pattern in patterns for text in pattern.split("|")}
    assert "cannot publish events to the feed" in searched
    assert [text for text in searched if text not in source] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_uses_only_metrics_that_exist(rule: dict[str, Any]) -> None:
    asked = NAME.findall(rule["expr"])
    assert asked
    for name, selectors in asked:
        assert name in SERIES
        labels = set(re.findall(r"(\w+)[!=~]+\"", selectors))
        assert labels <= SERIES[name] | {"job", "instance"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason=needs("promtool"))
@pytest.mark.parametrize("name", TESTS)
def test_alerts_fire_when_they_should_and_a_healthy_restart_fires_nothing(name: str) -> None:
    tried = subprocess.run(
        ["promtool", "test", "rules", name],  # noqa: S607 - wherever it is installed
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
