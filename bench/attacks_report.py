"""The effects of attacks on a good client and the server, as a table and JSON."""

from pathlib import Path

import msgspec

from tables import table


class Outcome(msgspec.Struct, frozen=True):
    """One attack on one tree.

    ``p50``, ``p99`` and ``worst`` are the times of the good client, in ms, ``failed`` how many of
    its ``asked`` requests failed. ``megabytes`` is the server's peak memory over what it had
    before, ``cores`` how many it kept busy, ``cpu`` its time in µs for each response to attackers,
    if they read any. ``seen`` is what they saw: statuses, and events in words.
    """

    attack: str
    tree: str
    callers: int
    p50: float
    p99: float
    worst: float
    asked: int
    failed: int
    megabytes: float
    cores: float
    cpu: float | None
    seen: dict[str, int]


class Attacks(msgspec.Struct, frozen=True):
    """A whole run: the machine, its load before, and every outcome."""

    machine: str
    system: str
    load_average: float
    outcomes: list[Outcome]


def save(attacks: Attacks, file: Path) -> None:
    """Write everything as JSON."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(attacks), indent=1) + b"\n")


def report(attacks: Attacks) -> str:
    """Return the table, with a line about the machine above it."""
    where = f"{attacks.machine}; {attacks.system}; load average {attacks.load_average:.1f}"
    head = ("Attack", "Callers", "Tree", "p50 ms", "p99 ms", "Worst ms", "Failed", "+MB", "Cores")
    rows = [_row(outcome) for outcome in attacks.outcomes]
    return f"{where}\n\n{table((*head, 'CPU µs', 'The attackers saw'), rows)}"


def _row(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.attack,
        f"{outcome.callers:,}",
        outcome.tree,
        f"{outcome.p50:,.1f}",
        f"{outcome.p99:,.1f}",
        f"{outcome.worst:,.1f}",
        f"{outcome.failed:,} of {outcome.asked:,}",
        f"{outcome.megabytes:,.0f}",
        f"{outcome.cores:.2f}",
        "" if outcome.cpu is None else f"{outcome.cpu:,.0f}",
        ", ".join(f"{name}: {times:,}" for name, times in sorted(outcome.seen.items())),
    )
