"""The report of a comparison, in Markdown, from its results."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from plots import plots
from results import ComparedSeries, Contestant, Results
from tables import Span, span, table

FOLDER = Path(__file__).parent / "results"
# The one that the others are compared with, and how many connections the targets speak of.
OURS = "petstore"
MANY = 32

_HOW = """\
Written by `make bench`: {results.rounds} rounds of {results.seconds} s of each work, the services
in turn within each, and another first in each round. The median counts; brackets hold the least and
the most.

- Machine: {results.machine}; {results.system}; load average before {results.load_average:.1f};
  8 kB to the disk (`fdatasync`) in {fsync} µs.
- {cores}
- Each service works on its own copy of a store of 200,000 animals, which is put back after each
  work that writes. It counts the requests of one key, whose two windows never fill.
- *list* is the first 20 animals that are available, the same page each time: this service knows the
  bytes of the request, and answers it from memory while the database does not change. *deep page*
  is one of many pages of 11 to 29 animals behind the 50,000th. *mix* is 90 % lists of the three
  statuses, 8 % get, 2 % create.
- Percentiles are wrk's, which counts a stall for each request that it kept from being sent. What is
  unanswered at the end of a round is not in them, to the good of the slow. CPU is that of the
  server's processes, for one request. Memory is the largest resident set of each of its processes,
  added up.
"""
_OWN_CORE = "The server under load has a core to itself; wrk, PostgreSQL and Redis share the other."
_ONE_CORE = "The server, wrk, PostgreSQL and Redis share one core."


class Target(NamedTuple):
    """What was to be reached, and what was, if it was measured."""

    what: str
    wanted: str
    seen: str
    is_met: bool | None


def save(results: Results) -> None:
    """Write the report, the results and the plots into their folder."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "results.md").write_text(report(results))
    (FOLDER / "results.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"
    )
    for name, drawing in plots(results).items():
        (FOLDER / f"{name}.svg").write_text(drawing)


def report(results: Results) -> str:
    """Return the whole report."""
    parts = [
        "# Beside its peers",
        _how(results).rstrip(),
        *_refused(results.alone + results.shared),
        "## Targets",
        _targets_table(targets(results)),
        "## On SQLite, one process",
        "![Requests a second](requests.svg)",
        "![Latency](latency.svg)",
        "![CPU of a request](cpu.svg)",
        *_works(results.alone),
        "### start and memory",
        _starts(results.alone),
        "## On PostgreSQL and Redis, one process",
        "![Requests a second](shared.svg)",
        *_works(results.shared),
        "### start and memory",
        _starts(results.shared),
    ]
    return "\n\n".join(parts) + "\n"


def _how(results: Results) -> str:
    return _HOW.format(
        results=results,
        cores=_OWN_CORE if results.own_core else _ONE_CORE,
        fsync=_span(results.fsync),
    )


def _refused(contestants: list[Contestant]) -> Iterator[str]:
    lines = [f"- {one.title}: {it}" for one in contestants for it in one.differences]
    if lines:
        yield "## Not measured\n\nThese do not do the work of the interface:"
        yield "\n".join(lines)


def targets(results: Results) -> list[Target]:
    """Return each target and what came of it."""
    alone, shared = (_by_name(group) for group in (results.alone, results.shared))
    return [
        _faster("list, vs the FastAPI stack", alone, "fastapi", "list", 30),
        _faster("list, vs Go", alone, "go", "list", 1.5),
        _leaner("list, CPU of a request, vs Go", alone, "go", "list"),
        _faster("list, vs nginx serving the bytes", alone, "nginx", "list", 0.3),
        _faster("durable create, vs the FastAPI stack", alone, "fastapi", "create", 20),
        _faster("durable create, vs Go", alone, "go", "create", 2),
        _quickest("p99 of the mix", alone),
        _faster("PostgreSQL + Redis, list, vs the FastAPI stack", shared, "fastapi", "list", 5),
        _faster("PostgreSQL + Redis, create, vs the FastAPI stack", shared, "fastapi", "create", 5),
    ]


