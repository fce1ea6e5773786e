"""The report of a run, in Markdown, from its results."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import msgspec

from proof.experiment import Experiment

_ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results.json"
REPORT = _ROOT / "docs" / "reliability.md"

_HEAD = """\
# Reliability

What the service promises when its parts fail, how we test each promise, and the results. A run of
the experiments in `proof/` writes this page. Do not edit it.

```sh
make prove                # all experiments, 50 minutes
make prove MINUTES=10     # the same, shorter: fewer kills, fewer messages
make prove ONLY="kill -9" SEED=7   # some of them, with the random choices of an earlier run
```

Everything runs on the loopback network, on real processes and real files. PostgreSQL and Redis are
the servers of the test suite. A run needs Linux and Python, a C compiler for the disk faults, and
root to mount a small disk. If one of these is missing, the run skips the parts that need it. It
also skips what does not fit into its minutes. This page lists what the run skipped, and why. If a
promise is broken, the run ends with status 1. The seed repeats the random choices, but not the
timing of processes, so a second run may take another course.

## This run

"""


class Outcome(msgspec.Struct, frozen=True):
    """One experiment: what it promises, how it is tried, and what was seen in how many seconds."""

    name: str
    promise: str
    method: str
    seconds: float
    seen: dict[str, float]
    broken: list[str]
    skipped: list[str]


def not_tried(experiment: Experiment, reason: str) -> Outcome:
    """Return the outcome of an experiment that did not run."""
    promise, method = experiment.promise, experiment.method
    return Outcome(experiment.name, promise, method, 0, {}, [], [reason])


class Results(msgspec.Struct, frozen=True):
    """A whole run."""

    date: str
    machine: str
    system: str
    load_average: float
    versions: dict[str, str]
    seed: int
    minutes: float
    seconds: float
    outcomes: list[Outcome]

    @property
    def is_kept(self) -> bool:
        """Whether every promise was kept."""
        return not any(outcome.broken for outcome in self.outcomes)


def save(results: Results) -> None:
    """Write the results, and the page about them."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    REPORT.write_text(report(results))


def report(results: Results) -> str:
    """Return the whole page."""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    took = f"{results.seconds / 60:.0f} minutes ({results.minutes:g} were given)"
    lines = [
        f"- {results.date}, {took}, seed {results.seed}.",
        f"- {results.machine}; {results.system}; load average before {results.load_average:.1f}.",
        f"- {versions}.",
        f"- In all: {_totals(results)}.",
        f"- {_verdict(results)}",
    ]
    tried = [outcome for outcome in results.outcomes if _is_tried(outcome)]
    parts = ("\n".join(lines), _overview(results), *_skips(results), *map(_section, tried))
    return _HEAD + "\n\n".join(parts) + "\n"


def _is_tried(outcome: Outcome) -> bool:
    return bool(outcome.seen or outcome.broken)


def _skips(results: Results) -> Iterator[str]:
    """Yield the list of what was skipped for each reason, if anything was."""
    skips: dict[str, list[str]] = {}
    for outcome in results.outcomes:
        for reason in outcome.skipped:
            skips.setdefault(reason, []).append(outcome.name)
    if skips:
        yield "**Skipped in this run:**"
        yield "\n".join(f"- {'; '.join(names)}: {reason}." for reason, names in skips.items())


def _overview(results: Results) -> str:
    """Return a row for each experiment."""
    rows = [
        f"| {outcome.name} | {outcome.seconds:,.0f} s | {_outcome(outcome)} | {_counts(outcome)} |"
        for outcome in results.outcomes
    ]
    head = ("| Experiment | Time | Promise | How often |", "|---|---:|---|---|")
    return "\n".join((*head, *rows))


def _outcome(outcome: Outcome) -> str:
    return "broken" if outcome.broken else "kept" if outcome.seen else "skipped"


def _counts(outcome: Outcome) -> str:
    counted = [name for name in _COUNTS if name in outcome.seen]
    return ", ".join(f"{outcome.seen[name]:,.0f} {name}" for name in counted)


_TOTALS = ("kills", "acknowledged changes", "rows compared", "messages", "segmentations")
_COUNTS = (*_TOTALS, "requests of the good client", "broken promises")


def _totals(results: Results) -> str:
    sums = {
        name: sum(outcome.seen.get(name, 0) for outcome in results.outcomes) for name in _TOTALS
    }
    return ", ".join(f"{number:,.0f} {name}" for name, number in sums.items())


def _verdict(results: Results) -> str:
    broken = [outcome.name for outcome in results.outcomes if outcome.broken]
    if broken:
        return f"**Broken: {', '.join(broken)}.**"
    if not any(map(_is_tried, results.outcomes)):
        return "Nothing was tried."
    left_out = not all(map(_is_tried, results.outcomes))
    return f"Every promise{' that was tried' if left_out else ''} was kept."


def _section(outcome: Outcome) -> str:
    seen = [f"| {name} | {_number(number)} |" for name, number in sorted(outcome.seen.items())]
    parts = [
        f"## {outcome.name[0].upper()}{outcome.name[1:]}",
        _wrapped(f"**Promised.** {outcome.promise}"),
        _wrapped(f"**Tried.** {outcome.method}"),
        f"**Seen** in {outcome.seconds:,.0f} s:",
    ]
    if seen:
        parts.append("\n".join(("| What | How many, or how much |", "|---|---:|", *seen)))
    if outcome.skipped:
        parts.append("Skipped: " + "; ".join(outcome.skipped) + ".")
    if outcome.broken:
        lines = "\n".join(f"- {line}" for line in outcome.broken)
        parts.append(f"**Broken:**\n\n{lines}")
    return "\n\n".join(parts)


def _wrapped(text: str) -> str:
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _number(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:.3g}"


def one_line(outcome: Outcome) -> str:
    """Return an experiment's outcome in a line."""
    verdict = _outcome(outcome).replace("broken", "BROKEN")
    return f"{verdict:8}{outcome.name:30}{outcome.seconds:6,.0f} s   {_counts(outcome)}"
