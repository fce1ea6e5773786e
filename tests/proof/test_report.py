"""The page about reliability is what the saved results say, and these are of every experiment."""

import msgspec
import pytest

from proof.experiment import Experiment
from proof.experiments import EXPERIMENTS
from proof.report import REPORT, RESULTS, Outcome, Results, not_tried, one_line, report


@pytest.fixture(scope="module")
def saved() -> Results:
    """The run that was saved."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def test_the_page_matches_the_report_of_the_saved_run(saved: Results) -> None:
    assert REPORT.read_text() == report(saved)


def test_the_saved_run_has_every_current_experiment(saved: Results) -> None:
    promised = [(one.name, one.promise, one.method) for one in EXPERIMENTS]
    assert [(one.name, one.promise, one.method) for one in saved.outcomes] == promised


def test_a_report_names_broken_promises_and_claims_no_skipped_ones() -> None:
    kept = Outcome(
        name="a storm",
        promise="The roof stays.",
        method="Wind.",
        seconds=12.3,
        seen={"kills": 1_234},
        broken=[],
        skipped=["hail: it is summer"],
    )
    broken = msgspec.structs.replace(kept, name="an earthquake", broken=["the roof is gone"])
    eclipse = Experiment("an eclipse", "It ends.", "The moon.", lambda _: None)
    run = Results(
        date="2026-11-22",
        machine="2 cores, Example",
        system="Linux 6.1",
        load_average=0.5,
        versions={"Petstore": "1.0.0"},
        seed=7,
        minutes=10,
        seconds=605,
        outcomes=[kept, not_tried(eclipse, "needs 60 s, and 12 s were left")],
    )
    assert run.is_kept
    page = report(run)
    assert "- an eclipse: needs 60 s, and 12 s were left." in page
    assert "- a storm: hail: it is summer." in page
    assert "## An eclipse" not in page
    assert "Every promise that was tried was kept." in page
    fallen = msgspec.structs.replace(run, outcomes=[kept, broken])
    assert not fallen.is_kept
    assert "**Broken: an earthquake.**" in report(fallen)
    assert "- the roof is gone" in report(fallen)
    assert one_line(broken).startswith("BROKEN")


def test_experiments_with_one_promise_share_a_section_without_details(saved: Results) -> None:
    seen = {"kills": 3, "p50 beside nobody, ms": 2.0}
    one = Outcome("a storm, north", "The roof stays.", "Wind.", 1, seen, [], [])
    other = msgspec.structs.replace(one, name="a storm, south", seen={"kills": 4, "rain": 0.5})
    page = report(msgspec.structs.replace(saved, outcomes=[one, other]))
    section = page.partition("## A storm\n")[2]
    assert section.count("The roof stays.") == 1
    assert "| Seen | North | South |\n|---|---:|---:|\n| kills | 3 | 4 |" in section
    assert section.endswith("| rain |  | 0.5 |\n")
    assert "p50" not in page
