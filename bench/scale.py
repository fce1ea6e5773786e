"""Compute what some rates of requests need, from what ``distributed.py`` measured."""

from collections.abc import Callable
from math import ceil, exp
from pathlib import Path

from measured import Measured, WorkCosts
from tables import Span, table

PAGE = Path(__file__).parent / "results/scale.md"
MIX = {"list": 0.90, "get": 0.08, "create": 0.01, "place order": 0.01}
RATES = {"10 thousand": 10_000, "1 million": 1_000_000, "100 million": 100_000_000}
# Assumptions: share of each core in use, cores of a database server, requests a minute per key.
BUSY, CORES, PER_KEY = 0.5, 16, 100
SAVE_SECONDS = 0.5  # --limits-save-seconds


def shape(measured: Measured, per_minute: float) -> dict[str, float]:
    """Return what so many requests a minute need. Cores are those in use."""
    works, rate, half = measured.works, per_minute / 60, CORES * BUSY

    def cores(part: Callable[[WorkCosts], Span]) -> float:
        """Return the cores of one part."""
        return rate * sum(share * part(works[name]).median for name, share in MIX.items()) / 1e6

    def total(size: Callable[[WorkCosts], int]) -> float:
        """Return the bytes a second."""
        return rate * sum(share * size(works[name]) for name, share in MIX.items())

    primary, redis = cores(lambda one: one.database), cores(lambda one: one.redis)
    # Two, to restart one at a time.
    processes = max(2, ceil(cores(lambda one: one.service) / BUSY))
    keys = per_minute / PER_KEY
    seen = keys * (1 - exp(-rate / processes * SAVE_SECONDS / keys))  # by each process, on average
    saves = processes * seen / SAVE_SECONDS
    commits = rate * (MIX["create"] + MIX["place order"])
    new = measured.pet_bytes * MIX["create"] + measured.order_bytes * MIX["place order"]
    return {
        "Processes": processes,
        "Redis: cores in use": redis,
        "PostgreSQL: cores in use": primary,
        "PostgreSQL: counts saved per second": saves,
        "PostgreSQL: primaries": ceil((primary + saves * measured.saving.database / 1e6) / half),
        "PostgreSQL: commits per second": commits,
        "PostgreSQL: commits that share an fsync": max(1, commits * measured.fsync.median / 1e6),
        "PostgreSQL: log, MB per second": (total(lambda one: one.log) + saves * measured.saving.log)
        / 1e6,
        "PostgreSQL: new rows, GB per day": rate * 86_400 * new / 1e9,
        "Network: responses, Gbit/s": total(lambda one: one.response) * 8 / 1e9,
    }


def tables(measured: Measured) -> dict[str, str]:
    """Return the tables of the page, by name."""
    shapes = [shape(measured, per_minute) for per_minute in RATES.values()]
    return {
        "measured": f"Measured on {measured.machine}; {measured.system}.",
        "costs": table(
            ("Request", "service, µs", "PostgreSQL, µs", "Redis, µs", "bytes of response"),
            [
                (name, *map(_span, (one.service, one.database, one.redis)), f"{one.response:,}")
                for name, one in measured.works.items()
            ],
        ),
        "shapes": table(
            ("Requests a minute", *RATES),
            [(name, *(_number(one[name]) for one in shapes)) for name in shapes[0]],
        ),
    }


def _span(span: Span) -> str:
    return f"{span.median:,.0f} ({span.min:,.0f}-{span.max:,.0f})"


def _number(value: float) -> str:
    """Return a number with two significant digits."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
