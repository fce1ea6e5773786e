"""The page about reliability is what the saved results say, and these are of every experiment."""

import msgspec
import pytest

from proof.experiment import Experiment
from proof.experiments import EXPERIMENTS
from proof.report import REPORT, RESULTS, Outcome, Results, not_tried, one_line, report

KEPT = Outcome(
    name="a storm",
    promise="The roof stays.",
    method="Wind.",
    seconds=12.3,
    seen={"kills": 1_234, "p99, ms": 12.345},
    broken=[],
    skipped=["hail: it is summer"],
)
NOT_TRIED = not_tried(
    Experiment("an eclipse", "It ends.", "The moon.", lambda _: None),
    "needs 60 s, and 12 s were left",
)
BROKEN = msgspec.structs.replace(KEPT, name="an earthquake", broken=["the roof is gone"])


def results(*outcomes: Outcome) -> Results:
    return Results(
        date="2026-11-22",
        machine="2 cores, Example",
        system="Linux 6.1",
        load_average=0.5,
        versions={"Petstore": "1.0.0"},
        seed=7,
        minutes=10,
        seconds=605,
        outcomes=list(outcomes),
    )


@pytest.fixture(scope="module")
def saved() -> Results:
    """The run that was saved."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def test_the_page_is_the_report_on_the_saved_run(saved: Results) -> None:
    assert REPORT.read_text() == report(saved)


def test_the_saved_run_has_every_experiment_as_it_is(saved: Results) -> None:
    promised = [(one.name, one.promise, one.method) for one in EXPERIMENTS]
    assert [(one.name, one.promise, one.method) for one in saved.outcomes] == promised


def test_a_report_has_counts_skips_and_the_machine() -> None:
    page = report(results(KEPT))
    assert "| kills | 1,234 |\n| p99, ms | 12.3 |" in page
    assert "Skipped: hail: it is summer." in page
    assert "2026-11-22, 10 minutes (10 were given), seed 7" in page
    assert "Every promise was kept." in page
    assert results(KEPT).is_kept


def test_a_report_names_what_was_broken() -> None:
    page = report(results(KEPT, BROKEN))
    assert "**Broken: an earthquake.**" in page
    assert "- the roof is gone" in page
    assert not results(KEPT, BROKEN).is_kept


def test_a_report_lists_what_was_skipped_and_why_and_does_not_claim_it() -> None:
    asleep, away = (
        msgspec.structs.replace(NOT_TRIED, name=name) for name in ("an eclipse", "a comet")
    )
    page = report(results(KEPT, asleep, away))
    assert "- an eclipse; a comet: needs 60 s, and 12 s were left." in page
    assert "- a storm: hail: it is summer." in page
    assert "| an eclipse | 0 s | skipped |" in page
    assert "## An eclipse" not in page
    assert "Every promise that was tried was kept." in page


def test_a_report_that_lacks_nothing_lists_no_skips() -> None:
    assert "Skipped" not in report(results(msgspec.structs.replace(KEPT, skipped=[])))


def test_a_line_tells_the_verdict_the_time_and_the_counts() -> None:
    assert one_line(KEPT).split() == ["kept", "a", "storm", "12", "s", "1,234", "kills"]
    assert one_line(BROKEN).startswith("BROKEN")
    nothing = msgspec.structs.replace(KEPT, seen={})
    assert one_line(nothing).startswith("skipped")
