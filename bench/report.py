"""The report of a comparison, in Markdown, from its results."""

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import NamedTuple

import msgspec

from plots import plots
from results import ComparedSeries, PeerResults, Results
from tables import Span, span, table
from works import WORKS

FOLDER = Path(__file__).parent / "results"
OURS = "petstore"
MANY = 32  # connections, unless a target names others
_TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Else 1.797 reads "1.8 ×, missed".
_ROUNDED_DOWN = Context(prec=3, rounding=ROUND_FLOOR)

_HOW = """\
Written by `make bench`: {results.rounds} rounds of {results.seconds} s of each work. In each round
the services take turns, and another one begins. Figures are medians; brackets hold min and max.

- Machine: {results.machine}; {results.system}; load average before {results.load_average:.1f};
  8 kB to the disk (`fdatasync`) in {fsync} µs.
- {cores}
- Each service works on its own copy of a store of 200,000 pets, restored after each work
  that writes. 1,000 API keys share the requests. Both windows of each key count and never fill.
- Every request has an `X-Request-Id` and a `traceparent` of its own, and a random key. *list* is
  one of the first 50 pages of 20 pets, of one of three statuses and one of 30 categories. *cold
  list* is a page of 11 to 29 pets: one of 20,000, which is more than this service keeps in memory.
  *deep page* is one of 9,500 pages of 11 to 29 pets after the 50,000th. *get* is a random pet.
  *create* adds a pet with a random name. *mix* is 90 % lists, 8 % gets and 2 % creates. *place
  order* orders another pet each time.
- *same list* is the exception: one page, asked for again and again with the same bytes.
- Percentiles are wrk's: a stall counts for each request that it kept from being sent. Requests
  without a response at the end of a round are not in them, which favors slow services. CPU is that
  of the server's processes, per request. Memory is the sum of the proportional set
  sizes (PSS) of its processes after the last round: a page that two of them share counts once.
"""
_OWN_CORE = "The server under load has a core to itself; wrk, PostgreSQL and Redis share the other."
_ONE_CORE = "The server, wrk, PostgreSQL and Redis share one core."


class Target(NamedTuple):
    """A target, its number of connections, and the measured value if any."""

    what: str
    connections: int
    wanted: str
    seen: str
    is_met: bool | None