def _faster(what: str, among: dict[str, Contestant], peer: str, work: str, times: float) -> Target:
    wanted = f"≥ {times:g} ×"
    ours, theirs = (_series(among, name, work) for name in (OURS, peer))
    if not ours or not theirs:
        return Target(what, wanted, "not measured", None)
    ratio = ours.span("rate").median / theirs.span("rate").median
    return Target(what, wanted, f"{_digits(ratio)} ×", ratio >= times)


def _leaner(what: str, among: dict[str, Contestant], peer: str, work: str) -> Target:
    ours, theirs = (_series(among, name, work) for name in (OURS, peer))
    if not ours or not theirs:
        return Target(what, "less", "not measured", None)
    mine, its = (one.span("cpu").median for one in (ours, theirs))
    return Target(what, "less", f"{mine:.0f} µs, Go {its:.0f} µs", mine < its)


def _quickest(what: str, among: dict[str, Contestant]) -> Target:
    wanted = "below every peer's"
    mixes = {
        one.title: mix.span("p99").median
        for one in among.values()
        if one.name != OURS and (mix := one.at("mix", MANY))
    }
    ours = _series(among, OURS, "mix")
    if not ours or not mixes:
        return Target(what, wanted, "not measured", None)
    mine, (best, title) = ours.span("p99").median, min((ms, title) for title, ms in mixes.items())
    return Target(what, wanted, f"{mine:.1f} ms, {title} {best:.1f} ms", mine < best)


def _by_name(contestants: list[Contestant]) -> dict[str, Contestant]:
    return {one.name: one for one in contestants}


def _series(among: dict[str, Contestant], name: str, work: str) -> ComparedSeries | None:
    return among[name].at(work, MANY) if name in among else None


def _targets_table(all_targets: list[Target]) -> str:
    words = {True: "reached", False: "missed", None: ""}
    return table(
        (f"Medians at {MANY} connections", "Wanted", "Seen", ""),
        [(one.what, one.wanted, one.seen, words[one.is_met]) for one in all_targets],
    )


def _works(contestants: list[Contestant]) -> Iterator[str]:
    """Yield a table for each work, with a row for each service and number of connections."""
    seen = [(one.work, one.connections) for whose in contestants for one in whose.series]
    for work in dict.fromkeys(work for work, _ in seen):
        yield f"### {work}"
        yield table(
            (
                *("Connections", "Service", "Requests/s", "Petstore to it"),
                *("p50 ms", "p99 ms", "p99.9 ms", "CPU µs"),
            ),
            [
                row
                for connections in sorted({number for name, number in seen if name == work})
                for row in _rows(contestants, work, connections)
            ],
        )


def _rows(contestants: list[Contestant], work: str, connections: int) -> Iterator[tuple[str, ...]]:
    ours = next((one.at(work, connections) for one in contestants if one.name == OURS), None)
    for contestant in contestants:
        for series in contestant.series:
            if (series.work, series.connections) == (work, connections):
                yield (str(connections), contestant.title, *_cells(series, ours))


def _cells(series: ComparedSeries, ours: ComparedSeries | None) -> tuple[str, ...]:
    if series.errors:
        return (f"{series.errors} answers failed: no figures", *[""] * 5)
    rate = series.span("rate")
    ratio = ours.span("rate").median / rate.median if ours and series is not ours else None
    return (
        _span(rate),
        f"{_digits(ratio)} ×" if ratio else "",
        *(f"{series.span(name).median:.1f}" for name in ("p50", "p99", "p999")),
        _span(series.span("cpu")),
    )


def _starts(contestants: list[Contestant]) -> str:
    return table(
        ("Service", "First answer after s", "Memory at most, MB", "Versions"),
        [
            (
                one.title,
                "{:.2f} ({:.2f}-{:.2f})".format(*span(one.starts)),
                f"{one.peak_megabytes:.0f}",
                one.versions,
            )
            for one in contestants
            if one.starts
        ],
    )


def _span(figures: Span) -> str:
    return f"{figures.median:,.0f} ({figures.least:,.0f}-{figures.most:,.0f})"


def _digits(ratio: float) -> str:
    """Return a ratio with three digits that count."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"
