"""An experiment: a promise, how to test it, and the results."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

_MAX_BROKEN = 20


@dataclass
class Trial:
    """One run of an experiment: what it may use, and what it has found so far.

    It has some ``seconds`` and a ``folder`` of its own. Everything it draws comes from ``random``.
    ``seen`` has counts and measures by name, ``broken`` each promise that was not kept, and
    ``skipped`` what this machine does not allow.
    """

    seconds: float
    random: Random
    folder: Path
    seen: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def rounds(self, now: Callable[[], float] = time.monotonic) -> Iterator[int]:
        """Yield the number of each round: the first, and others while one as long fits."""
        ends, longest = now() + self.seconds, 0.0
        for number in count():
            began = now()
            yield number
            longest = max(longest, now() - began)
            if now() + longest > ends:
                return

    def count(self, what: str, number: int = 1) -> None:
        """Add to a count."""
        self.seen[what] = self.seen.get(what, 0) + number

    def note_max(self, what: str, measure: float) -> None:
        """Keep the largest value of a measure."""
        self.seen[what] = max(self.seen.get(what, measure), round(measure, 3))

    def expect(self, kept: object, otherwise: str) -> None:
        """Note a broken promise unless it was ``kept``."""
        if not kept:
            self.note_broken(otherwise)

    def note_broken(self, what: str) -> None:
        """Record a broken promise; all are counted, and the first ones are reported."""
        self.count("broken promises")
        if len(self.broken) < _MAX_BROKEN:
            self.broken.append(what)


class Skipped(Exception):
    """This machine does not allow the experiment; the message says what is missing."""


Run: TypeAlias = Callable[[Trial], None]


class Experiment(NamedTuple):
    """An experiment: what is promised, how it is tried, and how long.

    It takes at least ``min_seconds``, and has its ``share`` of the time that all of them leave.
    """

    name: str
    promise: str
    method: str
    run: Run
    share: float = 1
    min_seconds: float = 0


def allotted(coming: Sequence[Experiment], left: float) -> float:
    """Return how many seconds the first experiment that is still to come has.

    ``left`` are the seconds for all of them; if those before took longer, it has its minimum.
    """
    first, *_ = coming
    spare = max(0.0, left - sum(one.min_seconds for one in coming))
    return first.min_seconds + spare * first.share / sum(one.share for one in coming)


def conduct(experiment: Experiment, trial: Trial) -> None:
    """Run an experiment; one that fails itself has proven nothing, and so breaks its promise."""
    try:
        experiment.run(trial)
    except Skipped as skipped:
        trial.skipped.append(str(skipped))
    except Exception as error:  # noqa: BLE001 - whatever it was, the other experiments run
        traceback.print_exc()
        trial.note_broken(f"the experiment failed: {type(error).__name__}: {error}"[:500])