def save(results: Results) -> None:
    """Write the report, the results and the plots into their folder, and the tables of pages."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "results.md").write_text(report(results))
    (FOLDER / "results.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"
    )
    for name, drawing in plots(results).items():
        (FOLDER / f"{name}.svg").write_text(drawing)
    for page, text in pages(results).items():
        page.write_text(text)


def pages(results: Results) -> dict[Path, str]:
    """Return the pages that quote a comparison, with its results."""
    tables = {
        FOLDER / "performance.md": {
            "measured": f"Measured on {results.machine}; {results.system}.",
            "ratios": _ratios(results.alone, WORKS),
            "targets": targets_table(results),
            "shared": _ratios(results.shared, ("list", "get", "create", "mix")),
            "resources": _resources(results.alone),
        }
    }
    return {page: _quoted(page.read_text(), of_page) for page, of_page in tables.items()}


def _quoted(text: str, tables: dict[str, str]) -> str:
    """Return a page with these tables in their places, from ``<!-- table: NAME -->`` on.

    Raises:
        ValueError: the page does not have a place for each of the tables and for no other.
    """
    names = [found[2] for found in _TABLE.finditer(text)]
    if sorted(names) != sorted(tables):
        msg = f"the page has places for {names}, not for {list(tables)}"
        raise ValueError(msg)
    return _TABLE.sub(lambda found: f"{found[1]}{tables[found[2]]}\n{found[3]}", text)


def _ratios(peers: list[PeerResults], works: Sequence[str]) -> str:
    """Return how many times more requests this service handles than each peer, by work."""
    ours = next((one for one in peers if one.name == OURS), None)
    return table(
        ("This service to", *works),
        [
            (one.title, *(_ratio(ours, one, work) for work in works))
            for one in peers
            if one.name != OURS
        ],
    )


def _ratio(ours: PeerResults | None, peer: PeerResults, work: str) -> str:
    mine, its = (one.at(work, MANY) if one else None for one in (ours, peer))
    return f"{_digits(_times(mine, its))} ×" if mine and its else ""


def _times(ours: ComparedSeries, theirs: ComparedSeries) -> float:
    return ours.span("rate").median / theirs.span("rate").median


def _resources(peers: list[PeerResults]) -> str:
    """Return what each service needs besides time."""

    def metric(peer: PeerResults, work: str, name: str, digits: int) -> str:
        series = peer.at(work, MANY)
        return f"{series.span(name).median:,.{digits}f}" if series else ""

    return table(
        ("Service", "CPU of a list, µs", "p99 of the mix, ms", "Start, s", "Memory, MB"),
        [
            (
                one.title,
                metric(one, "list", "cpu", 0),
                metric(one, "mix", "p99", 1),
                f"{span(one.starts).median:.2f}",
                f"{one.megabytes:.0f}",
            )
            for one in peers
            if one.starts
        ],
    )


def report(results: Results) -> str:
    """Return the whole report."""
    parts = [
        "# Beside its peers",
        _how(results).rstrip(),
        *_refused(results.alone + results.shared),
        "## Targets",
        targets_table(results),
        "## On SQLite, one process",
        "![Requests per second](requests.svg)",
        "![Latency](latency.svg)",
        "![CPU per request](cpu.svg)",
        *_works(results.alone),
        "### start and memory",
        _starts(results.alone),
        "## On PostgreSQL and Redis, one process",
        "![Requests per second](shared.svg)",
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


def _refused(peers: list[PeerResults]) -> Iterator[str]:
    lines = [f"- {one.title}: {it}" for one in peers for it in one.differences]
    if lines:
        yield "## Not measured\n\nThese differ from the interface:"
        yield "\n".join(lines)


def targets(results: Results) -> list[Target]:
    """Return each target and its result."""
    alone, shared = (_by_name(group) for group in (results.alone, results.shared))
    go = [
        _faster(f"{work}, vs Go", alone, "go", work, times, connections)
        for work, times in (("list", 2.6), ("get", 0.75), ("deep page", 1.1))
        for connections in (32, 256)
    ]
    return [
        _faster("list, vs the FastAPI stack", alone, "fastapi", "list", 45),
        _leaner("list, CPU of a request, vs Go", alone, "go", "list"),
        _faster("list, vs nginx serving the bytes", alone, "nginx", "list", 0.3),
        *go,
        _faster("get, vs Fastify", alone, "fastify", "get", 1.1),
        _faster("durable create, vs the FastAPI stack", alone, "fastapi", "create", 20),
        _faster("durable create, vs Go", alone, "go", "create", 0.8, 1),
        _faster("durable create, vs Go", alone, "go", "create", 2.8),
        _faster("mix, vs Go", alone, "go", "mix", 1.8),
        _faster("mix, vs Fastify", alone, "fastify", "mix", 1.5),
        _at_least(
            "mix, vs lists alone", _series(alone, OURS, "mix"), _series(alone, OURS, "list"), 0.8
        ),
        _quickest("p99 of the mix", alone),
        _smaller("memory after all works", alone, 80),
        *(
            _faster(f"PostgreSQL + Redis, {work}, vs the FastAPI stack", shared, "fastapi", work, 5)
            for work in ("list", "create")
        ),
        *(
            _faster(f"PostgreSQL + Redis, {work}, vs Go", shared, "go", work, times)
            for work, times in (("list", 1.2), ("get", 1.2), ("create", 1), ("mix", 1.2))
        ),
    ]


def _faster(
    what: str,
    among: dict[str, PeerResults],
    peer: str,
    work: str,
    times: float,
    connections: int = MANY,
) -> Target:
    ours, theirs = (_series(among, name, work, connections) for name in (OURS, peer))
    return _at_least(what, ours, theirs, times, connections)


def _at_least(
    what: str,
    ours: ComparedSeries | None,
    theirs: ComparedSeries | None,
    times: float,
    connections: int = MANY,
) -> Target:
    wanted = f"≥ {times:g} ×"
    if not ours or not theirs:
        return Target(what, connections, wanted, "not measured", None)
    ratio = _times(ours, theirs)
    return Target(what, connections, wanted, f"{_digits(ratio)} ×", ratio >= times)


def _leaner(what: str, among: dict[str, PeerResults], peer: str, work: str) -> Target:
    ours, theirs = (_series(among, name, work) for name in (OURS, peer))
    if not ours or not theirs:
        return Target(what, MANY, "less", "not measured", None)
    mine, its = (one.span("cpu").median for one in (ours, theirs))
    return Target(what, MANY, "less", f"{mine:.0f} µs, Go {its:.0f} µs", mine < its)


def _quickest(what: str, among: dict[str, PeerResults]) -> Target:
    wanted = "below every peer's"
    mixes = {
        one.title: mix.span("p99").median
        for one in among.values()
        if one.name != OURS and (mix := one.at("mix", MANY))
    }
    ours = _series(among, OURS, "mix")
    if not ours or not mixes:
        return Target(what, MANY, wanted, "not measured", None)
    mine, (best, title) = ours.span("p99").median, min((ms, title) for title, ms in mixes.items())
    return Target(what, MANY, wanted, f"{mine:.1f} ms, {title} {best:.1f} ms", mine < best)


def _smaller(what: str, among: dict[str, PeerResults], megabytes: int) -> Target:
    wanted = f"≤ {megabytes} MB"
    ours = among.get(OURS)
    if not ours or not ours.megabytes:
        return Target(what, MANY, wanted, "not measured", None)
    return Target(what, MANY, wanted, f"{ours.megabytes:.0f} MB", ours.megabytes <= megabytes)


def _by_name(peers: list[PeerResults]) -> dict[str, PeerResults]:
    return {one.name: one for one in peers}


def _series(
    among: dict[str, PeerResults], name: str, work: str, connections: int = MANY
) -> ComparedSeries | None:
    return among[name].at(work, connections) if name in among else None


def targets_table(results: Results) -> str:
    """Return the targets as a table."""
    words = {True: "reached", False: "missed", None: ""}
    return table(
        ("Medians", "Connections", "Wanted", "Seen", ""),
        [
            (one.what, str(one.connections), one.wanted, one.seen, words[one.is_met])
            for one in targets(results)
        ],
    )


def _works(peers: list[PeerResults]) -> Iterator[str]:
    """Yield a table for each work, with a row for each service and number of connections."""
    seen = [(series.work, series.connections) for one in peers for series in one.series]
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
                for row in _rows(peers, work, connections)
            ],
        )


def _rows(peers: list[PeerResults], work: str, connections: int) -> Iterator[tuple[str, ...]]:
    ours = next((one.at(work, connections) for one in peers if one.name == OURS), None)
    for peer in peers:
        for series in peer.series:
            if (series.work, series.connections) == (work, connections):
                yield (str(connections), peer.title, *_cells(series, ours))


def _cells(series: ComparedSeries, ours: ComparedSeries | None) -> tuple[str, ...]:
    if series.errors:
        return (f"{series.errors} responses failed: no figures", *[""] * 5)
    rate = series.span("rate")
    ratio = _times(ours, series) if ours and series is not ours else None
    return (
        _span(rate),
        f"{_digits(ratio)} ×" if ratio else "",
        *(f"{series.span(name).median:.1f}" for name in ("p50", "p99", "p999")),
        _span(series.span("cpu")),
    )


def _starts(peers: list[PeerResults]) -> str:
    return table(
        ("Service", "First response after s", "Memory, MB", "Versions"),
        [
            (
                one.title,
                "{:.2f} ({:.2f}-{:.2f})".format(*span(one.starts)),
                f"{one.megabytes:.0f}",
                one.versions,
            )
            for one in peers
            if one.starts
        ],
    )


def _span(values: Span) -> str:
    return f"{values.median:,.0f} ({values.min:,.0f}-{values.max:,.0f})"


def _digits(ratio: float) -> str:
    """Return a ratio with three significant digits, rounded down."""
    return f"{_ROUNDED_DOWN.create_decimal(f'{ratio:.6g}').normalize():f}"
