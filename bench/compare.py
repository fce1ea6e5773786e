"""Compare this service with its peers: the same work, in one run, in alternation.

Every peer is checked first; one that does not do the work of interface.md is not measured. Where
there are two cores, the server under load has one and everything else the other.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import NamedTuple

import machine
import wrk
from check import check
from peers.conformance import issue_unlimited
from peers.contract import EVERYTHING, PEERS, Peer, missing_packages, peer
from report import FOLDER, report, save
from results import ComparedSeries, Contestant, Results
from rounds import Round, measure
from servers import Server, leave_one_core
from stage import Place, SharedStage, SqliteStage, Stage, postgres_server
from stock import fill
from tables import span
from works import RESTORE, WORKS, Work, deep_cursors, first_page, works

_CONNECTIONS = (1, 32, 256)
_WARM_UP = 1  # s


class Plan(NamedTuple):
    """How long is measured, and on which core the servers run, if they have one to themselves."""

    rounds: int
    seconds: int
    connections: tuple[int, ...]
    core: str | None


class Entry(NamedTuple):
    """A peer at work, and what it is asked, by name."""

    peer: Peer
    place: Place
    server: Server
    works: dict[str, Work]


def main() -> None:
    """Compare, print the report, and save it if that is wanted."""
    options = _options()
    missing = missing_packages(wrk.NEEDS, *(one.needs for one in PEERS))
    if options.missing:
        print(*missing)
        return
    if missing:
        sys.exit(f"not on this machine; as root: apt-get install {' '.join(missing)}")
    plan = Plan(options.rounds, options.seconds, _CONNECTIONS, core=leave_one_core())
    if options.quick:
        plan = plan._replace(rounds=1, seconds=1, connections=(32,))
    # Beside this file, and not where memory may pass for a disk.
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=Path(__file__).parent) as folder:
        results = _compare(options.names or list(PEERS), plan, Path(folder))
    print(report(results))
    if options.save:
        save(results)
    if broken := [one.title for one in results.alone + results.shared if one.differences]:
        sys.exit(f"not measured, as they do not conform: {', '.join(broken)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", type=peer, help="of peers; else all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each work in a round")
    parser.add_argument("--quick", action="store_true", help="one round of 1 s, 32 connections")
    parser.add_argument("--save", action="store_true", help=f"into {FOLDER.name}/")
    parser.add_argument("--missing", action="store_true", help="only name the missing packages")
    return parser.parse_args()


def _compare(peers: list[Peer], plan: Plan, folder: Path) -> Results:
    load, fsync = machine.load_average(), span(machine.fsync_times(folder))
    alone = _measure_on(SqliteStage(folder / "small"), SqliteStage(folder), peers, plan)
    with postgres_server() as postgres:
        stages = SharedStage(postgres, folder), SharedStage(postgres, folder)
        sharing = [one for one in peers if one.shared]
        shared = _measure_on(*stages, sharing, plan._replace(connections=(32,)))
    return Results(
        machine=machine.machine(),
        system=machine.system(),
        load_average=load,
        fsync=fsync,
        rounds=plan.rounds,
        seconds=plan.seconds,
        own_core=plan.core is not None,
        alone=alone,
        shared=shared,
    )


def _measure_on(small: Stage, large: Stage, peers: list[Peer], plan: Plan) -> list[Contestant]:
    """Check the peers on one stage, and measure on another those that conform."""
    differences = check(small, peers)
    sound = [one for one in peers if not differences[one.name]]
    fill(large.folder, large.url)
    token = issue_unlimited(large.url)
    with ExitStack() as stack:
        places = [(one, stack.enter_context(large.copy(one.name))) for one in sound]
        starts = [
            (one.name, _seconds_to_start(one, place, plan))
            for _ in range(plan.rounds)
            for one, place in places
        ]
        entries = [
            _enter(one, place, stack.enter_context(one.started(place, plan.core)), token, plan)
            for one, place in places
        ]
        series = _measure(entries, plan)
        peaks = {entry.peer.name: entry.server.peak_megabytes for entry in entries}
    return [
        Contestant(
            name=one.name,
            title=one.title,
            versions=one.versions,
            differences=differences[one.name],
            starts=[seconds for name, seconds in starts if name == one.name],
            peak_megabytes=peaks.get(one.name, 0),
            series=series.get(one.name, []),
        )
        for one in peers
    ]


def _seconds_to_start(one: Peer, place: Place, plan: Plan) -> float:
    with one.started(place, plan.core) as server:
        return server.seconds_to_ready


def _enter(one: Peer, place: Place, server: Server, token: str, plan: Plan) -> Entry:
    asked = [first_page(token)]
    if one.does == EVERYTHING:
        asked = works(token, list(deep_cursors(server.url, token)), plan.seconds)
    wrk.put_load(server.url, asked[0].requests, 32, _WARM_UP)
    return Entry(one, place, server, {work.name: work for work in asked})


def _measure(entries: list[Entry], plan: Plan) -> dict[str, list[ComparedSeries]]:
    """Return the figures of each, by name; each round begins with another of them."""
    rounds: dict[tuple[str, str, int], list[Round]] = {}
    for number in range(plan.rounds):
        start = number % len(entries)
        order = entries[start:] + entries[:start]
        for connections, name in product(plan.connections, WORKS):
            print(f"round {number + 1}: {name}, {connections} connections", file=sys.stderr)
            for entry in order:
                if work := entry.works.get(name):
                    one = _measure_work(entry, work, connections, plan.seconds)
                    rounds.setdefault((entry.peer.name, name, connections), []).append(one)
    series: dict[str, list[ComparedSeries]] = {}
    for (peer_name, name, connections), of_one in rounds.items():
        one_work = ComparedSeries(work=name, connections=connections, rounds=of_one)
        series.setdefault(peer_name, []).append(one_work)
    return series


def _measure_work(entry: Entry, work: Work, connections: int, seconds: int) -> Round:
    one = measure(entry.server, work.requests, connections, seconds)
    if work.writes:
        entry.place.run_sql(RESTORE)
    return one


if __name__ == "__main__":
    main()
