"""The page on scale has the tables that its script reckons, and in its words the same figures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scale import BUSY, CORES, POLLS, POOL, SLOTS, STOCKS, Shape, read_measured, shapes_of, shards

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/scale.md").read_text()
MEASURED = read_measured()
SMALL, MIDDLE, LARGE = shapes_of(MEASURED)
LIST = MEASURED.works["list"]
ALONE = MEASURED.works["list, one connection"]
PAGES = MEASURED.pages


def two(value: float) -> str:
    """Return a number with two digits that count."""
    return f"{float(f'{value:.2g}'):,.{0 if value >= 10 else 1 if value >= 1 else 2}f}"


def one_process(shape: Shape) -> float:
    """Return the requests a minute that a process does at most."""
    return shape.per_minute * BUSY / shape.service_cores


WORDS = [
    f"with {MEASURED.machine.replace(', ', ' (')}) and Python {MEASURED.python[:4]}.",
    f"median of {MEASURED.rounds} rounds",
    f"10 thousand a minute keep {100 * SMALL.service_cores:.0f} % of one core busy.",
    f"1 million a minute is {MIDDLE.processes} processes, one Redis and one PostgreSQL",
    f"so 1 million lists a minute of {LIST.database.median:.0f} µs keep one core",
    f"PostgreSQL has {two(MIDDLE.primary_cores)} of its {CORES} cores busy.",
    f"{two(MIDDLE.redis_cores)} of it is taken where we allow {BUSY}.",
    f"a cluster of three masters, `redis://…?cluster=true`, with {SLOTS / 3:,.0f} of",
    f"some {1e6 / LIST.redis.median:,.0f} a second",
    f"one more for each {float(two(one_process(MIDDLE) / 1e3)) * 1e3:,.0f} a minute",
    f"{MIDDLE.processes} processes may open {MIDDLE.processes * POOL}.",
    f"spread over {LARGE.processes} processes",
    f"{LARGE.saved(0.5) / 1e6:.1f} million rows",
    f"and {two(LARGE.saved(0.5) * MEASURED.saving.log / 1e6)} MB of log a second",
    f"{LARGE.saved(0.5) * MEASURED.saving.log / LARGE.log:.0f} times the log of the changes",
    f"a process sees {two(LARGE.keys / LARGE.processes)} keys",
    f"fills {LARGE.masters} masters, with {SLOTS / LARGE.masters:.0f} of the {SLOTS:,} slots each",
    f"{LARGE.processes * POOL:,} to each primary",
    f"{two(LARGE.commits)} changes a second: one fsync must do for {LARGE.changes_together:.0f}",
    f"at the {MEASURED.fsync.median / 1e3:.0f} ms of our disk",
    f"for {LARGE.commits * 1e-4:.0f} at 0.1 ms",
    f"{LARGE.list_cores:.0f} cores, {LARGE.replicas} replicas at half load",
    f"not {LARGE.rate * 0.9 / 1e6:.1f} million times a second",
    f"go to the primary: {LARGE.primary_cores:.0f} of {CORES} cores",
    f"{LARGE.answers * 8 / 1e9:.0f} Gbit/s of answers",
    f"are {two(LARGE.new_bytes / 1e9)} GB a day, a new shard every day and a half",
    f"that cost {PAGES['100 partitions by hash of ids'] / PAGES['one table']:.0f} times one table",
    f"It cost {PAGES['100 partitions by range of ids'] / PAGES['one table']:.0f} times one table",
    f"some {100 / shards(MEASURED, STOCKS['10 billion']):.0f} of them",
    f"the sum over the shards: {shards(MEASURED, STOCKS['10 billion'])} small reads",
    f"{LARGE.processes} processes are {two(LARGE.processes * POLLS)} small reads",
]


def test_the_page_has_the_tables_that_the_script_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "bench/scale.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    tables = printed.strip().split("\n\n")
    assert [line for table in tables for line in table.splitlines()] == [
        line for line in PAGE.splitlines() if line.startswith("|")
    ]


@pytest.mark.parametrize("words", WORDS)
def test_the_words_have_the_figures_of_the_script(words: str) -> None:
    assert words in re.sub(r"\s+", " ", PAGE)


def test_what_is_said_without_a_figure_is_so_too() -> None:
    assert round(MIDDLE.per_minute / 60 * LIST.database.median / 1e6) == 1  # "keep one core"
    assert ALONE.redis.median > 2 * LIST.redis.median  # "more than doubles the price"
    assert 1.25 < 1e12 / LARGE.new_bytes < 1.75  # "a new shard every day and a half"
    assert MIDDLE.saved(60) * 10 < MIDDLE.saved(0.5)  # "removes it at 1 million a minute"
    assert LARGE.saved(60) * 1.2 > LARGE.saved(0.5)  # "and hardly helps here"


@pytest.mark.parametrize(
    ("per_minute", "processes"), [(1, 2), (1_000_000, 6), (2_000_000, 11), (100_000_000, 689)]
)
def test_processes_are_those_that_half_load_needs(per_minute: int, processes: int) -> None:
    shape = Shape(MEASURED, per_minute)
    assert shape.processes == processes
    assert shape.service_cores <= shape.processes * BUSY
