"""Compare this service with its peers: the same work, in one run, in alternation.

Every peer is checked first; one that does not do the work of interface.md is not measured. If there
are two cores, the server under load has one and everything else the other.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import machine
import wrk
from peers.conformance import PETS, differences, issue_keys
from peers.contract import EVERYTHING, PEERS, Peer, missing_packages, peer
from report import FOLDER, report, save
from results import ComparedSeries, PeerResults, Results, Round, measure
from servers import Server, leave_one_core
from stage import Environment, SharedStage, SqliteStage, Stage, postgres_server
from stock import fill, issue_many
from tables import span
from works import KEYS, RESTORE, WORKS, Work, sources, work

Cases = dict[str, tuple[int, ...]]
# How many connections each work is measured with.
_ALONE: Cases = {
    "list": (1, 32, 256),
    "cold list": (32,),
    "deep page": (32, 256),
    "get": (1, 32, 256),
    "create": (1, 32, 256),
    "mix": (1, 32, 256),
    "place order": (32,),
    "same list": (32,),
}
_SHARED: Cases = {"list": (32,), "get": (32,), "create": (32,), "mix": (32,)}
_LISTS = ("list", "same list")  # what a peer that only lists is sent
_WARM_UP = 1  # s


class Plan(NamedTuple):
    """How long to measure, what, and on which core the servers run, if they have one each.

    ``cases`` are works with numbers of connections.
    """

    rounds: int
    seconds: int
    core: str | None
    cases: list[tuple[str, int]]

    @property
    def works(self) -> list[str]:
        """The works, once each."""
        return list(dict.fromkeys(name for name, _ in self.cases))


class Entry(NamedTuple):
    """A running peer, and the works for it by name."""

    peer: Peer
    environment: Environment
    server: Server
    works: dict[str, Work]


def main() -> None:
    """Compare, print the report, and save it if asked to."""
    options = parse_options()
    missing = missing_packages(wrk.NEEDS, *(one.needs for one in options.names))
    if options.missing:
        print(*missing)
        return
    if missing:
        sys.exit(f"not on this machine; as root: apt-get install {' '.join(missing)}")
    # Beside this file, because the system's temporary folder may be in memory.
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=Path(__file__).parent) as folder:
        results = _compare(options, Path(folder))
    print(report(results))
    if options.save:
        save(results)
    if broken := [one.title for one in results.alone + results.shared if one.differences]:
        sys.exit(f"not measured, as they do not conform: {', '.join(broken)}")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of a run; ``arguments`` are those of the command line if None."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PEER", type=peer, help="else all of them")
    parser.add_argument("--works", nargs="+", choices=WORKS, metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--connections", nargs="+", type=int, metavar="N", help="of 1, 32 and 256")
    parser.add_argument("--on", choices=("sqlite", "postgresql"), help="else on both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each work in a round")
    parser.add_argument("--quick", action="store_true", help="one round of 1 s, 32 connections")
    parser.add_argument("--save", action="store_true", help=f"into {FOLDER.name}/ and the pages")
    parser.add_argument("--missing", action="store_true", help="only name the missing packages")
    options = parser.parse_args(arguments)
    subset = options.names or options.works or options.connections or options.on or options.quick
    if options.save and subset:
        parser.error(
            "--save is for a whole run, without peers, works, connections, --on or --quick"
        )
    options.names = options.names or list(PEERS)
    if options.quick:
        options.rounds, options.seconds, options.connections = 1, 1, [32]
    return options


def _compare(options: argparse.Namespace, folder: Path) -> Results:
    load, fsync = machine.load_average(), span(machine.fsync_times(folder))
    core = leave_one_core()

    def plan(all_cases: Cases) -> Plan:
        chosen = cases(all_cases, options.works, options.connections)
        return Plan(options.rounds, options.seconds, core, chosen)

    alone, shared = plan(_ALONE), plan(_SHARED)
    return Results(
        machine=machine.machine(),
        system=machine.system(),
        load_average=load,
        fsync=fsync,
        rounds=options.rounds,
        seconds=options.seconds,
        own_core=core is not None,
        alone=[] if options.on == "postgresql" else _on_sqlite(options.names, alone, folder),
        shared=[] if options.on == "sqlite" else _on_postgres(options.names, shared, folder),
    )


def cases(
    all_cases: Cases, works: list[str] | None, connections: list[int] | None
) -> list[tuple[str, int]]:
    """Return the cases of these works and numbers of connections; None chooses all of them."""
    return [
        (name, number)
        for name, numbers in all_cases.items()
        for number in numbers
        if name in (works or all_cases)
        if number in (connections or numbers)
    ]


def _on_sqlite(peers: list[Peer], plan: Plan, folder: Path) -> list[PeerResults]:
    return _measure_on(SqliteStage(folder / "small"), SqliteStage(folder), peers, plan)


def _on_postgres(peers: list[Peer], plan: Plan, folder: Path) -> list[PeerResults]:
    with postgres_server() as postgres:
        stages = SharedStage(postgres, folder), SharedStage(postgres, folder)
        return _measure_on(*stages, [one for one in peers if one.shared], plan)


def _measure_on(small: Stage, large: Stage, peers: list[Peer], plan: Plan) -> list[PeerResults]:
    """Check the peers on one stage, and measure those that conform on another."""
    found = check(small, peers)
    sound = [one for one in peers if not found[one.name]]
    fill(large.folder, large.url)
    tokens = issue_many(large.url, KEYS, large.folder)
    with ExitStack() as stack:
        environments = [(one, stack.enter_context(large.copy(one.name))) for one in sound]
        starts = [
            (one.name, _seconds_to_start(one, environment, plan))
            for _ in range(plan.rounds)
            for one, environment in environments
        ]
        entries = [
            _enter(
                one,
                environment,
                stack.enter_context(one.started(environment, plan.core)),
                tokens,
                plan,
            )
            for one, environment in environments
        ]
        series = _measure(entries, plan)
        megabytes = {entry.peer.name: entry.server.proportional_megabytes for entry in entries}
    return [
        PeerResults(
            name=one.name,
            title=one.title,
            versions=one.versions,
            differences=found[one.name],
            starts=[seconds for name, seconds in starts if name == one.name],
            megabytes=megabytes.get(one.name, 0),
            series=series.get(one.name, []),
        )
        for one in peers
    ]


def check(stage: Stage, peers: list[Peer]) -> dict[str, list[str]]:
    """Fill the stage; return what each peer does otherwise than the interface says, by name.

    A peer that does not start differs in that.
    """
    fill(stage.folder, stage.url, PETS)
    keys = issue_keys(stage.url)
    found = {}
    for one in peers:
        if missing := missing_packages(one.needs):
            found[one.name] = [f"it needs {' '.join(missing)}"]
            continue
        one.build()
        with stage.copy(f"{one.name}-checked") as environment:
            try:
                with one.started(environment) as server:
                    found[one.name] = differences(server.url, environment.url, keys, one.does)
            except RuntimeError as error:
                found[one.name] = [f"it does not start: {error}"]
    return found


def _seconds_to_start(one: Peer, environment: Environment, plan: Plan) -> float:
    with one.started(environment, plan.core) as server:
        return server.seconds_to_ready


def _enter(
    one: Peer, environment: Environment, server: Server, tokens: list[str], plan: Plan
) -> Entry:
    given = sources(server.url, tokens)
    names = [name for name in plan.works if one.does == EVERYTHING or name in _LISTS]
    works = {name: work(name, given, plan.seconds) for name in names}
    wrk.put_load(server.url, work("list", given, plan.seconds).requests, 32, _WARM_UP)
    return Entry(one, environment, server, works)


def _measure(entries: list[Entry], plan: Plan) -> dict[str, list[ComparedSeries]]:
    """Return the results of each peer by name; each round begins with another peer."""
    rounds: dict[tuple[str, str, int], list[Round]] = {}
    for number in range(plan.rounds):
        start = number % len(entries)
        order = entries[start:] + entries[:start]
        for name, connections in plan.cases:
            print(f"round {number + 1}: {name}, {connections} connections", file=sys.stderr)
            for entry in order:
                if asked := entry.works.get(name):
                    one = _measure_work(entry, asked, connections, plan.seconds)
                    rounds.setdefault((entry.peer.name, name, connections), []).append(one)
    series: dict[str, list[ComparedSeries]] = {}
    for (peer_name, name, connections), of_one in rounds.items():
        one_work = ComparedSeries(work=name, connections=connections, rounds=of_one)
        series.setdefault(peer_name, []).append(one_work)
    return series


def _measure_work(entry: Entry, asked: Work, connections: int, seconds: int) -> Round:
    one = measure(entry.server, asked.requests, connections, seconds)
    if asked.writes:
        entry.environment.run_sql(RESTORE)
    return one


if __name__ == "__main__":
    main()
