"""What the statements of a list read is found in the log of PostgreSQL, and judged."""

from pathlib import Path
from random import Random

import pytest

from proof.experiment import Trial
from proof.experiments.plans import lists, look
from proof.logged_plans import LoggedPlans, Read

ENTRY = """\
2026-11-23 09:28:19.400 UTC [17519] LOG:  duration: 0.031 ms  plan:
\t{
\t  "Query Text": "SELECT id FROM pets\\n LIMIT $1",
\t  "Plan": {
\t    "Node Type": "Limit", "Actual Rows": 20.00, "Actual Loops": 1,
\t    "Shared Hit Blocks": 3, "Shared Read Blocks": 4,
\t    "Plans": [
\t      {
\t        "Node Type": "Index Scan", "Relation Name": "pets",
\t        "Actual Rows": 10.00, "Actual Loops": 2, "Rows Removed by Filter": 500
\t      }
\t    ]
\t  }
\t}
"""
OTHER = "2026-11-23 09:28:19.400 UTC [17519] LOG:  checkpoint starting: time\n"
READ = Read("SELECT id FROM pets\n LIMIT $1", 7, 1_020)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(10, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_each_logged_statement_is_read_once_with_its_filtered_rows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(ENTRY)
    plans = LoggedPlans(log)
    assert plans.read() == []
    for _ in range(2):
        log.write_text(log.read_text() + OTHER + ENTRY)
        assert plans.read() == [READ]


def test_every_list_with_a_cursor_is_checked() -> None:
    assert {one.table for one in lists()} == {
        *("pets", "orders", "webhook_deliveries", "categories", "api_keys"),
    }


def test_a_page_that_reads_too_many_rows_breaks_the_promise(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.experiments.plans._MAX_BLOCKS", 0)
    monkeypatch.setattr("proof.experiments.plans._FEW", 50)
    wanted = [one for one in lists() if one.target == "/v1/pets?status=sold&"]
    look(trial, 200, wanted)
    assert trial.seen["lists with outdated statistics"] == 1
    assert trial.seen["lists with current statistics"] == 1
    assert trial.broken[0].startswith("/v1/pets?status=sold& with outdated statistics: ")
    assert len(trial.broken) == 2
