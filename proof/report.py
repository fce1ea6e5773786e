"""The report of a run, in Markdown, from its results."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import fill

import msgspec

from proof.experiment import Experiment

RESULTS = Path(__file__).parent / "results.json"
REPORT = Path(__file__).parent / "report.md"

_HEAD = """\
# Reliability

What the service promises when its parts fail, how we test each promise, and the results. A run of
the experiments in `proof/` writes this page. Do not edit it. `proof/results.json` has every number.

```sh
make prove                # all experiments, 50 minutes
make prove MINUTES=10     # the same, shorter: too few trials of some promises to say
make prove ONLY="kill -9" SEED=7   # some of them, with the random choices of an earlier run
```

Everything runs on the loopback network, on real processes and real files. A run needs Linux, a C
compiler for the faults of disks and clocks, and root to mount a small disk. The run skips what it
cannot do, and lists it here. *Kept* takes at least 20 trials: kills, faults, restarts or requests.
Fewer are *too few* to say. Only a broken promise ends the run with status 1. A limit in time rises
with what the same work takes without a fault in the same minute. Minutes that are too short for the
experiments are refused. The seed repeats the random choices, but not the timing of processes.

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
    parts = ("\n".join(lines), _overview(results), *_skips(results), *_sections(results))
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
        f"| {outcome.name} | {outcome.seconds:,.0f} s | {trials(outcome):,.0f} |"
        f" {_outcome(outcome)} |"
        for outcome in results.outcomes
    ]
    head = ("| Experiment | Time | Trials | Promise |", "|---|---:|---:|---|")
    return "\n".join((*head, *rows))


def _outcome(outcome: Outcome) -> str:
    if outcome.broken or not outcome.seen:
        return "broken" if outcome.broken else "skipped"
    return "kept" if trials(outcome) >= ENOUGH else "too few"


def trials(outcome: Outcome) -> float:
    """Return how often something could have broken the promise."""
    seen = outcome.seen.items()
    return sum(number for name, number in seen if name in _TRIALS or name.startswith("times: "))


def _counts(outcome: Outcome) -> str:
    counted = [name for name in _COUNTS if name in outcome.seen]
    return ", ".join(f"{outcome.seen[name]:,.0f} {name}" for name in counted)


ENOUGH = 20
"""So many trials of a promise at least say that it is kept."""

_TRIALS = ("kills", "restarts", "lists", "requests of the good client", "samples of the process")
_TOTALS = ("kills", "acknowledged changes", "rows compared", "events compared")
_DETAILS = (
    "503",
    "comparisons of",
    "deliveries refused",
    "kills of ",
    "p50 ",
    "replays compared",
    "requests without",
    "resources that wait",
    "retries with",
    "times: ",
)
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
    verdicts = Counter(map(_outcome, results.outcomes))
    few = [one.name for one in results.outcomes if _outcome(one) == "too few"]
    said = [f"Kept: {verdicts['kept']} of {len(results.outcomes)} promises."]
    if few:
        said.append(f"**Too few trials to say: {'; '.join(few)}.**")
    return " ".join(said)


def _sections(results: Results) -> Iterator[str]:
    """Yield a section for the outcomes that try one promise in the same way."""
    tried = filter(_is_tried, results.outcomes)
    for _, outcomes in groupby(tried, lambda outcome: (outcome.promise, outcome.method)):
        yield _section(list(outcomes))


def _section(outcomes: list[Outcome]) -> str:
    """Return a section, with a column for each outcome."""
    first = outcomes[0]
    title = first.name.partition(", ")[0] if outcomes[1:] else first.name
    parts = [
        f"## {_capitalized(title)}",
        _wrapped(f"**Promised.** {first.promise}"),
        _wrapped(f"**Tried.** {first.method}"),
        _table(title, outcomes),
    ]
    for outcome in outcomes:
        if outcome.skipped:
            parts.append(f"Skipped: {'; '.join(outcome.skipped)}.")
        if outcome.broken:
            lines = "\n".join(f"- {line}" for line in outcome.broken)
            parts.append(f"**Broken** ({outcome.name}):\n\n{lines}")
    return "\n\n".join(parts)


def _table(title: str, outcomes: list[Outcome]) -> str:
    """Return what was seen, without the details that only results.json has."""
    rows = sorted({row for outcome in outcomes for row in outcome.seen})
    heads = [_capitalized(outcome.name.removeprefix(title).strip(", ")) for outcome in outcomes]
    return "\n".join(
        (
            f"| Seen | {' | '.join(head or 'How many, or how much' for head in heads)} |",
            f"|---|{'---:|' * len(heads)}",
            *(
                f"| {row} | {' | '.join(_number(one.seen.get(row)) for one in outcomes)} |"
                for row in rows
                if not row.startswith(_DETAILS)
            ),
        )
    )


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str) -> str:
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _number(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:.3g}"


def one_line(outcome: Outcome) -> str:
    """Return an experiment's outcome in a line."""
    verdict = _outcome(outcome).replace("broken", "BROKEN")
    return f"{verdict:8}{outcome.name:30}{outcome.seconds:6,.0f} s   {_counts(outcome)}"
